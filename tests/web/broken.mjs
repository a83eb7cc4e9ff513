// A page whose data is missing keeps its summary and says what is wrong.
import assert from 'node:assert/strict';
import { openWatched, withBrowser } from './browser.mjs';

await withBrowser({}, async (context) => {
  const page = await openWatched(context, process.argv[2]);
  await page.waitForSelector('[role="alert"]');
  assert.match(await page.innerText('[role="alert"]'), /no data/);
  assert.ok(await page.locator('#summary').evaluate((summary) => getComputedStyle(summary).display !== 'none'));
  assert.deepEqual(page.trouble.filter((line) => line.startsWith('request')), []);
});
console.log('ok');
