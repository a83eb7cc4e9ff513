// Frames of the live page while a reader pans: node live_frames.mjs ADDRESS SECONDS. Prints how long the browser's frames took (from one to the next: 16.7 ms is
// a screen's own pace), how long the script drew, and how long an event was handled and drawn. Headless Chromium without a GPU: all is drawn by the processor.
import { withBrowser } from '../tests/web/browser.mjs';

const [address, seconds] = process.argv.slice(2);
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
const words = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return `median ${quantile(sorted, 0.5).toFixed(1)}, P95 ${quantile(sorted, 0.95).toFixed(1)}, longest ${sorted.at(-1).toFixed(1)} ms, n ${sorted.length}`;
};

await withBrowser({ viewport: { width: 1440, height: 900 } }, async (context) => {
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForSelector('.verdict h3');
  for (const [view, id] of [['heatmap?sort=worst', 'heat-grid'], ['stages', 'leaders-grid']]) {
    await page.evaluate((to) => void (location.hash = to), `#/${view}`);
    await page.waitForFunction((canvas) => Number(document.getElementById(canvas)?.dataset.draws ?? 0) > 0, id);
    await page.focus(`#${id}`);
    // A part of the picture, so that there is somewhere to pan to.
    for (let i = 0; i < 6; ++i) await page.keyboard.press('+');
    const frames = await page.evaluate(async ([canvas, ms]) => {
      const element = document.getElementById(canvas);
      const box = element.getBoundingClientRect();
      delete document.documentElement.dataset.tickMostMs;
      const gaps = [];
      const draws = [];
      let drawn = Number(element.dataset.draws);
      let direction = 1;
      const begin = performance.now();
      let last = begin;
      while (last - begin < ms) {
        element.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, shiftKey: true, deltaY: 25 * direction, clientX: box.x + box.width / 2, clientY: box.y + 40 }));
        const now = await new Promise(requestAnimationFrame);
        gaps.push(now - last);
        last = now;
        if (gaps.length % 60 === 0) direction = -direction;
        if (Number(element.dataset.draws) > drawn) draws.push(Number(element.dataset.drawMs));
        drawn = Number(element.dataset.draws);
      }
      return { gaps: gaps.slice(1), draws, tick: Number(document.documentElement.dataset.tickMostMs ?? 0) };
    }, [id, Number(seconds) * 1000]);
    console.log(`  ${view}: frame to frame while panning`.padEnd(58), words(frames.gaps));
    console.log(`  ${view}: the picture drawn`.padEnd(58), frames.draws.length > 0 ? words(frames.draws) : 'never');
    console.log(`  ${view}: an event handled and drawn, at most`.padEnd(58), `${frames.tick.toFixed(1)} ms`);
  }
});
