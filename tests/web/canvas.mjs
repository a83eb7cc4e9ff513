// Exercises the views that draw on a canvas, by keyboard and by mouse: node canvas.mjs PAGE.html
import assert from 'node:assert/strict';
import { openWatched, settled, withBrowser } from './browser.mjs';

const [file] = process.argv.slice(2);
const address = `file://${file}`;

/**
 * Nothing more will come by itself: what many keys changed has reached the address, events are unpacked and drawn. Effects run
 * after the frame that they belong to and may begin something new, so it has to be quiet several times in a row.
 */
async function rest(page) {
  await settled(page);
  await page.evaluate(async () => {
    for (let quiet = 0; quiet < 4; ) {
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      const busy = document.documentElement.dataset.pending || /Unpacking .* …/.test(document.querySelector('main')?.textContent ?? '');
      quiet = busy ? 0 : quiet + 1;
    }
  });
}
/** As a link opens it: in a page that has just been loaded, with the mouse over no picture. */
async function open(page, hash) {
  // Where the mouse rests over a picture that appears below it, the browser says so some time later: it would speak in its status.
  await page.mouse.move(0, 0);
  await page.goto('about:blank');
  await page.goto(address + hash);
  await settled(page);
}
const hash = (page) => page.evaluate(() => location.hash);
const param = async (page, name) => new URLSearchParams((await hash(page)).split('?')[1] ?? '').get(name);
/** Numbers and their units are held together by a space that does not break; here any space is one. */
const plain = (text) => text.replace(/\s/g, ' ');
const status = async (page, id) => plain(await page.$eval(`#${id}-status`, (line) => line.textContent));
const summaryOf = async (page) => plain(await page.$eval('.figure-summary', (line) => line.textContent));
const box = (page, id) => page.$eval(`#${id}`, (canvas) => { const b = canvas.getBoundingClientRect(); return { x: b.x, y: b.y, width: b.width, height: b.height }; });
async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
  await settled(page);
}
async function focus(page, id) {
  await page.waitForSelector(`#${id}`);
  await page.$eval(`#${id}`, (canvas) => canvas.scrollIntoView({ block: 'center' }));
  await page.focus(`#${id}`);
  await settled(page);
}
/** A number for the picture: it changes when the picture does. And how many colours there are. */
const look = (page, id) => page.$eval(`#${id}`, (canvas) => {
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const draw = copy.getContext('2d', { willReadFrequently: true });
  draw.drawImage(canvas, 0, 0);
  const pixels = draw.getImageData(0, 0, copy.width, copy.height).data;
  let sum = 0;
  const colors = new Set();
  for (let i = 0; i < pixels.length; i += 4) {
    const color = (pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2];
    sum = (Math.imul(sum, 31) + color) >>> 0;
    if (i % 28 === 0) colors.add(color);
  }
  return { sum, colors: colors.size };
});
const differs = async (page, id, act) => {
  const before = await look(page, id);
  await act();
  await settled(page);
  assert.notEqual((await look(page, id)).sum, before.sum);
};
async function sharp(page, id, ratio) {
  const canvas = await page.$eval(`#${id}`, (element) => ({ width: element.width, shown: element.getBoundingClientRect().width, label: element.getAttribute('aria-label'), live: document.getElementById(element.getAttribute('aria-describedby')).getAttribute('aria-live') }));
  assert.equal(canvas.width, Math.round(canvas.shown * ratio), `${id} has a pixel for each of the screen's`);
  assert.ok(canvas.label.length > 40 && canvas.live === 'polite', `${id} says what it is`);
  assert.ok((await look(page, id)).colors > 4, `${id} is not empty`);
}
/** The same address shows the same, also in words. */
async function roundTrip(page, id) {
  await rest(page);
  const [there, said, picture] = [await hash(page), await status(page, id), await look(page, id)];
  await open(page, there);
  await page.waitForSelector(`#${id}`);
  await rest(page);
  assert.equal(await hash(page), there);
  assert.equal(await status(page, id), said);
  assert.deepEqual(await look(page, id), picture, `${id} looks the same from a link`);
}

