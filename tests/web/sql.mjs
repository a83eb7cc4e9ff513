// SQL in the page, by keyboard: node sql.mjs PAGE.html QUESTIONS.json, a list of {sql, columns, rows} as `lockstep query` answers them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { openWatched, settled, withBrowser } from './browser.mjs';

const [file, questions_file] = process.argv.slice(2);
const questions = JSON.parse(readFileSync(questions_file, 'utf8'));
const ANSWER = '[aria-labelledby="answer-caption"]';

/** Types a statement over the one that is there, and asks; what the page then says: an answer's line or an error. */
async function ask(page, sql) {
  await page.focus('#sql-text');
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(sql);
  await page.keyboard.press('Control+Enter');
  await settled(page);
  return page.textContent('[role=alert], .sql-status p');
}

const answer = (page) => page.$$eval(`${ANSWER} table`, ([table]) => ({
  columns: [...table.querySelectorAll('thead th')].map((head) => head.textContent.replace(/[▲▼]/g, '').trim()),
  rows: [...table.querySelectorAll('tbody tr[data-row]')].map((row) => [...row.cells].map((cell) => cell.title || cell.textContent)),
}));

await withBrowser({}, async (context) => {
  const page = await openWatched(context, file);
  await page.waitForSelector('.view h2');
  await page.evaluate(() => void (location.hash = '#/sql'));
  await page.waitForSelector('#sql-text');
  for (const { sql, columns, rows } of questions) {
    assert.match(await ask(page, sql), /^[\d,]+ rows?, [\d,]+ ms\.$/, sql);
    const shown = await answer(page);
    assert.deepEqual(shown.columns, columns, sql);
    assert.deepEqual(shown.rows, rows.map((row) => row.map((cell) => String(cell ?? 'NULL'))), sql);
  }

  // What is wrong is said; nothing of the page can be changed.
  assert.match(await ask(page, 'SELECT rnk FROM steps'), /no such column: rnk/);
  assert.match(await ask(page, 'SELECT * FROM memory_event'), /no such table: memory_event/);
  assert.match(await ask(page, 'DELETE FROM steps'), /readonly/);
  assert.match(await ask(page, 'SELECT 1; SELECT 2'), /One statement at a time/);
  assert.match(await ask(page, '-- nothing'), /There is no statement/);
  assert.match(await ask(page, 'SELECT percentile(1, 101)'), /from 0 to 100/);
  assert.match(await ask(page, 'SELECT 1 AS a, 2 AS a, 9007199254740993 AS big, NULL AS none;'), /^1 row/);
  assert.deepEqual((await answer(page)).rows, [['1', '2', '9007199254740993', 'NULL']]);
  assert.match(await ask(page, 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) SELECT x FROM n'), /^The first 10,000 rows/);

  // What does not end can be stopped, and the next is answered.
  await page.focus('#sql-text');
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText('WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Stop' }).click();
  await settled(page);
  assert.match(await page.textContent('[role=alert]'), /Stopped/);
  assert.match(await ask(page, questions[0].sql), /^[\d,]+ rows?,/);

  // A link with a question shows its answer.
  const address = await page.evaluate(() => location.href);
  const other = await openWatched(context, file);
  await other.goto(address);
  await other.reload();
  await other.waitForSelector(`${ANSWER} tbody tr[data-row]`);
  assert.deepEqual((await answer(other)).columns, questions[0].columns);
  assert.deepEqual([...page.trouble, ...other.trouble], [], 'no message on the console, no request');
  console.log(`${questions.length} questions answered as by lockstep query`);
});
