// Facts about what the canvases draw, without a browser: each fast way is held against a plain one on made-up input.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const packages = createRequire(join(process.env.LOCKSTEP_WEB, 'package.json'));
const { build } = createRequire(packages.resolve('vite'))('esbuild');
const source = join(dirname(fileURLToPath(import.meta.url)), '../../web/src');
const folder = mkdtempSync(join(tmpdir(), 'lockstep-canvas-'));

async function load(name) {
  const outfile = join(folder, `${name.replaceAll('/', '_')}.mjs`);
  await build({
    entryPoints: [join(source, name)], outfile, bundle: true, format: 'esm', platform: 'neutral', mainFields: ['module', 'main'],
    nodePaths: [join(process.env.LOCKSTEP_WEB, 'node_modules')], jsx: 'automatic', jsxImportSource: 'preact', logLevel: 'error',
  });
  return import(pathToFileURL(outfile).href);
}

/** The same numbers in every run. */
function numbers(seed) {
  let state = seed >>> 0;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

const tests = [];
const fact = (name, check) => tests.push({ name, check });

fact('an arrow goes from its caller, while that is there, to the begin of the called one, on the rows of open ranks', async () => {
  const { arrowsInView, arrowsOf, eventOf } = await load('canvas/arrows.ts');
  const names = ['beside', 'prefill', 'send'];
  const track = (events, lane = 'operators') => ({
    lane, label: '', level_count: 2, start_ns: Float64Array.from(events, (e) => e[0]), duration_ns: Float64Array.from(events, (e) => e[1]),
    name: Uint32Array.from(events, (e) => e[2]), class: new Uint8Array(events.length), level: Uint8Array.from(events, (e) => e[3]),
  });
  const tracks = [[track([[1000, 500, 2, 0]], 'device'), track([[1000, 50, 0, 0], [1000, 500, 2, 1]])], [track([[3000, 9000, 1, 0], [4000, 100, 0, 1]])]];
  const arrows = arrowsOf({ names: ['send', 'prefill', 'gone'], rows: [[0, 1010, 0, 1, 3000, 1], [0, 1010, 2, 1, 3000, 1]] }, names);
  assert.deepEqual(arrows.map((arrow) => [arrow.caller.name, arrow.called.name]), [[2, 1], [-1, 1]]);
  assert.deepEqual(eventOf(tracks[0], arrows[0].caller), { track: 1, event: 1 }, 'of those that begin together the one of its name; times may be cut');
  assert.equal(eventOf(tracks[0], arrows[1].caller), null);
  const lines = [
    { kind: 'rank', rank_index: 0, track: -1, y: 0, height: 22 }, { kind: 'track', rank_index: 0, track: 0, y: 22, height: 34 },
    { kind: 'track', rank_index: 0, track: 1, y: 56, height: 34 }, { kind: 'rank', rank_index: 1, track: -1, y: 90, height: 22 },
  ];
  const scene = {
    lines, open: new Set([0]), tracksOf: (rank) => tracks[rank], start_ns: 0, end_ns: 10000, xOf: (ns) => ns / 10, yOf: (line) => 100 + line.y,
    chosen: (end) => end.rank_index === 1,
  };
  const [drawn] = arrowsInView(scene, arrows.slice(0, 1));
  assert.deepEqual([drawn.from, drawn.to, drawn.chosen], [[150, 100 + 56 + 2 + 1.5 * 15], [300, 100 + 90 + 11], true], 'the caller had ended at 1500');
  assert.equal(arrowsInView({ ...scene, open: new Set() }, arrows).length, 0, 'with all ranks closed there are none');
  assert.equal(arrowsInView({ ...scene, end_ns: 900 }, arrows).length, 0);
  const many = Array.from({ length: 500 }, () => arrows[0]);
  assert.equal(arrowsInView({ ...scene, chosen: () => false }, many).length, 0, 'of a thicket only those of the chosen event');
  assert.equal(arrowsInView(scene, many).length, 500);
});

fact('a pixel of a grid shows the largest of its cells, and hatching only where nothing is measured', async () => {
  const { gridPixels, pixelEdges } = await load('canvas/grid.ts');
  const next = numbers(1);
  for (let round = 0; round < 60; ++round) {
    const [height, width] = [1 + next(40), 1 + next(60)];
    const codes = Uint8Array.from({ length: height * width }, () => [next(254), 254, 255][next(3)]);
    const rows = Uint32Array.from({ length: height }, (_, i) => height - 1 - i);
    const columns = round % 2 ? Uint32Array.from({ length: width }, (_, i) => (i * 7 + 3) % width) : null;
    const row_axis = { first: next(height), count: 1 };
    row_axis.count = 1 + next(height - row_axis.first);
    const column_axis = { first: next(width), count: 1 };
    column_axis.count = 1 + next(width - column_axis.first);
    const [h, w] = [1 + next(50), 1 + next(50)];
    const out = gridPixels(codes, width, pixelEdges(row_axis, h), pixelEdges(column_axis, w), rows, columns);
    const rank = (code) => (code === 255 ? -2 : code === 254 ? -1 : code);
    for (let y = 0; y < h; ++y) {
      for (let x = 0; x < w; ++x) {
        let best = 255;
        const r0 = row_axis.first + Math.floor((y * row_axis.count) / h + 1e-9);
        const r1 = Math.max(r0 + 1, y + 1 === h ? row_axis.first + row_axis.count : row_axis.first + Math.floor(((y + 1) * row_axis.count) / h + 1e-9));
        const c0 = column_axis.first + Math.floor((x * column_axis.count) / w + 1e-9);
        const c1 = Math.max(c0 + 1, x + 1 === w ? column_axis.first + column_axis.count : column_axis.first + Math.floor(((x + 1) * column_axis.count) / w + 1e-9));
        for (let r = r0; r < r1; ++r) {
          for (let c = c0; c < c1; ++c) {
            const code = codes[rows[r] * width + (columns ? columns[c] : c)];
            if (rank(code) > rank(best)) best = code;
          }
        }
        assert.equal(out[y * w + x], best, `round ${round} at ${x}, ${y}`);
      }
    }
  }
});

fact('values become codes, and not measured is no value', async () => {
  const { encode, quantiles } = await load('canvas/grid.ts');
  assert.deepEqual([...encode(Float64Array.of(0, 5, 10, 20, -3, NaN), 0, 10)], [0, 127, 253, 253, 0, 255]);
  assert.deepEqual([...encode(Float64Array.of(0, 10, NaN), 0, 10, true)], [254, 253, 255]);
  assert.deepEqual([...encode(Float64Array.of(4, 4), 4, 4)], [0, 0]);
  assert.deepEqual(quantiles(Float64Array.of(NaN, 3, 1, 2, NaN), [0, 0.5, 0.99]), [1, 2, 3]);
  assert.ok(quantiles(Float64Array.of(NaN), [0.5]).every(Number.isNaN));
});

fact('zooming and moving an axis stays within it', async () => {
  const { zoomAxis, moveAxis, showPosition, parseAxis, axisText, positionAt } = await load('canvas/grid.ts');
  const next = numbers(2);
  for (let round = 0; round < 500; ++round) {
    const total = 1 + next(3000);
    let axis = { first: 0, count: total };
    for (let step = 0; step < 8; ++step) {
      axis = next(2) ? zoomAxis(axis, total, [0.5, 0.9, 1.1, 3][next(4)], next(101) / 100) : moveAxis(axis, total, next(4000) - 2000);
      assert.ok(axis.count >= 1 && axis.first >= 0 && axis.first + axis.count <= total);
      const position = next(total);
      const shown = showPosition(axis, total, position);
      assert.ok(shown.first <= position && position < shown.first + shown.count && shown.count === axis.count);
      assert.deepEqual(parseAxis(axisText(axis, total), total), axis);
      const at = positionAt(axis, 100, next(100));
      assert.ok(at >= axis.first && at < axis.first + axis.count);
    }
  }
  for (const odd of ['', 'x', '1', '-1+2', '99999999999+1', '5+0']) {
    const axis = parseAxis(odd, 10);
    assert.ok(axis.count >= 1 && axis.first >= 0 && axis.first + axis.count <= 10, odd);
  }
});

fact('a window of time stays within the run, and zooming holds the time under the pointer', async () => {
  const { zoomWindow, panWindow, parseWindow, windowText, timeTicks, tickText, MIN_NS } = await load('canvas/window.ts');
  const next = numbers(3);
  for (let round = 0; round < 300; ++round) {
    const span = 1000 + next(2 ** 31) * (1 + next(1000));
    let window = { start_ns: 0, end_ns: span };
    for (let step = 0; step < 12; ++step) {
      const at = next(101) / 100;
      const before = window.start_ns + (window.end_ns - window.start_ns) * at;
      const zoomed = zoomWindow(window, span, [0.3, 0.6, 1.6][next(3)], at);
      assert.ok(zoomed.start_ns >= 0 && zoomed.end_ns <= span * (1 + 1e-12) && zoomed.end_ns - zoomed.start_ns >= MIN_NS * 0.999);
      const inside = zoomed.start_ns > 0 && zoomed.end_ns < span;
      if (inside) assert.ok(Math.abs(zoomed.start_ns + (zoomed.end_ns - zoomed.start_ns) * at - before) <= 1e-6 * span);
      window = next(3) ? zoomed : panWindow(zoomed, span, next(5) - 2);
      assert.ok(window.start_ns >= 0 && window.end_ns <= span * (1 + 1e-12));
      const ticks = timeTicks(window, 800);
      assert.ok(ticks.values.length <= 12, `${ticks.values.length} ticks`);
      const texts = ticks.values.map((value) => tickText(value, ticks.step_ns, span));
      assert.equal(new Set(texts).size, texts.length, texts.join(' '));
    }
    const back = parseWindow(windowText(window, span), span);
    assert.ok(Math.abs(back.start_ns - window.start_ns) <= MIN_NS && Math.abs(back.end_ns - window.end_ns) <= MIN_NS);
  }
  for (const odd of ['', '5', '9-3', 'a-b', '1-2-3', '-5-9', '1e3-1e4']) assert.deepEqual(parseWindow(odd, 5000), { start_ns: 0, end_ns: 5000 }, odd);
});

/** A track with nesting, holes, events of no length, and (where `overlapping`) events side by side on one level. */
function madeTrack(next, count, overlapping) {
  const events = [];
  const levels = 1 + next(3);
  for (let level = 0; level < levels; ++level) {
    let now = next(50);
    for (let i = 0; i < count; ++i) {
      const duration = [0, 1, 3, next(40), next(2000)][next(5)];
      events.push({ start: now, duration, level });
      now += overlapping ? next(30) : Math.max(1, duration) + [0, 0, 1, next(500)][next(4)];
    }
  }
  events.sort((a, b) => a.start - b.start || b.duration - a.duration);
  return {
    lane: 'device', label: 'stream', level_count: levels,
    start_ns: Float64Array.from(events, (e) => e.start), duration_ns: Uint32Array.from(events, (e) => e.duration),
    name: Uint32Array.from(events, () => next(6)), class: Uint8Array.from(events, () => next(4)), level: Uint8Array.from(events, (e) => e.level),
  };
}

fact('events are merged into the pixels that drawing every one would fill, and each is counted', async () => {
  const { laneIndex, visibleRuns } = await load('canvas/events.ts');
  const next = numbers(4);
  for (let round = 0; round < 200; ++round) {
    const track = madeTrack(next, 1 + next(400), round % 3 === 0);
    const lanes = laneIndex(track);
    assert.equal(lanes.reduce((sum, lane) => sum + lane.index.length, 0), track.name.length);
    const width = 20 + next(200);
    const ns_per_pixel = [0.25, 1, 7, 60, 900][next(5)];
    const start = next(3000);
    lanes.forEach((lane, level) => {
      const filled = new Uint8Array(width);
      let counted = 0;
      let runs = 0;
      visibleRuns(track, lane, start, ns_per_pixel, width, (x0, x1, event, count) => {
        assert.equal(track.level[event], level);
        ++runs;
        counted += count;
        for (let x = Math.max(0, Math.floor(x0)); x < Math.min(width, Math.max(Math.floor(x0) + 1, Math.ceil(x1))); ++x) filled[x] = 1;
      });
      const plain = new Uint8Array(width);
      let in_view = 0;
      for (let i = 0; i < track.name.length; ++i) {
        if (track.level[i] !== level) continue;
        const [from, to] = [track.start_ns[i], track.start_ns[i] + track.duration_ns[i]];
        if (from >= start + width * ns_per_pixel || to <= start) continue;
        ++in_view;
        const [x0, x1] = [(from - start) / ns_per_pixel, (to - start) / ns_per_pixel];
        for (let x = Math.max(0, Math.floor(x0)); x < Math.min(width, Math.max(Math.floor(x0) + 1, Math.ceil(x1))); ++x) plain[x] = 1;
      }
      assert.deepEqual(filled, plain, `round ${round}, level ${level}`);
      // Where events lie side by side, those that end just before the window may be counted with the first in it.
      if (round % 3 === 0) assert.ok(counted >= in_view);
      else assert.equal(counted, in_view, `round ${round}, level ${level}: every event in view is in one run`);
      if (round % 3 !== 0) assert.ok(runs <= 2 * width + 1, `${runs} runs in ${width} pixels`);
    });
  }
});

fact('millions of events cost no more drawing than there are pixels', async () => {
  const { laneIndex, visibleRuns } = await load('canvas/events.ts');
  const count = 2_000_000;
  let looked = 0;
  const track = {
    lane: 'device', label: '', level_count: 1, start_ns: Float64Array.from({ length: count }, (_, i) => i * 10), duration_ns: new Uint32Array(count).fill(8),
    name: new Uint32Array(count), class: new Uint8Array(count), level: new Uint8Array(count),
  };
  const [lane] = laneIndex(track);
  const watched = { ...lane, index: new Proxy(lane.index, { get: (target, key) => (typeof key === 'string' && /^\d+$/.test(key) ? (++looked, target[key]) : target[key]) }) };
  let sum = 0;
  visibleRuns(track, watched, 0, (count * 10) / 1000, 1000, (_a, _b, _event, n) => (sum += n));
  assert.equal(sum, count);
  assert.ok(looked <= 4000, `${looked} events looked at`);
});

fact('the event under the pointer is the one that looking at all of them finds', async () => {
  const { laneIndex, eventAt, neighbour } = await load('canvas/events.ts');
  const next = numbers(5);
  for (let round = 0; round < 100; ++round) {
    const track = madeTrack(next, 200, false);
    laneIndex(track).forEach((lane, level) => {
      for (let probe = 0; probe < 30; ++probe) {
        const time = next(60_000) / 3;
        const found = eventAt(track, lane, time, 0);
        const all = [...track.level.keys()].filter((i) => track.level[i] === level && track.start_ns[i] <= time && time < track.start_ns[i] + track.duration_ns[i]);
        if (all.length > 0) assert.ok(all.includes(found));
        else assert.ok(found < 0 || track.start_ns[found] === time || track.start_ns[found] + track.duration_ns[found] === time);
      }
    });
    const time = next(20_000);
    const after = [...track.start_ns].findIndex((start) => start > time);
    assert.equal(neighbour(track, time, true), after);
    const before = [...track.start_ns].findLastIndex((start) => start < time);
    assert.equal(neighbour(track, time, false), before);
    const odd = (i) => i % 2 === 1;
    assert.equal(neighbour(track, time, true, odd), [...track.start_ns].findIndex((start, i) => start > time && odd(i)));
  }
});

fact('the shares of a pixel are the mean of its buckets, and what is there is never nothing', async () => {
  const { chooseLevel, pixelBuckets, addShares, meanShares, classesPresent } = await load('canvas/lod.ts');
  const next = numbers(6);
  const ranks = 3;
  const level = (bucket_count, bucket_ns) => ({ bucket_count, bucket_ns, shares: Uint8Array.from({ length: ranks * bucket_count * 4 }, (_, i) => (i % 4 === 2 ? 0 : next(3) ? next(256) : 0)) });
  const levels = [level(16, 4000), level(64, 1000), level(256, 250)];
  assert.deepEqual(classesPresent(levels), [true, true, false, true]);
  assert.equal(chooseLevel(levels, 5000), levels[0]);
  assert.equal(chooseLevel(levels, 1000), levels[1]);
  assert.equal(chooseLevel(levels, 999), levels[2]);
  assert.equal(chooseLevel(levels, 1), levels[2]);
  assert.equal(chooseLevel([], 1), null);
  for (const one of levels) {
    for (const ns_per_pixel of [one.bucket_ns / 8, one.bucket_ns, one.bucket_ns * 2.5]) {
      const width = 90;
      const start = next(30_000);
      const line = new Uint8Array(width * 4);
      addShares(one, 1, pixelBuckets(one, start, ns_per_pixel, width), line);
      for (let x = 0; x < width; ++x) {
        const from = Math.floor((start + x * ns_per_pixel) / one.bucket_ns + 1e-9);
        const to = Math.max(from + 1, Math.ceil((start + (x + 1) * ns_per_pixel) / one.bucket_ns - 1e-9));
        for (let k = 0; k < 4; ++k) {
          const values = [];
          for (let b = from; b < Math.min(to, one.bucket_count); ++b) values.push(one.shares[(one.bucket_count + b) * 4 + k]);
          const wanted = values.length === 0 ? 0 : Math.ceil(values.reduce((a, b) => a + b, 0) / values.length);
          assert.equal(line[x * 4 + k], wanted);
          if (values.some((value) => value > 0)) assert.ok(line[x * 4 + k] > 0);
        }
      }
    }
  }
  const whole = meanShares([levels[2]], 2, 0, 64_000);
  const plain = levels[2].shares.subarray(2 * 1024).reduce((sum, value, i) => (i % 4 === 0 ? sum + value : sum), 0) / 255 / 256;
  assert.ok(Math.abs(whole[0] - plain) < 1e-9);
});

fact('pinned lines come first, once, and leave room for the others', async () => {
  const { layoutLines, parsePins, pinText, togglePin } = await load('canvas/timeline_layout.ts');
  const pins = parsePins('9,7.1,x,,3.-1,7.0');
  assert.deepEqual(pins, [{ rank_index: 9, track: -1 }, { rank_index: 7, track: 1 }, { rank_index: 7, track: 0 }]);
  assert.equal(pinText(pins), '9,7.1,7.0');
  assert.equal(pinText(togglePin(pins, { rank_index: 7, track: 1 })), '9,7.0');
  assert.equal(pinText(togglePin(pins, { rank_index: 7, track: -1 })), '9,7.1,7.0,7');
  const tracks = [{ level_count: 3 }, { level_count: 1 }];
  const layout = (text, open = [7], most = tracks) => layoutLines([4, 7, 9], new Set(open), (rank) => (rank === 7 ? most : undefined), 5, parsePins(text));
  const order = ({ lines }) => lines.map(({ rank_index, track, pinned }) => `${pinned ? '!' : ''}${rank_index}${track < 0 ? '' : `.${track}`}`).join(' ');
  assert.equal(order(layout('')), '4 7 7.0 7.1 9');
  assert.equal(order(layout('9,7.1')), '!9 !7.1 4 7 7.0');
  assert.equal(order(layout('7.1', [])), '!7.1 4 7 9', 'a track of a rank that is closed');
  assert.equal(order(layout('7,7.1')), '!7 !7.0 !7.1 4 9', 'a rank that is open has its tracks with it');
  assert.equal(order(layout('5')), '!5 4 7 7.0 7.1 9', 'also one that is not among those drawn');
  assert.equal(order(layout('7.5')), '4 7 7.0 7.1 9', 'there is no such track');
  assert.equal(order(layout('7,9', [7], [{ level_count: 30 }])), '!9 4 7 7.0', 'what is too high stays in its place');
  const { lines, height, pinned_count, pinned_height } = layout('9,7.1');
  lines.forEach((line, i) => assert.equal(line.y, i === 0 ? 0 : lines[i - 1].y + lines[i - 1].height));
  assert.equal(pinned_height, lines[pinned_count].y);
  assert.equal(height, lines.at(-1).y + lines.at(-1).height);
});

fact('lines lie one below the other, and open ranks have their tracks below them', async () => {
  const { layoutLines, firstLineAt, parseRankList, classBands } = await load('canvas/timeline_layout.ts');
  const tracks = [{ level_count: 3 }, { level_count: 0 }];
  const { lines, height } = layoutLines([4, 7, 9], new Set([7]), (rank) => (rank === 7 ? tracks : undefined), 5);
  assert.deepEqual(lines.map((line) => [line.kind, line.rank_index, line.track]), [['rank', 4, -1], ['rank', 7, -1], ['track', 7, 0], ['track', 7, 1], ['rank', 9, -1]]);
  lines.forEach((line, i) => assert.equal(line.y, i === 0 ? 0 : lines[i - 1].y + lines[i - 1].height));
  assert.equal(height, lines.at(-1).y + lines.at(-1).height);
  for (let y = 0; y < height; y += 0.5) assert.equal(firstLineAt(lines, y), lines.findIndex((line) => line.y <= y && y < line.y + line.height));
  const wanted = parseRankList('0-2, 8');
  assert.deepEqual([0, 1, 2, 3, 8, 9].filter(wanted), [0, 1, 2, 8]);
  for (const all of ['', 'x', '-', '1-']) assert.equal(parseRankList(all), null);
  const bands = classBands([true, true, false, true]);
  assert.equal(bands[0].from, 0);
  assert.equal(bands[3].to, 1);
  assert.equal(bands[2].from, bands[2].to);
});

fact('ranks that share a line of pixels show the busiest, and no rank is left out', async () => {
  const { paintShares } = await load('canvas/timeline_paint.ts');
  const { layoutLines, classBands } = await load('canvas/timeline_layout.ts');
  const ranks = 1000;
  const level = { bucket_count: 1, bucket_ns: 100, shares: new Uint8Array(ranks * 4) };
  level.shares[777 * 4] = 255; // One busy rank among a thousand, on 300 lines of pixels.
  const { lines } = layoutLines(Array.from({ length: ranks }, (_, i) => i), new Set(), () => undefined, 0.3);
  const ink = { shares: [0, 1, 2, 3].map((k) => Uint32Array.from({ length: 256 }, (_, share) => (share === 0 ? 0 : k * 1000 + share))) };
  const out = new Uint32Array(10 * 300);
  paintShares(out, 10, 300, 1, lines, 0, 0, level, { start_ns: 0, end_ns: 100 }, classBands([true, true, true, true]), ink, () => true);
  const lit = [...out].map((value, i) => (value ? Math.floor(i / 10) : -1)).filter((y) => y >= 0);
  assert.deepEqual([...new Set(lit)], [Math.floor(777 * 0.3)]);
  assert.ok(out.every((value) => value === 0 || value === 255));
});

fact('the order of arrival is said only where the clocks can tell', async () => {
  const { waterfallRows, pickInstances } = await load('canvas/waterfall.ts');
  const member = (rank_index, arrival_ns, wait_ns = 0) => ({ rank_index, arrival_ns, end_ns: 5000, wait_ns });
  const places = (members, clock) => waterfallRows(members, clock).map((row) => [row.rank_index, row.place]);
  assert.deepEqual(places([member(2, 3000), member(0, 1000), member(1, 1500)], () => 10), [[0, 1], [1, 2], [2, 3]]);
  assert.deepEqual(places([member(2, 3000), member(0, 1000), member(1, 1500)], () => 250), [[0, null], [1, null], [2, 3]], 'exactly as far as both clocks may be off');
  assert.deepEqual(places([member(0, 1000), member(1, 3000)], (rank) => (rank === 0 ? null : 0)), [[0, null], [1, null]], 'an unknown clock');
  // Rank 0's clock is so bad that it may have come after rank 2, though rank 1 and 2 can be told apart.
  assert.deepEqual(places([member(0, 1000), member(1, 1200), member(2, 1400)], (rank) => (rank === 0 ? 500 : 10)).map(([, place]) => place), [null, null, null]);
  const [row] = waterfallRows([member(0, 1000, 2500)], () => 0);
  assert.equal(row.wait_ns + row.transfer_ns, row.end_ns - row.arrival_ns);
  const [unknown] = waterfallRows([member(0, 1000, null)], () => 0);
  assert.equal(unknown.transfer_ns, null);
  const by_wait = Uint32Array.of(2, 0, 1);
  assert.deepEqual(pickInstances(3, by_wait, 'wait', () => true, 2), { picked: [2, 0], all: 3 });
  assert.deepEqual(pickInstances(3, by_wait, 'time', (i) => i !== 1, 9), { picked: [0, 2], all: 2 });
});

fact('means, medians and the largest cells leave out what is not measured', async () => {
  const { rowMeans, againstMedian, largestCells } = await load('views/heatmap.tsx');
  const values = Float64Array.of(1, 2, NaN, 3, NaN, NaN, 5, 6, 10);
  assert.deepEqual([...rowMeans(values, 3, 3)], [1.5, 3, 7]);
  assert.deepEqual([...againstMedian(values, 3, 3)], [1 / 3, 0.5, NaN, 1, NaN, NaN, 5 / 3, 1.5, 1]);
  assert.deepEqual(largestCells(values, 2), [8, 7]);
  assert.deepEqual(largestCells(Float64Array.of(NaN, NaN), 2), []);
});

fact('the longest events are those that sorting all finds', async () => {
  const { longestEvents } = await load('views/timeline.tsx');
  const next = numbers(7);
  const tracks = [madeTrack(next, 500, false), madeTrack(next, 800, true)];
  const found = longestEvents(tracks, 500, 9000, 20).map(({ track, event }) => tracks[track].duration_ns[event]);
  const all = tracks.flatMap((track) => [...track.start_ns.keys()].filter((i) => track.start_ns[i] < 9000 && track.start_ns[i] + track.duration_ns[i] > 500).map((i) => track.duration_ns[i]));
  assert.deepEqual(found, all.sort((a, b) => b - a).slice(0, 20));
});

fact('labels of lines do not run into each other, and the line of the cursor has one', async () => {
  const { labelledLines, layoutLines } = await load('canvas/timeline_layout.ts');
  const { lines } = layoutLines([...Array(128).keys()], new Set(), () => undefined, 4);
  for (const here of [-1, 0, 1, 5, 63, 127]) {
    const found = [...labelledLines(lines, 0, 512, here)];
    if (here >= 0) assert.ok(found.includes(here), `line ${here}`);
    assert.ok(found.length > 30, `${found.length} labels`);
    for (let at = 1; at < found.length; ++at) assert.ok(lines[found[at]].y - lines[found[at - 1]].y >= 13, `${found[at - 1]} and ${found[at]} with the cursor on ${here}`);
  }
});

fact('sums of a stretch are what counting each nanosecond gives, and say which rank has most', async () => {
  const { addSums } = await load('data/span_sums.ts');
  const next = numbers(11);
  const names = ['a', 'b', 'c'];
  const ranks = [0, 1, 2].map(() => [madeTrack(next, 60, false)].map((track) => ({ ...track, lane: 'device', name: track.name.map((name) => name % 3) })));
  const [from, to] = [300, 2000];
  const sums = new Map();
  ranks.forEach((tracks, rank) => addSums(sums, rank, tracks, names, from, to));
  names.forEach((name, at) => {
    const by_rank = ranks.map(([track]) => [...track.start_ns.keys()].filter((i) => track.name[i] === at).map((i) => {
      let inside = 0;
      for (let ns = track.start_ns[i]; ns < track.start_ns[i] + track.duration_ns[i]; ++ns) if (ns >= from && ns < to) ++inside;
      return inside;
    }).filter((inside) => inside > 0));
    const row = sums.get(`device ${name}`);
    const total = by_rank.flat().reduce((sum, ns) => sum + ns, 0);
    assert.equal(row?.total_ns ?? 0, total);
    if (!row) return;
    assert.equal(row.longest_ns, Math.max(...by_rank.flat()));
    assert.equal(row.most_ns, Math.max(...by_rank.map((all) => all.reduce((sum, ns) => sum + ns, 0))));
    assert.equal(row.rank_count, by_rank.filter((all) => all.length > 0).length);
  });
});

fact('an arrow goes from a call to what it launched, and to a device event from its call', async () => {
  const { launchArrows } = await load('canvas/arrows.ts');
  const track = (lane, first, starts, launch) => ({ lane, label: '', level_count: 1, first, launch, start_ns: Float64Array.from(starts), duration_ns: Float64Array.from(starts, () => 5),
    name: Uint32Array.from(starts, (_, at) => first + at), class: new Uint8Array(starts.length), level: new Uint8Array(starts.length) });
  // As the page holds them: operators, runtime, device; drawn devices first.
  const tracks = [track('device', 5, [50, 60, 90], Int32Array.from([3, 3, -1])), track('runtime', 2, [10, 20, 30], null), track('operators', 0, [0, 5], null)];
  const told = (arrows) => arrows.map(({ caller, called }) => [caller.start_ns, called.start_ns]);
  assert.deepEqual(told(launchArrows(0, tracks, 0, 1)), [[20, 60]]);
  assert.deepEqual(told(launchArrows(0, tracks, 1, 1)), [[20, 50], [20, 60]]);
  assert.deepEqual(launchArrows(0, tracks, 0, 2), []);
  assert.deepEqual(launchArrows(0, tracks, 1, 0), []);
  assert.deepEqual(launchArrows(0, tracks, 2, 0), []);
  assert.deepEqual(launchArrows(0, tracks, 9, 0), []);
});

fact('a span in the address is within the run, or none', async () => {
  const { parseSpan } = await load('canvas/window.ts');
  assert.deepEqual(parseSpan('100-900', 500), { start_ns: 100, end_ns: 500 });
  for (const text of ['', '9-9', '9-3', 'x-3', '700-900', '1-']) assert.equal(parseSpan(text, 500), null, text);
});

fact('the collective of an event is the nearest that its rank entered then', async () => {
  const { collectiveOf } = await load('data/collective_of.ts');
  const arrivals = [[100_000, 130_000], [101_500, 170_000], [500_000, 480_000]];
  const table = {
    count: arrivals.length,
    instance: (index) => ({ index, first_arrival_ns: Math.min(...arrivals[index]), last_arrival_ns: Math.max(...arrivals[index]) }),
    members: (index) => arrivals[index].map((arrival_ns, rank_index) => ({ rank_index, arrival_ns })),
  };
  assert.equal(collectiveOf(table, 0, 101_200).instance.index, 1);
  assert.equal(collectiveOf(table, 1, 130_010).instance.index, 0);
  assert.equal(collectiveOf(table, 1, 480_000).instance.index, 2);
  assert.equal(collectiveOf(table, 0, 130_000), null);
  assert.equal(collectiveOf(table, 7, 100_000), null);
});

let failed = 0;
for (const { name, check } of tests) {
  try {
    await check();
    console.log(`ok   ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAIL ${name}\n${error.stack.slice(0, 1500)}`);
  }
}
rmSync(folder, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
