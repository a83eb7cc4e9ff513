// Exercises one report page in Chromium, as a reader would: node page.mjs PAGE.html|ADDRESS [ANSWER.json]
// ANSWER.json is what `lockstep analyze --json` says of the same run.
import { readFileSync, rmSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import assert from 'node:assert/strict';
import { COLOR_RULES, narrowWindows, openWatched, settled, violations, withBrowser } from './browser.mjs';

const [file, answerFile] = process.argv.slice(2);
const answer = answerFile ? JSON.parse(readFileSync(answerFile, 'utf8')) : null;
const downloads = mkdtempSync(join(tmpdir(), 'lockstep-downloads-'));

/** The list of views as it stands in the navigation. */
const views = (page) => page.$$eval('nav a', (links) => links.map((link) => link.getAttribute('href')));

async function goTo(page, hash) {
  await page.evaluate((to) => void (location.hash = to), hash);
  await page.waitForFunction((to) => location.hash.startsWith(to), hash);
  await settled(page);
}

const BURST = 10;
const saved_ms = [];

async function save(page, click) {
  // Chromium drops the eleventh file that a page hands over within a second (LocalFrame::ShouldThrottleDownload), and says nothing.
  const left_ms = (saved_ms.at(-BURST) ?? -Infinity) + 1100 - performance.now();
  if (left_ms > 0) await page.waitForTimeout(left_ms);
  const [download] = await Promise.all([page.waitForEvent('download'), click()]);
  const path = join(downloads, download.suggestedFilename());
  await download.saveAs(path);
  saved_ms.push(performance.now());
  return { name: download.suggestedFilename(), bytes: readFileSync(path) };
}

/** What a view says to a reader who does not see its pictures. */
const words = (page) => page.$eval('#main', (main) => main.innerText);

async function everyView(page) {
  // The first is on the screen already: it comes last.
  const [open, ...others] = await views(page);
  for (const view of [...others, open]) {
    // By keyboard: from the link, with Enter; reading goes on at the heading of the new view.
    await page.focus(`nav a[href="${view}"]`);
    await page.keyboard.press('Enter');
    await page.waitForFunction((to) => location.hash === to, view);
    await settled(page);
    const heading = await page.$eval('.view h2', (element) => element.textContent);
    assert.ok(heading.length > 3, view);
    assert.equal(await page.$eval('nav a[aria-current="page"]', (link) => link.getAttribute('href')), view);
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'H2', `${view}: focus is at the heading`);
    assert.ok((await page.$eval('.shows', (line) => line.textContent.length)) > 20, `${view}: says what it shows`);
    assert.ok((await page.title()).startsWith(heading), view);

    for (const figure of await page.$$('.figure')) {
      const title = await figure.$eval('h3', (element) => element.textContent);
      const summary = await figure.$eval('.figure-summary', (element) => element.textContent);
      assert.ok(summary.length > 20, `${view}: ${title} has a summary`);
      assert.ok(!/NaN|undefined|Infinity|\[object/.test(await figure.innerText()), `${view}: ${title}: ${summary}`);
    }
    // Each picture as a table and back, by keyboard; the address says so in between.
    const count = await page.locator('.figure').count();
    for (let at = 0; at < count; ++at) {
      const toggle = page.locator('.figure').nth(at).locator('button[aria-pressed]').filter({ hasText: /^Table$/ });
      await toggle.focus();
      await page.keyboard.press('Enter');
      assert.ok((await page.locator('.figure').nth(at).locator('table').count()) === 1, `${view}: figure ${at} has a table`);
      assert.match(await page.evaluate(() => location.hash), /\.as=table/);
      await page.keyboard.press('Enter');
      assert.ok(!/\.as=table/.test(await page.evaluate(() => location.hash)));
    }
    await settled(page);
    assert.ok(!/NaN|undefined|Infinity|\[object/.test(await words(page)), `${view} shows a value that is none`);
    assert.equal(await page.$eval('main', (main) => main.querySelectorAll('[role="alert"]').length), 0, `${view} could be drawn`);
    assert.deepEqual(await violations(page), [], view);

    // Links lead somewhere; the same for a view whose pictures are all shown as tables.
    const known = await views(page);
    for (const link of await page.$$eval('main a[href^="#/"]', (links) => links.map((each) => each.getAttribute('href').split('?')[0]))) {
      assert.ok(known.includes(link), `${view}: ${link} leads to no view`);
    }
    const toggles = page.locator('.figure button[aria-pressed]').filter({ hasText: /^Table$/ });
    for (let at = 0; at < (await toggles.count()); ++at) await toggles.nth(at).click();
    await settled(page);
    assert.deepEqual(await violations(page), [], `${view} as tables`);
    assert.ok(!/NaN|undefined|Infinity|\[object/.test(await words(page)), `${view} shows a value that is none in a table`);
    for (let at = 0; at < (await toggles.count()); ++at) await toggles.nth(at).click();
  }
}

/** A theme changes colours and nothing else: whether they can be told apart in the other one too. */
async function everyViewsColors(page) {
  for (const view of await views(page)) {
    await goTo(page, view);
    assert.equal(await page.$eval('main', (main) => main.querySelectorAll('[role="alert"]').length), 0, `${view} could be drawn`);
    assert.deepEqual(await violations(page, COLOR_RULES), [], view);
    const toggles = await page.locator('.figure button[aria-pressed]').filter({ hasText: /^Table$/ }).all();
    for (const toggle of toggles) await toggle.click();
    if (toggles.length === 0) continue;
    await settled(page);
    assert.deepEqual(await violations(page, COLOR_RULES), [], `${view} as tables`);
  }
}

async function addressRoundTrip(page, address) {
  for (const view of await views(page)) {
    await goTo(page, view);
    // Choices: the last option of each, as far as it is not on.
    for (const group of await page.$$('fieldset.choice')) {
      const last = (await group.$$('input')).pop();
      await last.evaluate((input) => input.click());
    }
    for (const select of await page.$$('main select')) {
      await select.evaluate((element) => {
        element.selectedIndex = element.options.length - 1;
        element.dispatchEvent(new Event('input', { bubbles: true }));
        element.dispatchEvent(new Event('change', { bubbles: true }));
      });
    }
    await settled(page);
    const hash = await page.evaluate(() => location.hash);
    const before = await words(page);
    await page.goto('about:blank');
    await page.goto(address + hash);
    await settled(page);
    assert.equal(await page.evaluate(() => location.hash), hash);
    assert.equal(await words(page), before, `${hash} shows the same when it is opened again`);
  }
  for (const odd of ['#/no-such-view', '#/%E0%A4%A', '#/kernels?open=nothing&kernels.sort=-nothing', '#/steps?rank=99999']) {
    await page.goto('about:blank');
    await page.goto(address + odd);
    await settled(page);
  }
}

async function tables(page) {
  if (await page.$eval('nav a[href="#/operators"]', (link) => link.classList.contains('dim')).catch(() => true)) return;
  await goTo(page, '#/operators');
  const first = () => page.locator('tbody tr[data-row="0"]').first().innerText();
  const start = await first();
  const heading = page.getByRole('button', { name: /^Count/ });
  await heading.focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('th[aria-sort="descending"]').innerText().then((text) => /Count/.test(text)), true);
  const most = await first();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('th[aria-sort="ascending"]').count(), 1);
  const least = await first();
  const total = Number((await page.locator('table').first().getAttribute('aria-rowcount'))) - 1;
  if (total > 3) assert.notEqual(most, least);
  assert.match(await page.evaluate(() => location.hash), /operators\.sort=count/);
  await goTo(page, '#/operators');

  // Search: fewer rows, each with the word; nothing found says so.
  const word = start.split('\t')[0].slice(0, 6);
  await page.fill('input[type="search"]', word);
  await settled(page);
  const kept = await page.$$eval('tbody tr[data-row] td:first-child', (cells) => cells.map((cell) => `${cell.textContent} ${cell.title}`));
  assert.ok(kept.length > 0 && kept.length <= total);
  await page.fill('input[type="search"]', 'there is no such operator');
  assert.equal(await page.locator('tbody tr[data-row]').count(), 0);
  assert.match(await words(page), /Nothing matches/);
  await page.fill('input[type="search"]', '');

  // Rows by keyboard: down, End, Home; Enter opens the details.
  await page.locator('tr[data-row="0"] .row-button').focus();
  const at = () => page.evaluate(() => Number(document.activeElement?.closest('tr')?.dataset.row ?? -1));
  await page.keyboard.press('ArrowDown');
  assert.equal(await at(), Math.min(1, total - 1));
  await page.keyboard.press('End');
  await page.waitForFunction((row) => Number(document.activeElement?.closest('tr')?.dataset.row) === row, total - 1);
  await page.keyboard.press('Home');
  await page.waitForFunction(() => document.activeElement?.closest('tr')?.dataset.row === '0');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.details').count(), 1);
  assert.match(await page.evaluate(() => location.hash), /open=/);
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.details').count(), 0);
}

/** Rows of a table as its CSV file has them, headings first. */
async function csvOf(page, title) {
  const csv = (await save(page, () => page.getByRole('button', { name: `Save as CSV: ${title}` }).click())).bytes.toString();
  return csv.trim().split('\r\n').map((line) => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map((m) => m[1].replace(/^"|"$/g, '').replaceAll('""', '"')));
}

/** A ratio as texts have it, for a regular expression. */
const spoken = (ratio) => (ratio === 0 ? '0' : ratio < 0.001 ? '<0\\.1' : (100 * ratio).toFixed(ratio < 0.0995 ? 1 : 0).replace('.', '\\.')) + ' %';

/** The same of tables that answer why: `fields` of each row in the order of the answer. */
async function sameTable(page, view, title, rows, fields) {
  if (rows.length === 0) return;
  await goTo(page, view);
  const [head, ...lines] = await csvOf(page, title);
  assert.deepEqual(lines.map((line) => fields.map((field) => Number(line[head.indexOf(field)]))), rows.map((row) => fields.map((field) => row[field])), `${view}: ${title}`);
}

/** What the page says equals what the command says. */
async function sameAsAnswer(page) {
  if (!answer) return;
  await goTo(page, '#/verdict');
  const titles = await page.$$eval('.finding h3', (headings) => headings.map((heading) => heading.textContent));
  assert.deepEqual(titles, answer.data.findings.map((finding) => finding.title));

  // A headline's share is its finding's, and every rank is drawn where there are few.
  for (const line of await page.$$eval('.verdict > p', (lines) => lines.map((each) => each.innerText.split('\n')))) {
    const finding = answer.data.findings.find((each) => each.title === line[0]);
    if (!finding) continue; // Nothing stands out.
    const share = finding.gain_ratio === null ? null : new RegExp(`costs up to ${spoken(finding.gain_ratio)} of (a step|this window)`, 'i');
    if (share) assert.match(line[1].replace(/\s/g, ' '), share);
    else assert.equal(line.length > 1, finding.gain_ns_per_step > 0, line.join(': '));
  }
  const time = page.locator('section[aria-labelledby="time-title"]');
  if ((await time.count()) > 0) {
    const drawn = (await time.locator('svg text').allTextContents()).filter((label) => /^rank \d/.test(label)).length;
    const said = /Drawn: the mean, and (\d+) of ([\d,]+) ranks/.exec((await time.locator('.figure-summary').innerText()).replace(/\s/g, ' '));
    const known = Number(/mean of ([\d,]+) rank/.exec((await time.locator('.figure-summary').innerText()).replace(/\s/g, ' '))[1].replaceAll(',', ''));
    if (said) assert.equal(drawn, Number(said[1]));
    else assert.ok(drawn === known || known === 1 || drawn === 0 && known > 8, `${drawn} of ${known} ranks are drawn, and nobody says so`);
  }

  const { data } = answer;
  await sameTable(page, '#/causes', 'First causes of waiting', data.wait_states?.causes ?? [], ['direct_wait_ns', 'propagated_wait_ns', 'wait_ratio', 'own_ns', 'peers_ns']);
  await sameTable(page, '#/regions', 'Regions over ranks', data.region_balance ?? [], ['rank_count', 'count', 'mean_total_ns', 'total_imbalance']);
  await sameTable(page, '#/bandwidth', 'Share of the fabric', data.fabric ?? [], ['group_size', 'bytes', 'count', 'transfer_ns', 'busbw_median_bytes_per_s', 'fabric_busbw_bytes_per_s', 'ratio']);
  await sameTable(page, '#/measured-kernels', 'Measured launches', data.kernel_launches ?? [], ['id', 'duration_ns', 'compute_ratio', 'memory_ratio']);
  await sameTable(page, '#/measured-kernels', 'Sums of names', data.kernel_sums ?? [], ['total_ns', 'count', 'max_ns', 'report_count']);
  await sameTable(page, '#/what-if', 'What each change would gain', data.what_if?.levers ?? [], ['step_ns', 'gain_ns', 'gain_ratio']);
  const counters = data.counter_balance ?? [];
  if (counters.length > 1) await sameTable(page, '#/counters', 'Means over time, of all ranks', counters, ['series_count', 'mean', 'lowest_mean', 'highest_mean']);
  const steps = data.critical_path?.steps ?? [];
  if (steps.length > 1) await sameTable(page, '#/critical-path', 'Step by step', steps, ['step_ns', 'path_ns', 'unmatched_count']);

  const bySource = new Map();
  for (const row of answer.data.operators ?? []) {
    const sum = bySource.get(row.name) ?? { count: 0, cpu_self_ns: 0 };
    sum.count += row.count;
    sum.cpu_self_ns += row.cpu_self_ns;
    bySource.set(row.name, sum);
  }
  if (bySource.size > 0) {
    await goTo(page, '#/operators');
    const [head, ...lines] = await csvOf(page, 'Operators, all ranks');
    assert.equal(lines.length, bySource.size);
    for (const line of lines) {
      const sum = bySource.get(line[0]) ?? bySource.get(line[0].slice(1));
      assert.ok(sum, line[0]);
      assert.equal(Number(line[head.indexOf('count')]), sum.count, line[0]);
      assert.equal(Number(line[head.indexOf('cpu_self_ns')]), sum.cpu_self_ns, line[0]);
    }
  }
}

async function pictures(page) {
  for (const view of await views(page)) {
    await goTo(page, view);
    for (const png of await page.getByRole('button', { name: /^Save as PNG/ }).all()) await picture(page, view, png);
  }
}

async function picture(page, view, png) {
  const saved = await save(page, () => png.click());
  assert.match(saved.name, /^lockstep-.*\.png$/);
  assert.deepEqual([...saved.bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  // Not one colour all over: bars were drawn into it.
  const colors = await page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.width;
    canvas.height = image.height;
    const draw = canvas.getContext('2d');
    draw.drawImage(image, 0, 0);
    const pixels = draw.getImageData(0, 0, image.width, image.height).data;
    const seen = new Set();
    for (let i = 0; i < pixels.length; i += 4 * 37) seen.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
    return seen.size;
  }, saved.bytes.toString('base64'));
  assert.ok(colors >= 3, `${view}: ${colors} colours in the picture`);
}

async function printed(page) {
  // As a reader who has just opened it.
  await page.goto('about:blank');
  await page.goto(address);
  await settled(page);
  // Small pages unpack what the paper shows, larger and served ones when it is looked at.
  const ready = await (await page.waitForFunction(() => ['ready', 'on demand'].find((state) => state === document.documentElement.dataset.paper))).jsonValue();
  const known = (await views(page)).length;
  await page.evaluate(() => {
    window.addEventListener('beforeprint', () => {
      window.viewsOnPaper = document.querySelectorAll('.view').length;
      window.themeOnPaper = document.documentElement.dataset.theme;
      window.waitingOnPaper = [...document.querySelectorAll('main [role="status"]')].map((line) => line.textContent).filter((text) => text.startsWith('Unpacking'));
      window.blankOnPaper = [...document.querySelectorAll('main canvas')].filter((canvas) => {
        if (canvas.width === 0 || canvas.height === 0) return true;
        const copy = document.createElement('canvas');
        copy.width = copy.height = 64;
        const draw = copy.getContext('2d');
        draw.drawImage(canvas, 0, 0, 64, 64);
        return draw.getImageData(0, 0, 64, 64).data.every((value) => value === 0);
      }).map((canvas) => canvas.closest('.view')?.id);
    });
  });
  const pdf = await page.pdf({ format: 'A4', printBackground: true });
  assert.equal(pdf.subarray(0, 5).toString(), '%PDF-');
  assert.ok((pdf.toString('latin1').match(/\/Type\s*\/Page\b/g) ?? []).length >= 2, 'more than one sheet');
  assert.equal(await page.evaluate(() => window.viewsOnPaper), known, 'all views are on the paper');
  assert.equal(await page.evaluate(() => window.themeOnPaper), 'light');
  if (ready === 'ready') assert.deepEqual(await page.evaluate(() => window.waitingOnPaper), []);
  assert.deepEqual(await page.evaluate(() => window.blankOnPaper), [], 'no picture is blank');
  await settled(page);
  assert.equal(await page.locator('.view').count(), 1, 'and one on the screen again');
}

async function theme(page, address) {
  const now = () => page.evaluate(() => document.documentElement.dataset.theme);
  const before = await now();
  await page.getByRole('button', { name: /theme$/ }).focus();
  await page.keyboard.press('Enter');
  const after = await now();
  assert.notEqual(after, before);
  await page.goto('about:blank');
  await page.goto(address);
  await settled(page);
  assert.equal(await now(), after, 'the choice is remembered');
  await page.getByRole('button', { name: /theme$/ }).click();
}

const address = file.startsWith('http') ? file : pathToFileURL(file).href;
const parts = process.env.PARTS?.split(',');
const wanted = (name) => !parts || parts.includes(name);
async function step(page, name, run) {
  if (!wanted(name)) return;
  const start = Date.now();
  try {
    await run();
  } catch (error) {
    console.log(`FAILED ${name} at ${page.url().slice(-80)}: ${page.trouble.join('; ') || 'the page says nothing'}`);
    throw error;
  }
  console.log(`ok ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
}

for (const colorScheme of ['light', 'dark']) {
  await withBrowser({ colorScheme, reducedMotion: 'reduce', acceptDownloads: true }, async (context) => {
    // What a server sends is late, as over a network: a view has to say so until it is there.
    if (file.startsWith('http')) await context.route(`${new URL('data/', address).href}**`, (route) => setTimeout(() => route.continue().catch(() => {}), 150));
    const page = await openWatched(context, file);
    await settled(page);
    if (colorScheme === 'light') {
      await step(page, 'every view', () => everyView(page));
      await step(page, 'tables', () => tables(page));
      await step(page, 'same as the answer', () => sameAsAnswer(page));
      await step(page, 'pictures', () => pictures(page));
      await step(page, 'narrow windows', async () => narrowWindows(page, await views(page), (view) => goTo(page, view)));
      await step(page, 'theme', () => theme(page, address));
      await step(page, 'address', () => addressRoundTrip(page, address));
    }
    if (colorScheme === 'dark') {
      await step(page, 'colours', () => everyViewsColors(page));
      await step(page, 'print', () => printed(page));
    }
    assert.deepEqual(page.trouble, [], 'no message on the console, no request');
  });
}
await withBrowser({ javaScriptEnabled: false }, async (context) => {
  const page = await openWatched(context, file);
  await step(page, 'no script', async () => {
    const text = await page.innerText('#summary');
    assert.ok(await page.isVisible('#summary'));
    assert.ok(text.length > 100, text);
    if (answer) for (const finding of answer.data.findings.slice(0, 1)) assert.ok(text.includes(finding.title), text);
    assert.deepEqual(page.trouble, []);
  });
});
rmSync(downloads, { recursive: true, force: true });
