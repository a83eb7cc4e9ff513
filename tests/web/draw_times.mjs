// How long the canvases take to draw: node draw_times.mjs PAGE.html. Prints, for each thing that a reader does, median and
// longest of some repetitions (the script's time; the machine's load is in them), and what the page holds afterwards.
import { openWatched, withBrowser } from './browser.mjs';

const [file] = process.argv.slice(2);

await withBrowser({}, async (context) => {
  const page = await openWatched(context, file);
  const session = await context.newCDPSession(page);
  await page.waitForSelector('nav a');
  const offered = new Set(await page.$$eval('nav a:not(.dim)', (links) => links.map((link) => link.getAttribute('href').slice(2))));
  const draws = (id) => page.$eval(`#${id}`, (canvas) => Number(canvas.dataset.draws ?? 0));
  const go = async (view, id) => {
    await page.evaluate((to) => void (location.hash = to), `#/${view}`);
    await page.waitForFunction((canvas) => Number(document.getElementById(canvas)?.dataset.draws ?? 0) > 0, id, { timeout: 60_000 });
    await page.waitForTimeout(800);
    await page.focus(`#${id}`);
  };
  const time = async (id, what, act, times = 12) => {
    const taken = [];
    for (let i = 0; i < times; ++i) {
      const before = await draws(id);
      await act(i);
      const drawn = await page.waitForFunction(([canvas, seen]) => Number(document.getElementById(canvas).dataset.draws) > seen, [id, before], { timeout: 2000 }).catch(() => null);
      if (!drawn) continue; // At an end of the run nothing moves.
      await page.waitForTimeout(50);
      taken.push(await page.$eval(`#${id}`, (canvas) => Number(canvas.dataset.drawMs)));
    }
    taken.sort((a, b) => a - b);
    if (taken.length > 0) console.log(`${id}, ${what}: median ${taken[taken.length >> 1].toFixed(1)} ms, longest ${taken.at(-1).toFixed(1)} ms of ${taken.length}`);
  };
  const keys = (...names) => (i) => page.keyboard.press(names[i % names.length]);
  const held = async (view) => {
    await session.send('HeapProfiler.collectGarbage');
    const heap = await session.send('Runtime.getHeapUsage');
    const rest = await page.evaluate(() => [...document.querySelectorAll('script[type="application/x-lockstep"]')].reduce((sum, each) => sum + each.textContent.length, 0)
      + [...document.querySelectorAll('canvas')].reduce((sum, canvas) => sum + canvas.width * canvas.height * 4, 0));
    console.log(`${view}: holds ${((heap.usedSize + (heap.embedderHeapUsedSize ?? 0) + (heap.backingStorageSize ?? 0) + rest) / 1e6).toFixed(0)} MB`);
  };

  if (offered.has('heatmap')) {
    await go('heatmap', 'heat-map');
    await time('heat-map', 'cursor', keys('ArrowRight', 'ArrowDown'));
    await time('heat-map', 'zoom', keys('+', '-'));
    await page.keyboard.press('0');
    await time('heat-map', 'sort', (i) => page.locator('input[name="heat-sort"]').nth((i + 1) % 3).evaluate((input) => input.click()), 6);
    await time('heat-map', 'colour', (i) => page.locator('main select').first().selectOption({ index: (i + 1) % 6 }), 6);
    await held('heatmap');
  }
  if (offered.has('waits')) {
    await go('waits', 'wait-matrix');
    await time('wait-matrix', 'cursor', keys('ArrowRight', 'ArrowDown'));
    await time('wait-matrix', 'zoom', keys('+', '-'));
    await held('waits');
  }
  if (offered.has('waterfall')) {
    await go('waterfall', 'waterfall-canvas');
    await time('waterfall-canvas', 'cursor', keys('ArrowDown'));
    await held('waterfall');
  }
  if (offered.has('timeline')) {
    await go('timeline', 'timeline-canvas');
    await time('timeline-canvas', 'all ranks, near the whole run', keys('w', 'd', 'a', 's'), 16);
    await time('timeline-canvas', 'all ranks, zooming in', keys('w'), 24);
    await page.keyboard.press('0');
    await page.keyboard.press('Enter');
    await page.waitForTimeout(800);
    await time('timeline-canvas', 'a rank open, zooming in to single kernels', keys('w'), 24);
    await time('timeline-canvas', 'a rank open, zooming out', keys('s'), 24);
    await page.locator('input[name="timeline-rows"][value="tall"]').evaluate((input) => input.click());
    await page.focus('#timeline-canvas');
    await time('timeline-canvas', 'tall lines, zooming in to single kernels', keys('w'), 24);
    await time('timeline-canvas', 'tall lines, moving', keys('d', 'a'));
    await held('timeline');
  }
  for (const line of page.trouble) console.log(`FAIL ${line}`);
  process.exitCode = page.trouble.length > 0 ? 1 : 0;
});
