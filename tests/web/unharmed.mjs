// A name of a trace that is markup stays text: nothing of it ran, nothing of it became an element.
import assert from 'node:assert/strict';
import { openWatched, withBrowser } from './browser.mjs';

const [file] = process.argv.slice(2);
for (const javaScriptEnabled of [true, false]) {
  await withBrowser({ javaScriptEnabled }, async (context) => {
    const page = await openWatched(context, file);
    if (javaScriptEnabled) {
      for (const view of await page.$$eval('nav a', (links) => links.map((link) => link.getAttribute('href')))) {
        await page.evaluate((to) => void (location.hash = to), view);
        await page.waitForTimeout(100);
        assert.equal(await page.evaluate(() => window.bad), undefined, view);
        assert.equal(await page.locator('img').count(), 0, view);
      }
      await page.evaluate(() => void (location.hash = '#/kernels'));
      await page.waitForSelector('td');
      assert.ok((await page.innerText('main')).includes('<script>window.bad=1'), 'the name is shown as it is');
    }
    assert.equal(await page.locator('img').count(), 0);
    assert.deepEqual(page.trouble, []);
  });
}
console.log('ok');
