// Debian's Chromium, driven through playwright-core, with nothing of a user in it. LOCKSTEP_WEB names the folder whose
// node_modules has the packages of web/package.json.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const require = createRequire(join(process.env.LOCKSTEP_WEB ?? join(import.meta.dirname ?? '.', '../../web'), 'package.json'));
const { chromium } = require('playwright-core');

const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--disable-default-apps', '--disable-dev-shm-usage', '--hide-scrollbars', '--force-color-profile=srgb', '--disable-lcd-text',
];

export function chromiumPath() {
  return [process.env.LOCKSTEP_CHROMIUM, '/usr/bin/chromium'].find((path) => path && existsSync(path)) ?? null;
}

/** Runs `use` with a browser context in a new, empty profile; options are playwright's. */
export async function withBrowser(options, use) {
  const profile = mkdtempSync(join(tmpdir(), 'lockstep-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath(), headless: true, args: FLAGS, viewport: { width: 1280, height: 860 }, ...options,
  });
  // The deadline of what never comes; a machine that is busy with other tests takes its time.
  context.setDefaultTimeout(120_000);
  try {
    return await use(context);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/** A page that remembers what must not happen: messages on the console, errors, requests besides the file itself. */
export async function openWatched(context, file) {
  const page = await context.newPage();
  const address = file.startsWith('http') ? file : pathToFileURL(file).href;
  page.trouble = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.trouble.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => page.trouble.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    // What the page holds in itself (data:) and files that it hands to the reader (blob:) leave nothing.
    // A served page asks its own server for its data, and for nothing else.
    if (address.startsWith('http:') && url.startsWith(new URL('data/', address).href)) return;
    if (!url.startsWith('data:') && !url.startsWith('blob:') && url.split('#')[0] !== address) page.trouble.push(`request: ${url}`);
  });
  await page.goto(address);
  return page;
}

/** A tablet, 1280 x 860 at 200 %, a phone: nothing is wider than the window, and views begin on the first screen. */
export async function narrowWindows(page, views, goTo) {
  for (const [width, height] of [[1024, 768], [640, 430], [390, 844]]) {
    await page.setViewportSize({ width, height });
    for (const view of views) {
      await goTo(view);
      const { wide, top } = await page.evaluate(() => ({
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth, top: document.querySelector('.view h2').getBoundingClientRect().top + scrollY,
      }));
      if (wide > 1) throw new Error(`${view} is ${wide} px wider than a window of ${width} px`);
      if (top > height / 2) throw new Error(`${view} begins ${top} px down in a window of ${width} x ${height}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 860 });
}

const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
/** Rules of axe-core about colours: what another theme of a page may break. */
export const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

/** What axe-core finds in a page, by all its rules or by those named. */
export async function violations(page, rules = null) {
  // Put in from the outside, so the page's own policy stays in force for the page; once a document, half a megabyte that it is.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(`(() => { const module = undefined; ${axe} })()`);
  return page.evaluate((only) => window.axe.run(document, { resultTypes: ['violations'], ...only && { runOnly: only } })
    .then((result) => result.violations.map((each) => `${each.id} at ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 140)).join(' | ')}`)), rules);
}

/** A view is there with all that it unpacks. Drawn: a change is on the screen two frames later. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('.view h2') && !document.documentElement.dataset.pending &&
    !/Unpacking .* …/.test(document.querySelector('main')?.textContent ?? ''));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}
