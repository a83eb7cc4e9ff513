// A page of `lockstep hang` of very many ranks whose names are markup: node hang_page.mjs PAGE.html CULPRIT GROUP
import assert from 'node:assert/strict';
import { openWatched, withBrowser } from './browser.mjs';

const [file, culprit, group] = process.argv.slice(2);
const unharmed = async (page, where) => {
  assert.equal(await page.evaluate(() => window.bad), undefined, where);
  assert.equal(await page.locator('img, iframe, object').count(), 0, where);
};
const show = async (page, hash) => {
  await page.evaluate((to) => void (location.hash = to), hash);
  await page.waitForFunction((id) => document.getElementById(`view-${id}`), /^#\/([a-z]+)/.exec(hash)[1]);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
};

await withBrowser({ colorScheme: 'light' }, async (context) => {
  const page = await openWatched(context, file);
  await page.waitForSelector('.verdict');
  const views = await page.$$eval('nav a', (links) => links.map((link) => link.getAttribute('href')));
  for (const view of views) {
    await show(page, view);
    await unharmed(page, view);
  }

  // The culprit's cell is framed although it is less than a pixel wide, in the colour that nothing else has.
  await show(page, '#/groups');
  const critical = () => page.$eval('#groups-grid', (canvas) => {
    const wanted = getComputedStyle(document.documentElement).getPropertyValue('--critical').trim();
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) ++count;
    return count;
  });
  assert.ok(await critical() >= 40, 'an arrow and a frame');
  const ranks = Number(/(\d[\d,]*) ranks/.exec(await page.innerText('.facts'))[1].replace(',', ''));
  assert.ok(ranks >= 1000);

  // The cell is found by the keyboard, says what it is, and opens.
  const status = () => page.innerText('#groups-grid-status');
  await page.focus('#groups-grid');
  await page.keyboard.press('Home');
  await page.waitForFunction(() => /Rank 0 /.test(document.getElementById('groups-grid-status').innerText));
  await page.locator('#view-groups button', { hasText: /^Table$/ }).click();
  await page.fill('#view-groups input[type="search"]', 'has not called');
  await page.waitForFunction((rank) => {
    const rows = [...document.querySelectorAll('#view-groups tbody tr[data-row]')];
    return rows.length === 1 && rows[0].cells[1].innerText === rank;
  }, culprit);
  assert.ok((await page.innerText('#view-groups tbody')).includes(group), 'the hostile name is shown as it is');
  await page.locator('#view-groups button', { hasText: /^Table$/ }).click();
  await page.focus('#groups-grid');
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#view-groups .details');
  assert.match(await status(), /^Rank \d+ /);

  // The sentence of a rank on the timeline; the order puts who fell silent first on top.
  await show(page, '#/silence');
  await page.focus('#silence-lines');
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(() => /^Rank \d+ \(/.test(document.getElementById('silence-lines-status').innerText));

  // On paper all views stand below each other, in light colours.
  await page.emulateMedia({ media: 'print' });
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  assert.equal(await page.locator('article.view').count(), views.length);
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  await unharmed(page, 'print');
  assert.deepEqual(page.trouble, []);
});

await withBrowser({ javaScriptEnabled: false }, async (context) => {
  const page = await openWatched(context, file);
  const text = await page.innerText('main');
  assert.match(text, /Verdict/);
  assert.match(text, new RegExp(`\\b${culprit}\\b`));
  assert.match(text, /What to try/);
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(page.trouble, []);
});
console.log('ok');
