// The live page while a part of the job cannot be heard: node live_outages.mjs ADDRESS 'JSON'. The JSON says `outages`, of the second of two nodes with two ranks
// each: the command that begins one, the command that ends it, and how many seconds it lasts at least; `pictures`: a folder for screenshots.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { withBrowser } from './browser.mjs';

const [address, json] = process.argv.slice(2);
const { outages, pictures = '' } = JSON.parse(json);
const { hostname, port, searchParams } = new URL(address);

/** Asks for the stream and reads nothing of it: the server must neither wait for it nor keep everything for it. */
const deaf = connect(Number(port), hostname);
deaf.pause();
deaf.write(`GET /api/live/events?token=${searchParams.get('token')} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
deaf.on('error', () => {}); // It may be hung up on.

const STATE = 2;
const states = (page) => page.$$eval('[aria-labelledby="ranks-caption"] tbody tr[data-row]', (rows, at) => Object.fromEntries(rows.map((row) => [row.cells[0].innerText.trim(), row.cells[at].innerText.trim()])), STATE);
const show = async (page, view) => {
  await page.evaluate((to) => void (location.hash = to), `#/${view}`);
  await page.waitForSelector(`#view-${view}`);
};
const waitForStates = (page, wanted) => page.waitForFunction(([ranks, at]) => {
  const rows = [...document.querySelectorAll('[aria-labelledby="ranks-caption"] tbody tr[data-row]')];
  const found = Object.fromEntries(rows.map((row) => [row.cells[0].innerText.trim(), row.cells[at].innerText.trim()]));
  return Object.entries(ranks).every(([rank, states]) => states.includes(found[rank]));
}, [wanted, STATE]);

await withBrowser({}, async (context) => {
  context.setDefaultTimeout(240_000); // A stream that was cut off sends again later and later.
  const page = await context.newPage();
  const trouble = [];
  page.on('pageerror', (error) => trouble.push(error.message));
  await page.goto(address);
  const moves = ['runs', 'waits', 'slow'];
  const well = { 0: moves, 1: moves, 2: moves, 3: moves };
  await waitForStates(page, well);
  for (const { name, begin, end, least_s } of outages) {
    execFileSync(begin[0], begin.slice(1));
    const began = Date.now();
    await waitForStates(page, { 2: ['unheard'], 3: ['unheard'] });
    assert.ok(!['unheard', 'silent'].includes((await states(page))['0']), 'the other node is heard');
    // The sentence says so, or that the ranks which are heard are stuck without the others.
    await page.waitForFunction(() => /^(No figures from ranks 2 and 3: node2 has not answered for|Ranks? .* stuck: no step has ended for|Rank .* holds the job up)/.test(document.querySelector('.verdict h3').innerText));
    await show(page, 'quality');
    await page.waitForFunction((seconds) => Number(/node2 has not answered for ([\d.]+) s/.exec(document.getElementById('view-quality').innerText)?.[1] ?? 0) >= seconds, Math.max(least_s - 5, 1));
    if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
    await page.waitForTimeout(Math.max(0, least_s * 1000 - (Date.now() - began)));
    execFileSync(end[0], end.slice(1));
    await page.waitForFunction(() => !/node2 has not answered/.test(document.getElementById('view-quality').innerText));
    await show(page, 'job');
    await waitForStates(page, well);
    await page.waitForFunction(() => !/No figures|stuck/.test(document.querySelector('.verdict h3').innerText));
    await show(page, 'health');
    await page.waitForFunction(() => /node_unheard\s+ended\s+node2 does not answer/.test(document.querySelector('[aria-labelledby="log-caption"]').innerText));
    await show(page, 'job');
    console.log(`${name}: said, and seen to go on`);
  }
  assert.equal(await page.locator('.banner').count(), 0);
  assert.deepEqual(trouble, []);
});
deaf.destroy();