async function heatMap(page) {
  await open(page, '#/heatmap');
  const id = 'heat-map';
  await sharp(page, id, 1);
  await focus(page, id);
  await press(page, 'ArrowDown');
  const first = await status(page, id);
  assert.match(first, /^rank \d+.*, step \d+: step time /);
  const shape = /^([\d,]+) ranks? × ([\d,]+) steps?\./.exec(await summaryOf(page));
  const [ranks, steps] = shape.slice(1).map((text) => Number(text.replaceAll(',', '')));
  for (const [there, back, most] of [['ArrowRight', 'ArrowLeft', steps], ['ArrowDown', 'ArrowUp', ranks]]) {
    await press(page, there);
    assert.equal((await status(page, id)) !== first, most > 1);
    await press(page, back);
    assert.equal(await status(page, id), first);
  }
  await press(page, 'End');
  if (ranks > 1) await press(page, 'ArrowDown');
  const corner = await status(page, id);
  if (steps > 1) {
    await differs(page, id, () => press(page, '+'));
    assert.equal(await status(page, id), corner, 'zooming holds the cursor');
    await rest(page);
    assert.match(await param(page, 'heat-map.columns'), /^\d+\+\d+$/);
  }
  await roundTrip(page, id);
  await focus(page, id);
  await press(page, '0');
  await rest(page);
  assert.equal(await param(page, 'heat-map.columns'), null);

  // Sorted by value the rows fall; the cursor stays on its rank and step.
  const kept = await status(page, id);
  await page.locator('input[name="heat-sort"][value="value"]').evaluate((input) => input.click());
  await page.locator('main select').first().selectOption('wait_ns');
  await settled(page);
  assert.match(await hash(page), /sort=value/);
  assert.equal((await status(page, id)).split(':')[0], kept.split(':')[0]);
  assert.match(await status(page, id), /waiting for others/);
  await page.locator('input[name="heat-scale"][value="median"]').evaluate((input) => input.click());
  await settled(page);
  await roundTrip(page, id);

  // The picture says what the table says.
  await open(page, '#/heatmap?heat.as=table');
  const cells = await page.$$eval('tbody tr[data-row="0"] td', (found) => found.map((cell) => cell.textContent));
  const summary = await summaryOf(page);
  assert.ok(plain(summary).includes(plain(`${cells[0]} in step ${cells[2]} with ${cells[3]}`)), `${summary} | ${cells}`);

  // A dragged frame shows only what is in it; the wheel with Ctrl, too, and without it the page scrolls.
  await open(page, '#/heatmap');
  await focus(page, id);
  const at = await box(page, id);
  await page.mouse.move(at.x + at.width * 0.4, at.y + 60);
  await page.mouse.down();
  await page.mouse.move(at.x + at.width * 0.7, at.y + 90, { steps: 4 });
  await page.mouse.up();
  await rest(page);
  if (steps > 3) assert.match(await param(page, 'heat-map.columns'), /^\d+\+\d+$/);
  await page.keyboard.press('0');
  await page.mouse.move(at.x + at.width * 0.5, at.y + 80);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -300);
  await page.keyboard.up('Control');
  await rest(page);
  if (steps > 3) assert.match(await param(page, 'heat-map.columns'), /^\d+\+\d+$/);
  await page.keyboard.press('0');
  await rest(page);

  // Pointing says the value; clicking opens the timeline at that rank and step.
  await page.mouse.move(at.x + at.width * 0.6, at.y + 70);
  await settled(page);
  const said = /rank (\d+).*step (\d+)/.exec(await status(page, id));
  assert.equal(await page.locator('.tooltip').count(), 1);
  await page.mouse.click(at.x + at.width * 0.6, at.y + 70);
  await page.mouse.move(0, 0); // Over the timeline it would point at something.
  await page.waitForFunction(() => location.hash.startsWith('#/timeline'));
  await settled(page);
  assert.match(await param(page, 't'), /^\d+-\d+$/);
  await page.waitForFunction((rank) => new RegExp(`^rank ${rank}\\b`).test(document.getElementById('timeline-canvas-status')?.textContent ?? ''), said[1]);
  // The step itself is among the longest events in view, where the page has single events.
  if ((await page.locator('.table-caption').count()) > 0) {
    await page.waitForFunction((step) => [...document.querySelectorAll('tbody tr')].some((row) => row.textContent.includes(`ProfilerStep#${step}`)), said[2]);
  }
  // By keyboard the same.
  await open(page, '#/heatmap');
  await focus(page, id);
  await press(page, 'ArrowDown', 'Enter');
  await page.waitForFunction(() => location.hash.startsWith('#/timeline'));
}

