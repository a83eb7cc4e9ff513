// The live page, exercised: node live_page.mjs ADDRESS 'JSON'. The JSON says what is there: `ranks`, `slow` (the rank that holds the others up),
// `node_count`; `captures`: there are real processes to capture; `pictures`: a folder for screenshots; `fake`: the address is fake_live_server's,
// which can be told to change; `is_quick`: not every view; `devices`: per host how many GPUs, with a port mlx5_0:1, and `group_job`, a job with
// process groups; `engine`: the `job` of an inference engine, its `row` of the table by titles and what its pictures say (`says`), and of `host`
// GPUs and MIG instances as rows of `titles`.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { COLOR_RULES, violations, withBrowser } from './browser.mjs';

const [address, json] = process.argv.slice(2);
const { ranks, slow, node_count, captures = false, fake = false, engine = null, is_quick = false, devices = null, group_job = null, pictures = '', themes = ['light', 'dark'] } = JSON.parse(json);
const origin = new URL(address).origin;
const VIEWS = ['job', 'stages', 'rank', 'heatmap', 'serving', 'fleet', 'devices', 'network', 'health', 'captures', 'report', 'quality'];

/** A page that remembers trouble; it may ask its own server for data and events, and nothing else. */
async function open(context) {
  const page = await context.newPage();
  page.trouble = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.trouble.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => page.trouble.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    if (url.startsWith('data:') || url.startsWith('blob:') || url === address || url === `${origin}/`) return;
    if (![`${origin}/data/`, `${origin}/api/live/`, `${origin}/captures/`, `${origin}/hangs/`].some((path) => url.startsWith(path))) page.trouble.push(`request: ${url}`);
    if (!url.startsWith(`${origin}/api/live/events?`) && url.includes(new URL(address).searchParams.get('token'))) page.trouble.push(`the token is in ${url}`);
  });
  await page.addInitScript(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask', buffered: true });
  });
  await page.goto(address);
  await page.waitForSelector('.verdict h3');
  return page;
}

