// Exercises the page of a command other than `analyze`: node answer_page.mjs PAGE.html [SCREENSHOT FOLDER [NAME]]
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { COLOR_RULES, narrowWindows, openWatched, violations, withBrowser } from './browser.mjs';

const [file, pictures, name = ''] = process.argv.slice(2);

const seen = [];
for (const colorScheme of ['light', 'dark']) {
  await withBrowser({ colorScheme }, async (context) => {
    const page = await openWatched(context, file);
    await page.waitForSelector('.view h2');
    const views = await page.$$eval('nav a', (links) => links.map((link) => link.getAttribute('href')));
    assert.ok(views.length >= 3);
    const [open, ...others] = views;
    const goTo = async (view) => {
      await page.focus(`nav a[href="${view}"]`);
      await page.keyboard.press('Enter');
      await page.waitForFunction((to) => location.hash === to, view);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    };
    for (const view of [...others, open]) {
      await goTo(view);
      const text = await page.$eval('#main', (main) => main.innerText);
      assert.ok(!/NaN|undefined|Infinity|\[object|could not be drawn/.test(text), `${view}: ${text.slice(0, 400)}`);
      const figures = page.locator('.figure');
      for (let at = 0; at < (await figures.count()); ++at) {
        const toggle = figures.nth(at).locator('button[aria-pressed]').filter({ hasText: /^Table$/ });
        await toggle.focus();
        await page.keyboard.press('Enter');
        assert.equal(await figures.nth(at).locator('table').count(), 1, `${view}: figure ${at} as a table`);
        await page.keyboard.press('Enter');
      }
      assert.deepEqual(await violations(page, colorScheme === 'dark' ? COLOR_RULES : null), [], `${view}, ${colorScheme}`);
      if (pictures) await page.screenshot({ path: join(pictures, `${name}${view.replace(/\W/g, '')}-${colorScheme}.png`) });
      seen.push(`${view} ${colorScheme}`);
    }
    if (colorScheme === 'light') {
      await page.emulateMedia({ media: 'print' });
      await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
      assert.equal(await page.locator('article.view').count(), views.length, 'all views are on the paper');
      await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
      await page.emulateMedia({ media: null });
    }
    if (colorScheme === 'light') await narrowWindows(page, [...others, open], goTo);
    if (views.includes('#/names')) {
      await page.evaluate(() => void (location.hash = '#/names'));
      const search = page.locator('#view-names input[type="search"]');
      await search.fill('no such kernel');
      await page.waitForFunction(() => document.querySelectorAll('#view-names tbody [data-row]').length === 0);
    }
    assert.deepEqual(page.trouble, []);
  });
}
await withBrowser({ javaScriptEnabled: false }, async (context) => {
  const page = await openWatched(context, file);
  assert.ok((await page.innerText('#summary')).length > 80, 'without a script there is the summary');
  assert.deepEqual(page.trouble, []);
});
console.log(`${seen.length} views drawn without trouble`);
