// Opens a large page from file:// in Chromium, visits every view, and measures what the page holds: JavaScript's heap, buffers, and
// the text of blocks that lies in the document. Prints a line per view; fails on trouble and on what is too large.
import { openWatched, withBrowser } from './browser.mjs';

const [file, most_mb] = [process.argv[2], Number(process.argv[3])];
const trouble = [];

await withBrowser({}, async (context) => {
  const page = await openWatched(context, file);
  const session = await context.newCDPSession(page);
  const measure = async (label) => {
    await session.send('HeapProfiler.collectGarbage');
    const heap = await session.send('Runtime.getHeapUsage');
    const text = await page.evaluate(() => [...document.querySelectorAll('script[type="application/x-lockstep"]')]
      .reduce((sum, element) => sum + element.textContent.length, 0));
    const megabytes = (heap.usedSize + (heap.embedderHeapUsedSize ?? 0) + (heap.backingStorageSize ?? 0) + text) / 1e6;
    console.log(`${label}: ${megabytes.toFixed(1)} MB, of which text of blocks ${(text / 1e6).toFixed(1)}`);
    if (megabytes > most_mb) trouble.push(`${label} holds ${megabytes.toFixed(1)} MB`);
  };
  await page.waitForSelector('a[href^="#/"]');
  await measure('opened');
  const links = await page.$$eval('a[href^="#/"]', (found) => [...new Set(found.map((link) => link.getAttribute('href')))]);
  if (links.length < 8) trouble.push(`only ${links.length} views`);
  for (const link of links) {
    await page.evaluate((hash) => { location.hash = hash; }, link);
    await page.waitForLoadState();
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300))));
    await measure(link);
  }
  trouble.push(...page.trouble);
});

for (const line of trouble) console.log(`FAIL ${line}`);
process.exit(trouble.length === 0 ? 0 : 1);