async function waits(page) {
  await open(page, '#/waits');
  const id = 'wait-matrix';
  await sharp(page, id, 1);
  const summary = await summaryOf(page);
  await focus(page, id);
  await page.locator('input[name="waits-sort"][value="value"]').evaluate((input) => input.click());
  await settled(page);
  await focus(page, id);
  await press(page, 'Home');
  const said = await status(page, id);
  assert.match(said, /rank \d+ (waited|never waited|does not wait)/);
  await roundTrip(page, id);
  const longest = /Longest pair: (rank \d+) waited (.+) for (rank \d+)\./.exec(summary);
  if (longest) {
    // Somewhere in the matrix stands what the summary says.
    const ranks = Number(/over ([\d,]+) rank/.exec(summary)[1].replaceAll(',', ''));
    const wanted = `${longest[1]} waited ${longest[2]} for ${longest[3]}`;
    let found = false;
    await focus(page, id);
    for (let row = 0; row < Math.min(ranks, 40) && !found; ++row) {
      await press(page, 'Home');
      for (let column = 0; column < 3 && !found; ++column) {
        found = (await status(page, id)).startsWith(wanted);
        if (!found) await press(page, 'ArrowRight');
      }
      if (!found) await press(page, 'ArrowDown');
    }
    assert.ok(found, wanted);
    await press(page, 'Enter');
    await page.waitForFunction(() => location.hash.startsWith('#/waterfall'));
    await settled(page);
    assert.match(await summaryOf(page), new RegExp(`${longest[3]} came last`));
    // Enter also counts when what an arrow key changed is due to reach the address in the very same moment, as on a busy machine.
    await open(page, '#/waits');
    await focus(page, id);
    await press(page, 'Home');
    await page.$eval(`#${id}`, (canvas) => {
      const key = (name) => canvas.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
      key('ArrowRight');
      for (const end = performance.now() + 400; performance.now() < end; );
      key('Enter');
    });
    await page.waitForFunction(() => location.hash.startsWith('#/waterfall'));
    await rest(page);
    assert.match(await hash(page), /^#\/waterfall/);
  }
}

async function waterfall(page) {
  await open(page, '#/waterfall');
  const id = 'waterfall-canvas';
  await page.waitForSelector(`#${id}`);
  await sharp(page, id, 1);
  const summary = await summaryOf(page);
  assert.match(summary, /came last|unknown|not measured/);
  await focus(page, id);
  await press(page, 'Home');
  const first = await status(page, id);
  assert.match(first, /^rank \d+.*: arrives .*(waits|not measured)/);
  await press(page, 'ArrowDown');
  const second = await status(page, id);
  await press(page, 'End');
  const members = Number(/: ([\d,]+) ranks?[,.]/.exec(summary)[1].replaceAll(',', ''));
  assert.equal((await status(page, id)) !== first, members > 1);
  assert.equal(second !== first, members > 1);
  // The next collective of the list has no longer waits.
  const wait = async () => page.$eval('.waterfall-pick select:last-of-type', (select) => select.selectedIndex);
  const next = page.getByRole('button', { name: 'Next collective in the list' });
  if (await next.isEnabled()) {
    await differs(page, id, () => next.click());
    assert.match(await param(page, 'c'), /^\d+$/);
    assert.ok((await wait()) >= 0);
  }
  await page.locator('input[name="waterfall-sort"][value="rank"]').evaluate((input) => input.click());
  await settled(page);
  await page.mouse.move(0, 0);
  await roundTrip(page, id);
  await focus(page, id);
  await press(page, 'Home');
  const rank = /^rank (\d+)/.exec(await status(page, id))[1];
  await press(page, 'Enter');
  await page.waitForFunction(() => location.hash.startsWith('#/timeline'));
  await page.waitForFunction((wanted) => new RegExp(`^rank ${wanted}\\b`).test(document.getElementById('timeline-canvas-status')?.textContent ?? ''), rank);
}

const width = async (page) => {
  const text = await param(page, 't');
  if (text === null) return Infinity;
  const [from, to] = text.split('-').map(Number);
  return to - from;
};

async function timeline(page) {
  await open(page, '#/timeline');
  const id = 'timeline-canvas';
  await sharp(page, id, 1);
  await focus(page, id);
  assert.match(await status(page, id), /^rank \d+.*: busy with .* in view$/);

  // Every key that moves or zooms, and back to the whole run.
  for (const [there, back] of [['w', 's'], ['+', '-']]) {
    await differs(page, id, () => press(page, there, there));
    await rest(page);
    const narrow = await width(page);
    await press(page, back);
    await rest(page);
    assert.ok((await width(page)) > narrow, `${back} widens`);
    await press(page, '0');
    await rest(page);
    assert.equal(await param(page, 't'), null);
  }
  await press(page, 'w', 'w', 'w');
  await rest(page);
  const start = async () => Number((await param(page, 't')).split('-')[0]);
  for (const [left, right] of [['a', 'd'], ['ArrowLeft', 'ArrowRight']]) {
    const middle = await start();
    await press(page, left);
    await rest(page);
    const moved = await start();
    assert.ok(moved < middle);
    await press(page, right);
    await rest(page);
    assert.ok(Math.abs((await start()) - middle) <= 2);
  }
  await roundTrip(page, id);

  // Mouse: Ctrl and wheel, drag, Shift and drag, the small picture of the whole run.
  await focus(page, id);
  const at = await box(page, id);
  const spot = { x: at.x + at.width * 0.6, y: at.y + 70 };
  await page.mouse.move(spot.x, spot.y);
  let before = await width(page);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -240);
  await page.keyboard.up('Control');
  await rest(page);
  assert.ok((await width(page)) < before);
  const left = await start();
  await page.mouse.down();
  await page.mouse.move(spot.x + 80, spot.y, { steps: 4 });
  await page.mouse.up();
  await rest(page);
  assert.ok((await start()) < left, 'dragging to the right shows what was before');
  before = await width(page);
  await page.keyboard.down('Shift');
  await page.mouse.move(spot.x, spot.y);
  await page.mouse.down();
  await page.mouse.move(spot.x + 100, spot.y, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await rest(page);
  assert.ok((await width(page)) < before / 3);
  await page.mouse.click(at.x + at.width * 0.9, at.y + 10);
  await rest(page);
  assert.ok((await start()) > left, 'a click in the whole run goes there');

  // Keys move the picture below a pointer that rests: what is said then is the cursor's rank in what is in view, not what was below the pointer.
  await open(page, '#/timeline');
  await focus(page, id);
  for (const key of ['w', 'd']) {
    await page.mouse.move(spot.x + (key === 'd' ? 9 : 0), spot.y);
    await page.waitForSelector('.tooltip');
    await press(page, key);
    await rest(page);
    assert.equal(await page.locator('.tooltip').count(), 0, `no tooltip after ${key}`);
  }
  await roundTrip(page, id);

  // A span is marked along the ruler, or by a key; its sums are rank by rank and name by name, and the address has it.
  await open(page, '#/timeline');
  await focus(page, id);
  const ruler = await box(page, id);
  await differs(page, id, async () => {
    await page.mouse.move(ruler.x + ruler.width * 0.5, ruler.y + 46);
    await page.mouse.down();
    await page.mouse.move(ruler.x + ruler.width * 0.6, ruler.y + 46, { steps: 3 });
    await page.mouse.up();
    await rest(page);
  });
  const [marked_from, marked_to] = (await param(page, 'span')).split('-').map(Number);
  assert.ok(marked_to > marked_from);
  assert.equal(await param(page, 't'), null, 'what is in view stays');
  assert.match(plain(await page.$eval('section[aria-labelledby="span-title"] .figure-summary', (line) => line.textContent)), /^The marked span: /);
  if ((await page.locator('#sums-caption').count()) > 0) {
    await page.waitForFunction(() => document.querySelectorAll('[aria-labelledby="sums-caption"] tbody tr[data-row]').length > 0);
    assert.match(await page.$eval('#sums-caption', (caption) => caption.textContent), /^Names in the marked span/);
  }
  await page.mouse.move(0, 0);
  await roundTrip(page, id);
  await focus(page, id);
  await press(page, 'Escape');
  assert.equal(await param(page, 'span'), null);
  await press(page, 'w', 'm');
  await rest(page);
  assert.equal(await param(page, 'span'), await param(page, 't'), 'M marks what is in view');
  await press(page, 'Escape');

  // Pinned: the line is at the top, by key and by its pin.
  await open(page, '#/timeline');
  const last_row = Number(/^(\d[\d,]*) rank/.exec(await summaryOf(page))[1].replaceAll(',', '')) - 1;
  if (last_row > 0 && last_row < 20) {
    await open(page, `#/timeline?row=${last_row}`);
    await focus(page, id);
    const last = await status(page, id);
    await differs(page, id, () => press(page, 'p'));
    assert.equal(await param(page, 'pin'), String(last_row));
    assert.equal(await status(page, id), last, 'the cursor stays on it');
    await press(page, 'ArrowUp');
    assert.equal(await status(page, id), last, 'nothing is above it');
    await press(page, 'ArrowDown');
    assert.notEqual(await status(page, id), last);
    await press(page, 'ArrowUp');
    await roundTrip(page, id);
    const drawn = await box(page, id);
    const left_edge = Math.round(Math.min(170, drawn.width * 0.22));
    await page.mouse.click(drawn.x + left_edge - 10, drawn.y + 58 + 11);
    await rest(page);
    assert.equal(await param(page, 'pin'), null, 'a click on the pin lets it go');
  }

  // From rank to rank.
  await open(page, '#/timeline');
  await focus(page, id);
  const ranks = Number(/^([\d,]+) rank/.exec(await summaryOf(page))[1].replaceAll(',', ''));
  const one = await status(page, id);
  await press(page, 'ArrowDown');
  if (ranks > 1) assert.notEqual(await status(page, id), one);
  await press(page, 'ArrowUp');
  assert.equal(await status(page, id), one);

  if ((await page.locator('.table-caption').count()) === 0) {
    assert.match(await page.$eval('main', (main) => main.innerText), /Single events were left out/);
    return;
  }
  // Open, zoom down to a single kernel, go from event to event.
  await page.waitForFunction(() => document.querySelectorAll('[aria-labelledby="longest-caption"] tbody tr[data-row]').length > 0);
  const closed = (await box(page, id)).height;
  await press(page, 'Enter');
  await page.waitForFunction(([canvas, height]) => document.getElementById(canvas).getBoundingClientRect().height > height, [id, Math.min(closed, 500)]);
  assert.equal((await param(page, 'open')).split(',').length, 1);
  for (let i = 0; i < 8; ++i) await page.keyboard.press('w');
  await press(page, '.');
  const event = await status(page, id);
  assert.match(event, /: [\d.]+ (ns|us|ms|s).*; rank \d+/);
  await press(page, '.');
  assert.notEqual(await status(page, id), event);
  await press(page, ',');
  await press(page, 'f');
  await rest(page);
  const [from, to] = (await param(page, 't')).split('-').map(Number);
  const long = /: ([\d.]+) (ns|us|ms|s)/.exec(await status(page, id));
  const nanoseconds = Number(long[1]) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[long[2]];
  assert.ok(to - from <= nanoseconds * 2.2 + 150, `${to - from} ns in view around an event of ${nanoseconds}`);
  assert.ok((await page.$$eval('[aria-labelledby="longest-caption"] tbody tr[data-row] td:first-child', (cells) => cells.map((cell) => cell.textContent))).length > 0);
  await focus(page, id);
  await page.keyboard.press('Escape');
  await roundTrip(page, id);

  // A row of the table shows that event.
  await open(page, '#/timeline');
  await page.waitForFunction(() => document.querySelectorAll('[aria-labelledby="longest-caption"] tbody tr[data-row]').length > 3);
  const name = await page.$eval('[aria-labelledby="longest-caption"] tr[data-row="2"] td:first-child', (cell) => cell.title || cell.textContent);
  await page.locator('[aria-labelledby="longest-caption"] tr[data-row="2"] .row-button').click();
  await rest(page);
  assert.ok((await status(page, id)).startsWith(name.slice(0, 20)), `${name}: ${await status(page, id)}`);

  // Searching makes names stand out; N goes from one to the next.
  await open(page, '#/timeline?open=0');
  await page.waitForFunction(() => document.querySelectorAll('[aria-labelledby="longest-caption"] tbody tr[data-row]').length > 3);
  const word = (await page.$eval('[aria-labelledby="longest-caption"] tr[data-row="3"] td:first-child', (cell) => cell.textContent)).slice(0, 6);
  await differs(page, id, () => page.getByPlaceholder('name of a kernel').fill(word));
  assert.match(await page.$eval('main', (main) => main.innerText), /names? contains? this/);
  await focus(page, id);
  await press(page, 'n');
  assert.ok((await status(page, id)).toLowerCase().includes(word.toLowerCase()), `${word}: ${await status(page, id)}`);
  await page.getByPlaceholder('name of a kernel').fill('there is no such kernel');
  await settled(page);
  assert.match(await page.$eval('main', (main) => main.innerText), /No name contains this/);
  assert.match(await hash(page), /find=/);
  if (ranks > 2) {
    await open(page, '#/timeline?ranks=1-1');
    assert.match(await summaryOf(page), /^1 rank,/);
  }
}

const TESTS = { heatmap: ['heat-map', heatMap], waits: ['wait-matrix', waits], waterfall: ['waterfall-canvas', waterfall], timeline: ['timeline-canvas', timeline] };

/** Who called the chosen span and whom it called; ARROWS says how many arrows the page of a serving job has. */
async function arrows(page) {
  await open(page, '#/timeline?open=0,1&row=1');
  const id = 'timeline-canvas';
  await rest(page);
  assert.match(await page.textContent('main'), new RegExp(`\\b${process.env.ARROWS} arrows from spans`));
  await focus(page, id);
  await press(page, 'ArrowDown', '.');
  await rest(page);
  assert.match(await status(page, id), /^prefill: .*; called by send of rank 0.*; calls beside prefill of rank 1/);
  await press(page, 'ArrowUp', 'ArrowUp', '.');
  await rest(page);
  assert.match(await status(page, id), /^send: .*; calls prefill of rank 1/);
  await differs(page, id, () => press(page, 'Escape'));
  await open(page, '#/timeline?row=1');
  await focus(page, id);
  await differs(page, id, () => press(page, 'Enter'));
  assert.deepEqual(page.trouble, [], 'no message on the console, no request');
  console.log('ok arrows');
}
if (process.env.ARROWS) {
  await withBrowser({ colorScheme: 'light', reducedMotion: 'reduce' }, async (context) => arrows(await openWatched(context, file)));
  process.exit(0);
}

await withBrowser({ colorScheme: 'light', reducedMotion: 'reduce' }, async (context) => {
  const page = await openWatched(context, file);
  await settled(page);
  const offered = await page.$$eval('nav a', (links) => links.map((link) => [link.getAttribute('href').slice(2), link.classList.contains('dim')]));
  for (const [view, [id, test]] of Object.entries(TESTS)) {
    const entry = offered.find(([name]) => name === view);
    assert.ok(entry, `there is a view ${view}`);
    if (entry[1]) {
      await open(page, `#/${view}`);
      assert.ok((await page.$eval('.note', (note) => note.textContent)).length > 20, `${view} says why it is empty`);
      console.log(`ok ${view}: nothing to show, and it says so`);
      continue;
    }
    const begin = Date.now();
    await test(page);
    // Another theme paints it anew.
    await open(page, `#/${view}`);
    await page.waitForSelector(`#${id}`);
    await rest(page);
    await differs(page, id, () => page.getByRole('button', { name: /theme$/ }).click());
    await page.getByRole('button', { name: /theme$/ }).click();
    // Narrower window, narrower picture.
    const wide = (await box(page, id)).width;
    await page.setViewportSize({ width: 900, height: 700 });
    await page.waitForFunction(([canvas, before]) => document.getElementById(canvas).getBoundingClientRect().width < before, [id, wide]);
    await page.setViewportSize({ width: 1280, height: 860 });
    await settled(page);
    console.log(`ok ${view} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  }
  assert.deepEqual(page.trouble, [], 'no message on the console, no request');
});
await withBrowser({ colorScheme: 'dark', deviceScaleFactor: 2 }, async (context) => {
  const page = await openWatched(context, file);
  for (const [view, [id]] of Object.entries(TESTS)) {
    await open(page, `#/${view}`);
    if ((await page.locator(`#${id}`).count()) > 0) await sharp(page, id, 2);
  }
  console.log('ok sharp on a screen of twice as many pixels');
});
