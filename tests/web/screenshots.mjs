// node screenshots.mjs PAGES IMAGES: a picture of each view for docs/views.md and docs/hangs.md. PAGES has recorded.html,
// dlrm.html, memory.html, profiled.html, counting.html, serving.html, compare.html, scaling.html, hang.html, deadlock.html, or some of them.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openWatched, withBrowser } from './browser.mjs';

const [pages, images] = process.argv.slice(2);
const LARGEST = 150_000;
const WIDTH = 1180;
const TALLEST = 740;

// Which run shows a view best, and with which choices. Views that are not here are taken from the first page that has them.
const SHOTS = [
  { view: 'verdict', page: 'recorded' },
  { view: 'steps', page: 'recorded' },
  { view: 'heatmap', page: 'recorded' },
  { view: 'critical-path', page: 'recorded' },
  { view: 'causes', page: 'recorded' },
  { view: 'what-if', page: 'recorded' },
  { view: 'groups', page: 'recorded' },
  { view: 'groups', page: 'memory', name: 'groups-dark', theme: 'dark' },
  { view: 'operators', page: 'recorded' },
  { view: 'regions', page: 'recorded' },
  { view: 'tables', page: 'dlrm', query: '?table=idle' },
  { view: 'measured-kernels', page: 'profiled' },
  { view: 'waits', page: 'dlrm' },
  { view: 'waterfall', page: 'dlrm' },
  { view: 'timeline', page: 'dlrm', query: '?t=9500000-14500000&open=1&row=1' },
  { view: 'timeline', page: 'dlrm', name: 'timeline-dark', theme: 'dark' },
  { view: 'memory', page: 'memory' },
  { view: 'counters', page: 'counting', query: '?counter=loss' },
  { view: 'kernels', page: 'dlrm', query: '?kernels.find=nccl&open=communication%3AncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*%2C+unsigned+long%2C+ncclWork*)' },
  { view: 'overlap', page: 'dlrm', name: 'overlap-dark', theme: 'dark' },
];
// Of pages of other commands, and of jobs made for one picture, only these are taken, under names of their own.
const OTHERS = [
  { page: 'compare', view: 'verdict', name: 'compare' },
  { page: 'compare', view: 'names', name: 'compare-names' },
  { page: 'scaling', view: 'curve', name: 'scaling' },
  { page: 'serving', view: 'timeline', name: 'timeline-arrows', query: '?open=0,1&row=0' },
  { page: 'hang', view: 'verdict', name: 'hang-verdict' },
  { page: 'hang', view: 'groups', name: 'hang-groups' },
  { page: 'hang', view: 'stacks', name: 'hang-stacks-dark', theme: 'dark' },
  { page: 'deadlock', view: 'cycle', name: 'hang-cycle' },
];
const ORDER = ['dlrm', 'recorded', 'memory', 'profiled', 'counting'].filter((name) => existsSync(join(pages, `${name}.html`)));

mkdirSync(images, { recursive: true });
let failed = false;

async function shoot(context, page, shot) {
  await page.goto('about:blank');
  await page.goto(`file://${join(pages, shot.page)}.html#/${shot.view}${shot.query ?? ''}`);
  await page.waitForFunction(() => document.querySelector('.view h2') && !/Unpacking .* …/.test(document.querySelector('main')?.textContent ?? ''));
  await page.waitForTimeout(400);
  await page.mouse.move(0, 0);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const image = await page.screenshot({ fullPage: true, clip: { x: 0, y: 0, width: WIDTH, height: Math.min(TALLEST, height) } });
  const file = `${shot.name ?? shot.view}.png`;
  writeFileSync(join(images, file), image);
  console.log(`${file}: ${shot.page}, ${image.length} bytes`);
  if (image.length > LARGEST) {
    console.error(`${file} is larger than ${LARGEST} bytes`);
    failed = true;
  }
}

for (const theme of ['light', 'dark']) {
  await withBrowser({ colorScheme: theme, viewport: { width: WIDTH, height: 640 }, reducedMotion: 'reduce' }, async (context) => {
    for (const name of ORDER) {
      const page = await openWatched(context, join(pages, `${name}.html`));
      await page.waitForSelector('nav a');
      const views = await page.$$eval('nav a:not(.dim)', (links) => links.map((link) => link.getAttribute('href').slice(2)));
      for (const view of views) {
        const planned = SHOTS.filter((shot) => shot.view === view && !shot.name);
        const first = ORDER[0] === name;
        const shots = planned.length > 0 ? planned.filter((shot) => shot.page === name) : first ? [{ view, page: name }] : [];
        for (const shot of theme === 'light' ? shots : []) await shoot(context, page, shot);
        for (const shot of SHOTS) if (shot.name && shot.view === view && shot.page === name && shot.theme === theme) await shoot(context, page, shot);
      }
      if (page.trouble.length > 0) {
        console.error(page.trouble.join('\n'));
        failed = true;
      }
      await page.close();
    }
    for (const shot of OTHERS.filter((each) => (each.theme ?? 'light') === theme && existsSync(join(pages, `${each.page}.html`)))) {
      const page = await openWatched(context, join(pages, `${shot.page}.html`));
      await shoot(context, page, shot);
      await page.close();
    }
  });
}
process.exit(failed ? 1 : 0);