const frames = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const events = (page) => page.evaluate(() => Number(document.documentElement.dataset.events));
const moreEvents = async (page, count = 2) => {
  const from = await events(page);
  await page.waitForFunction((wanted) => Number(document.documentElement.dataset.events) >= wanted, from + count);
};
async function show(page, hash) {
  await page.evaluate((to) => void (location.hash = to), hash);
  await page.waitForFunction((id) => document.getElementById(`view-${id}`), /^#\/([a-z]+)/.exec(hash)[1]);
  await frames(page);
}
const firstRow = (page, table) => page.$eval(`[aria-labelledby="${table}-caption"] tbody tr[data-row="0"]`, (row) => [...row.cells].map((cell) => cell.innerText.trim()));

/** What the page says of the job, and that the slow rank is named and stands first. */
async function namesTheSlowRank(page) {
  await page.waitForFunction((name) => new RegExp(`Rank ${name} .*is the slowest`).test(document.querySelector('.verdict h3')?.innerText ?? ''), slow);
  // At one look: in the next another rank may have been held up.
  await page.waitForFunction((name) => {
    const cells = [...(document.querySelector('[aria-labelledby="ranks-caption"] tbody tr[data-row="0"]')?.cells ?? [])].map((cell) => cell.innerText.trim());
    return cells[0] === name && cells[2] === 'slow';
  }, slow);
  const facts = await page.innerText('.facts');
  assert.match(facts, new RegExp(`\\b${ranks}\\b.* ranks?`));
  // The token is not in the address bar any more, and the page can be loaded again.
  assert.ok(!page.url().includes('token'), page.url());
  await page.reload();
  await page.waitForSelector('.verdict h3');
}

async function keyboardPath(page) {
  await show(page, '#/job');
  await page.waitForSelector('[aria-labelledby="ranks-caption"] tbody tr[data-row="0"] button');
  await page.focus('[aria-labelledby="ranks-caption"] tbody tr[data-row="0"] button');
  // What is read stands still while it is read: the focus stays on its row over several views.
  const name = await page.evaluate(() => document.activeElement.innerText);
  await moreEvents(page, 3);
  assert.equal(await page.evaluate(() => document.activeElement.innerText), name);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.evaluate(() => document.activeElement.innerText), name);
  await page.keyboard.press('Enter');
  await page.waitForFunction((rank) => location.hash.startsWith('#/rank') && document.querySelector('#view-rank .verdict h3')?.innerText.startsWith(`Rank ${rank} `), name);
  // The address alone shows the same.
  assert.match(page.url(), new RegExp(`#/rank\\?rank=${name}&job=`));
  await page.focus('nav a[href^="#/heatmap"]');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#heat-grid');
  assert.match(page.url(), /#\/heatmap\?job=/, 'the job goes along');
  await page.waitForFunction(() => document.activeElement.tagName === 'H2');
}

async function heatMap(page) {
  // It fills: the newest second of every rank that records has a value.
  await show(page, '#/heatmap');
  await page.waitForFunction((name) => new RegExp(`Highest mean own time: rank ${name} `).test(document.querySelector('#view-heatmap .figure-summary').innerText), slow);
  await show(page, '#/heatmap?sort=worst'); // As it is now: an order stands for a while, so that it can be read.
  const draws = await page.$eval('#heat-grid', (canvas) => Number(canvas.dataset.draws));
  await page.waitForFunction((before) => Number(document.getElementById('heat-grid').dataset.draws) > before, draws);
  await page.focus('#heat-grid');
  await page.keyboard.press('Home');
  await page.keyboard.press('PageUp');
  await page.waitForFunction(() => /^rank \d+ on .*: own time/.test(document.getElementById('heat-grid-status').innerText));
  // The cursor says how long ago its time was, and that grows; its value stays.
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  await page.waitForFunction(() => /, −\d+ s: own time/.test(document.getElementById('heat-grid-status').innerText));
  const said = await page.innerText('#heat-grid-status');
  const ago = Number(/−(\d+) s/.exec(said)[1]);
  await page.waitForFunction((before) => Number(/−(\d+) s/.exec(document.getElementById('heat-grid-status').innerText)?.[1]) > before, ago);
  assert.equal((await page.innerText('#heat-grid-status')).split(': ')[1], said.split(': ')[1]);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#view-heatmap .details');
  assert.match(await page.innerText('#view-heatmap .details h3'), new RegExp(`^Rank ${slow} on `), 'the worst stands on top');
  await page.locator('#view-heatmap button', { hasText: /^Table$/ }).click();
  await page.waitForFunction((name) => document.querySelector('#view-heatmap .table tbody tr[data-row="0"]')?.cells[0].innerText === `rank ${name}`, slow);
  const [, , now, mean] = await firstRow(page, 'heat-table');
  for (const text of [now, mean]) assert.match(text, /^[\d.]+ (us|ms|s)$/);
  await page.locator('#view-heatmap button', { hasText: /^Table$/ }).click();
}

/** Whom the stages of steps name, in words and in the picture; a cell offers to capture its rank. */
async function stages(page) {
  await show(page, '#/stages');
  await page.waitForFunction((name) => new RegExp(`^Rank ${name} costs the job .* in forward`).test(document.querySelector('#view-stages .verdict h3')?.innerText ?? ''), slow);
  await page.waitForFunction((name) => new RegExp(`^Rank ${name} held the others up most often, in .* most in forward`).test(document.querySelector('section[aria-labelledby="leaders-title"] .figure-summary')?.innerText ?? ''), slow);
  assert.equal(await page.locator('#view-stages .note').count(), fake ? 1 : 0, 'that ranks are missing is said');
  await page.focus('#leaders-grid');
  await page.keyboard.press('Home');
  await page.keyboard.press('PageUp');
  for (let row = 0; row < Number(slow); ++row) await page.keyboard.press('ArrowDown');
  await page.waitForFunction((name) => new RegExp(`^Rank ${name}, steps? \\d+.*: holds the others up in forward`).test(document.getElementById('leaders-grid-status').innerText), slow);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#view-stages .details');
  assert.equal(await page.innerText('#view-stages .details h3'), `Rank ${slow}`);
  if (pictures) await page.screenshot({ path: join(pictures, 'stages.png'), fullPage: true });
  await show(page, '#/job');
  assert.match(await page.innerText('#view-job'), new RegExp(`Stages of the last .*: Rank ${slow} costs the job`));
}

/** From a click in the heat map to the report in the same page. */
async function captureFromTheHeatMap(context, page) {
  await show(page, '#/heatmap?sort=worst');
  const box = await page.locator('#heat-grid').boundingBox();
  await page.mouse.click(box.x + box.width - 30, box.y + 50);
  await page.waitForSelector('#view-heatmap .details');
  await page.locator('.details button', { hasText: /^Capture rank/ }).click();
  await page.waitForSelector('#view-report');
  assert.match(await page.innerText('#view-report strong'), /^Rank \d+, .* ms: job /);
  await page.waitForFunction(() => document.activeElement.innerText === 'Report');
  await page.waitForSelector('iframe.report, #view-report .severity-word.error', { timeout: 180_000 });
  assert.equal(await page.locator('#view-report .severity-word.error').count(), 0, await page.innerText('#view-report'));
  const report = page.frameLocator('iframe.report');
  await report.locator('header h1').waitFor();
  const title = await report.locator('header h1').innerText();
  if (!fake) await report.locator('.view h2').first().waitFor();
  console.log(`captured from the heat map; its report says: ${title}${fake ? '' : ` / ${(await report.locator('.verdict').first().innerText()).split('\n')[0]}`}`);
  // The page around it goes on.
  await moreEvents(page, 2);
  if (pictures) await page.screenshot({ path: join(pictures, 'report.png') });
  const address = await page.locator('#view-report .report-link').evaluate((link) => link.href);
  const [tab] = await Promise.all([context.waitForEvent('page'), page.click('#view-report .report-link')]);
  await tab.waitForURL((now) => now.href.split('#')[0] === address.split('#')[0]);
  assert.equal(await tab.evaluate(() => window.opener), null);
  await tab.close();
  await page.goBack();
  await page.waitForSelector('#view-heatmap');
  await show(page, '#/captures');
  assert.equal(await page.locator('[aria-labelledby="captures-caption"] .report-link').first().evaluate((link) => link.href), address);
}

async function refusalsAreSaid(page) {
  await show(page, '#/captures');
  await page.fill('.capture-form input.short >> nth=0', 'three');
  await page.click('.capture-form button[type=submit]');
  assert.match(await page.innerText('.capture-form [role=alert]'), /numbers and ranges/);
  await page.fill('.capture-form input.short >> nth=0', '');
}

/** The page goes to the report, which says why it does not come; not when the server refuses, and not where nobody wants it. */
async function wayToTheReport(page) {
  const [ranks, iterations] = [page.locator('.capture-form input.short').nth(0), page.locator('.capture-form input.short').nth(1)];
  const capture = async (of_ranks, count) => {
    await show(page, '#/captures?mode=iterations');
    await ranks.fill(of_ranks);
    await iterations.fill(count);
    await page.click('.capture-form button[type=submit]');
  };
  await capture('', '13');
  await page.waitForFunction(() => /: failed .*no process answered$/.test(document.querySelector('#view-report [role=status]')?.innerText ?? ''));

  await capture('99999', '3');
  await page.waitForFunction(() => /no rank 99999/.test(document.querySelector('.capture-form [role=alert]')?.innerText ?? ''));
  page.trouble = page.trouble.filter((each) => !/Failed to load resource/.test(each));

  await page.locator('.capture-form .check', { hasText: 'go to the report' }).click();
  const before = await page.locator('[aria-labelledby="captures-caption"] .report-link').count();
  await capture('', '3');
  await page.waitForFunction((count) => document.querySelectorAll('[aria-labelledby="captures-caption"] .report-link').length > count, before);
  await page.locator('.capture-form .check', { hasText: 'go to the report' }).click();
  await show(page, '#/report?id=none');
  assert.match(await page.innerText('#view-report .note'), /knows no report of that name/);
}

async function pause(page) {
  await show(page, '#/job');
  await page.locator('button', { hasText: /^Pause$/ }).focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('button[aria-pressed="true"]');
  await frames(page);
  const facts = await page.innerText('.facts');
  await moreEvents(page, 3);
  await frames(page);
  assert.equal(await page.innerText('.facts'), facts);
  await page.keyboard.press('Enter');
  await page.waitForFunction((before) => document.querySelector('.facts').innerText !== before, facts);
}

async function everyView(page, theme) {
  for (const view of VIEWS) {
    await show(page, `#/${view}`);
    await moreEvents(page, 1);
    await frames(page);
    const text = await page.$eval('#main', (main) => main.innerText);
    assert.ok(!/NaN|undefined|Infinity|\[object|could not be drawn/.test(text), `${view}: ${text.slice(0, 600)}`);
    for (const figure of await page.locator('.figure').all()) {
      const toggle = figure.locator('button[aria-pressed]').filter({ hasText: /^Table$/ });
      await toggle.focus();
      await page.keyboard.press('Enter');
      assert.equal(await figure.locator('table').count(), 1, `${view}: a picture as a table`);
      await page.keyboard.press('Enter');
    }
    assert.deepEqual(await violations(page, theme === themes[0] ? null : COLOR_RULES), [], `${view}, ${theme}`);
    if (pictures) await page.screenshot({ path: join(pictures, `${view}-${theme}.png`) });
  }
  // All below each other, as on paper.
  await show(page, '#/job');
  await page.evaluate(() => void (location.hash = '#/all'));
  await page.waitForFunction((count) => document.querySelectorAll('article.view').length === count, VIEWS.length);
  await moreEvents(page, 1);
  assert.ok(!/NaN|undefined|could not be drawn/.test(await page.innerText('#main')));
}

const cells = (page, table) => page.$$eval(`[aria-labelledby="${table}-caption"] tbody tr[data-row]`, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));

/** Devices, ports and process groups of all nodes. */
async function everyNodesDevices(page) {
  await show(page, '#/devices');
  await page.waitForSelector('[aria-labelledby="gpus-caption"] tbody tr[data-row="0"]');
  const gpus = await cells(page, 'gpus');
  const counted = {};
  for (const [host] of gpus) counted[host] = (counted[host] ?? 0) + 1;
  assert.deepEqual(counted, devices);
  await show(page, `#/network?job=${group_job}`);
  // Of the group's two ranks the second has called less; its node may be heard of later.
  await page.waitForFunction(() => {
    const cells = [...(document.querySelector('[aria-labelledby="groups-caption"] tbody tr[data-row="0"]')?.cells ?? [])].map((cell) => cell.innerText.trim());
    return cells[1] === '2' && cells[4] === 'rank 1';
  }).catch(async (error) => assert.fail(`${error.message}\n${await page.innerText('#main')}`));
  const [group] = await cells(page, 'groups');
  const ports = (await cells(page, 'ports')).filter((row) => row[1] === 'mlx5_0:1');
  assert.deepEqual(ports.map((row) => row[0]).sort(), Object.keys(devices).sort());
  if (pictures) await page.screenshot({ path: join(pictures, 'groups.png'), fullPage: true });
  console.log(`${gpus.length} GPUs, ${ports.length} ports; group ${group.join(' | ')}`);
}

/** An inference engine's figures, and instances below the GPU that MIG divides. */
async function engineAndInstances(page, { job, row, says, host, titles, instances }) {
  const told = (table) => page.$$eval(`[aria-labelledby="${table}-caption"]`, ([drawn]) => {
    const plain = (text) => text.trim().replace(/\s/g, ' ');  // A number and its unit do not break.
    const names = [...drawn.querySelectorAll('thead th')].map((cell) => plain(cell.innerText.replace(/[▲▼]/, '')));
    return [...drawn.querySelectorAll('tbody tr[data-row]')].map((line) => Object.fromEntries([...line.cells].map((cell, i) => [names[i], plain(cell.innerText)])));
  });
  await show(page, `#/serving?job=${encodeURIComponent(job)}`);
  await page.waitForSelector('[aria-labelledby="serving-caption"] tbody tr[data-row="0"]');
  await page.waitForSelector('section[aria-labelledby="between-title"]');
  const [found] = await told('serving');
  if (row.P99 === '–') assert.match(await page.innerText('#view-serving .verdict h3'), /^No request to .* ended within the last minute\.$/);
  assert.deepEqual(Object.fromEntries(Object.keys(row).map((name) => [name, found[name]])), row);
  for (const [figure, words] of Object.entries(says)) {
    assert.equal((await page.innerText(`section[aria-labelledby="${figure}-title"] .figure-summary`)).replace(/\s/g, ' '), words, figure);
    assert.ok(await page.locator(`section[aria-labelledby="${figure}-title"] path[class*="line-series"]`).count() > 0, `${figure} is drawn`);
  }
  assert.deepEqual(await violations(page), [], 'an engine');
  if (pictures) await page.screenshot({ path: join(pictures, 'engine.png'), fullPage: true });
  await show(page, '#/devices?by=sm_active_ratio');
  await page.waitForSelector('[aria-labelledby="gpus-caption"] tbody tr[data-row="0"]');
  const rows = (await told('gpus')).filter((each) => each.Host === host);
  assert.deepEqual(rows.map((each) => titles.map((name) => each[name])), instances);
  // The pictures by time have a row for each.
  await page.locator('#view-devices button', { hasText: /^Table$/ }).click();
  await page.waitForSelector('[aria-labelledby="devices-table-caption"] tbody tr[data-row="0"]');
  const by_time = await told('devices-table');
  for (const [gpu, , busy] of instances) {
    const said = by_time.find((each) => each.Device === `${host} · ${gpu}`);
    assert.equal(said?.Now, busy, `${gpu} over time`);
  }
  await page.locator('#view-devices button', { hasText: /^Table$/ }).click();
  assert.deepEqual(await violations(page), [], 'MIG instances');
  if (pictures) await page.screenshot({ path: join(pictures, 'instances.png'), fullPage: true });
  console.log(`${job}: ${JSON.stringify(found)}; ${rows.length} devices of ${host}`);
}

/** How long a tick takes, printed and not judged: a busy machine is slow. Of many ranks, where it matters. */
async function rate(page) {
  for (const view of ['job', 'heatmap?last=5', 'health', 'devices']) {
    await show(page, `#/${view}`);
    await moreEvents(page, 1);
    await page.evaluate(() => {
      window.longTasks.length = 0;
      delete document.documentElement.dataset.tickMostMs;
    });
    const from = await page.evaluate(() => Number(document.documentElement.dataset.ticks));
    await page.waitForFunction((wanted) => Number(document.documentElement.dataset.ticks) >= wanted, from + 4);
    const found = await page.evaluate(() => ({ last: document.documentElement.dataset.tickMs, most: document.documentElement.dataset.tickMostMs, long: window.longTasks.map(Math.round) }));
    console.log(`${ranks} ranks, ${view}: a tick is handled and drawn in ${found.last} ms, at most ${found.most} ms; tasks over 50 ms: ${found.long.length}${found.long.length ? ` (${found.long.join(', ')} ms)` : ''}`);
  }
}

/** A job that changes, names that are markup, a server that goes away. */
async function whatAFakeCanDo(page) {
  const tell = (query) => fetch(`${origin}/fake?${query}`);
  await show(page, '#/job');
  await tell('state=stuck');
  await page.waitForFunction((name) => document.querySelector('.verdict.critical h3')?.innerText.startsWith(`Rank ${name} holds the job up: it has been in input for 46.0 s, and no step has ended for`), slow);
  assert.deepEqual((await firstRow(page, 'ranks')).slice(2, 5), ['stuck', '–', 'input'], 'who does not wait comes first');
  if (pictures) await page.screenshot({ path: join(pictures, 'stuck.png') });
  await show(page, '#/network');
  await page.waitForFunction((name) => document.querySelector('[aria-labelledby="groups-caption"] tbody')?.innerText.includes(`rank ${name}`), slow);
  // A port's traffic: what the server remembers, and each second more.
  const traffic = page.locator('section[aria-labelledby="traffic-title"]');
  assert.match(await traffic.innerText(), /now [\d.]+\sGB\/s received and [\d.]+\sGB\/s sent, of 50(\.0)?\sGB\/s each way/);
  await traffic.getByRole('button', { name: /^Show as table/ }).click();
  // Rows out of sight are not drawn.
  const measured = (scrolled) => page.waitForFunction((end) => {
    const box = document.querySelector('section[aria-labelledby="traffic-title"] .table-box');
    box.scrollTop = end ? box.scrollHeight : 0;
    const rows = [...box.querySelectorAll('tbody tr[data-row]')];
    const looked_at = end ? rows.slice(-8) : rows.slice(0, 3);
    return (!end || Number(rows.at(-1).dataset.row) > 100) && looked_at.some((row) => /[\d.]+\sGB\/s/.test(row.innerText));
  }, scrolled);
  await measured(false);
  await measured(true);
  await tell('state=well');
  await show(page, '#/job');
  await page.waitForFunction(() => document.querySelector('.verdict h3').innerText.startsWith('No alarm'));
  await tell(`state=slow&text=${encodeURIComponent('<img src=x onerror=window.bad=1>')}`);
  for (const view of VIEWS) {
    await show(page, `#/${view}`);
    await moreEvents(page, 1);
    assert.equal(await page.evaluate(() => window.bad), undefined, view);
    assert.equal(await page.locator('img, iframe:not(.report), object').count(), 0, view);
  }
  assert.ok((await page.evaluate(() => location.hash)) === '#/quality');
  await show(page, '#/fleet');
  assert.match(await page.innerText('#view-fleet'), /<img src=x/);
  await tell('text=node-');
  // The stream breaks: that is said, and it goes on by itself.
  assert.deepEqual(page.trouble, []);
  await tell('break=1');
  await page.waitForFunction(() => /connection to lockstep serve is lost/.test(document.querySelector('.banner')?.innerText ?? ''));
  await tell('break=0');
  await page.waitForFunction(() => !document.querySelector('.banner') && document.querySelector('.live-mark').innerText === 'live');
  await moreEvents(page, 1);
  // A server that was started anew does not know this page's token.
  await tell('token=other');
  await page.waitForFunction(() => /refuses this page/.test(document.querySelector('.banner')?.innerText ?? ''));
  await tell('token=');
  // What the browser says of the broken stream is what was to be shown.
  page.trouble = page.trouble.filter((each) => !/Failed to load resource|ERR_/.test(each));
  assert.deepEqual(page.trouble, []);
}

let seen = 0;
for (const theme of themes) {
  await withBrowser({ colorScheme: theme, reducedMotion: theme === 'dark' ? 'reduce' : 'no-preference' }, async (context) => {
    const page = await open(context);
    await namesTheSlowRank(page);
    assert.match(await page.innerText('.facts'), node_count === 1 ? /1 node/ : new RegExp(`${node_count} nodes`));
    if (theme === themes[0]) {
      await heatMap(page);
      if (!is_quick) {
        await stages(page);
        await keyboardPath(page);
        await pause(page);
        await refusalsAreSaid(page);
      }
      if (devices) await everyNodesDevices(page);
      if (engine) await engineAndInstances(page, engine);
      if (captures) await captureFromTheHeatMap(context, page);
      if (fake) await wayToTheReport(page);
      if (ranks >= 100) await rate(page);
    }
    if (!is_quick) {
      await everyView(page, theme);
      seen += VIEWS.length;
    }
    assert.deepEqual(page.trouble, []);
    if (fake && theme === themes.at(-1)) await whatAFakeCanDo(page);
  });
}
console.log(`${seen} views drawn without trouble`);
