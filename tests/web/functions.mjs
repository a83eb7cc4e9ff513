// Facts about the functions of web/src that need no browser. The source is TypeScript: vite's esbuild turns each file
// under test into a module first.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const packages = createRequire(join(process.env.LOCKSTEP_WEB, 'package.json'));
const { build } = createRequire(packages.resolve('vite'))('esbuild');
const source = join(dirname(fileURLToPath(import.meta.url)), '../../web/src');
const folder = mkdtempSync(join(tmpdir(), 'lockstep-functions-'));

async function load(name) {
  const outfile = join(folder, `${name.replaceAll('/', '_')}.mjs`);
  await build({
    entryPoints: [join(source, name)], outfile, bundle: true, format: 'esm', platform: 'neutral', mainFields: ['module', 'main'],
    nodePaths: [join(process.env.LOCKSTEP_WEB, 'node_modules')], jsx: 'automatic', jsxImportSource: 'preact', logLevel: 'error',
  });
  return import(pathToFileURL(outfile).href);
}

const tests = [];
const fact = (name, check) => tests.push({ name, check });

fact('numbers are written as the text report writes them', async () => {
  const n = await load('numbers.ts');
  // The cases of src/present/report/format_test.cc.
  for (const [ns, text] of [
    [0, '0'], [1, '1 ns'], [812, '812 ns'], [999, '999 ns'], [1230, '1.23 us'], [999600, '1.00 ms'], [45.6e6, '45.6 ms'], [12e9, '12.0 s'],
    [1278e9, '21.3 min'], [47160e9, '13.1 h'], [1736640e9, '20.1 d'], [-1230, '-1.23 us'],
  ]) assert.equal(n.duration(ns), text);
  for (const [value, text] of [[0, '0'], [512, '512 B'], [1536, '1.50 KiB'], [1048576, '1.00 MiB']]) assert.equal(n.bytes(value), text);
  assert.equal(n.rate(12.3e9), '12.3 GB/s');
  for (const [value, text] of [[0, '0'], [999, '999'], [1000, '1,000'], [1234567, '1,234,567']]) assert.equal(n.count(value), text);
  for (const [ratio, text] of [[0, '0 %'], [0.0005, '<0.1 %'], [0.031, '3.1 %'], [0.42, '42 %'], [1, '100 %']]) assert.equal(n.percent(ratio), text);
});

fact('null is never a number', async () => {
  const n = await load('numbers.ts');
  for (const format of [n.duration, n.bytes, n.rate, n.count, n.percent, n.number]) {
    for (const value of [null, undefined, NaN, Infinity]) assert.equal(format(value), n.ABSENT);
  }
});

fact('functions of SQL are those of lockstep query', async () => {
  const { AGGREGATES, SCALARS, deviation, percentile, sharedLength } = await load('sql/functions.ts');
  const scalar = (name, ...values) => SCALARS.find((each) => each.name === name && each.argument_count === values.length).of(...values);
  assert.equal(scalar('overlap_ns', 0, 10, 4, 20), 6);
  assert.equal(scalar('overlap_ns', 0, 10, 10, 20), 0);
  assert.equal(scalar('format_ns', 45.6e6), '45.6 ms');
  assert.equal(scalar('format_bytes', 1536), '1.50 KiB');
  assert.equal(scalar('format_rate', 12.3e9), '12.3 GB/s');
  assert.equal(scalar('short_name', 'void ns::f<ns::T>(int)'), 'ns::f<ns::T>');
  assert.equal(scalar('short_name', 'void ns::long_name<ns::T>(int)', 12), 'long_name<T>');
  assert.equal(scalar('short_name', 'void ns::long_name<ns::T>(int)', 8), 'long_na…');
  assert.equal(percentile([4, 1, 3, 2], 50), 2.5);
  assert.equal(percentile([7], 99), 7);
  assert.equal(percentile([], 50), null);
  assert.deepEqual([deviation([]), deviation([3]), deviation([1, 3])], [null, 0, Math.SQRT2]);
  const side = (start, end, of = 0) => ({ start, end, side: of });
  assert.equal(sharedLength([side(0, 10), side(5, 15), side(20, 21)], 1), 16);
  assert.equal(sharedLength([side(0, 10, 0), side(5, 15, 1), side(12, 30, 0), side(14, 20, 1)], 2), 5 + 3 + 5);
  assert.equal(sharedLength([], 2), null);
  const group = AGGREGATES.find(({ name }) => name === 'percentile').begin();
  for (const value of [1, null, '3', 'no number']) group.add([value, 50]);
  assert.equal(group.end(), 2, 'what is no number is left out');
});

fact('an event is in the step in whose window it starts', async () => {
  const { sourcesIn, stepsOf } = await load('sql/page_tables.ts');
  const steps = [{ step: 7, start_ns: 10, end_ns: 20 }, { step: 8, start_ns: 20, end_ns: 30 }, { step: 11, start_ns: 40, end_ns: 50 }];
  assert.deepEqual([...stepsOf([0, 10, 19, 20, 35, 40, 49, 50], steps)], [NaN, 7, 7, 8, NaN, 11, 11, NaN]);
  assert.deepEqual([...stepsOf([1, 2], [])], [NaN, NaN]);
  const sources = [{ tables: [{ name: 'events' }, { name: 'kernels' }] }, { tables: [{ name: 'steps' }] }];
  assert.deepEqual(sourcesIn('SELECT * FROM Kernels', sources), [sources[0]]);
  assert.deepEqual(sourcesIn('SELECT step FROM all_steps', sources), []);
});

fact('counters are grouped by name and unit, each written in its unit', async () => {
  const { groupCounters, unitOf } = await load('views/counters.tsx');
  const row = (rank_index, name, unit, mean) => ({ rank_index, device: null, name, unit, mean });
  const groups = groupCounters([row(0, 'loss', null, 2), row(0, 'busy', '%', 40), row(1, 'loss', null, 6), row(1, 'busy', 'ns', 1)]);
  assert.deepEqual(groups.map((group) => [group.key, group.mean, group.rows.map((each) => each.rank_index)]),
    [['busy (%)', 40, [0]], ['busy (ns)', 1, [1]], ['loss', 4, [1, 0]]], 'the largest mean first');
  for (const [unit, value, text] of [['bytes', 2048, '2.00 KiB'], ['bytes/s', 2e9, '2.00 GB/s'], ['ns', 1500, '1.50 us'], ['%', 12.34, '12.3 %'], [null, 0.5, '0.50'], ['%', null, '–']]) {
    assert.equal(unitOf(unit).format(value), text);
  }
});

fact('cells of any table are written by their unit, and saved as --csv has them', async () => {
  const { columnOf, words } = await load('views/tables.tsx');
  const column = (name, type, unit, is_list = false) => ({ name, type, unit, is_list, meaning: '' });
  const steps = column('steps', 'integer', '', true);
  const hops = column('hops', 'object', '', true);
  for (const [of, cell, text] of [
    [column('wait_ns', 'integer', 'ns'), 1500, '1.50 us'], [column('wait_ns', 'integer', 'ns', true), [1500, null], '1.50 us, –'],
    [column('rank', 'integer', ''), 12345, '12345'], [steps, [3, 4, 5], '3, 4, 5'], [steps, [], 'none'], [column('chronic', 'boolean', ''), true, 'yes'],
    [column('start_ns', 'integer', 'ns, aligned clock'), '1695158640000123457', '1695158640000123457'], [column('ratio', 'real', '0..1'), null, '–'],
    [hops, [{ rank: 2, wait_ns: 5 }, { rank: 3, wait_ns: null }], 'rank 2, wait_ns 5; rank 3, wait_ns –'],
  ]) assert.equal(words(of, cell), text);
  const saved = (of, cell) => columnOf(of, 0).value({ key: '0', cells: [cell] });
  assert.deepEqual([saved(steps, [3, 4]), saved(hops, [{ rank: 2 }]), saved(column('a', 'boolean', ''), false), saved(column('a', 'real', ''), null)],
    ['[3,4]', '[{"rank":2}]', 'false', null]);
});

fact('the band over time is from the smallest to the largest of those that are known', async () => {
  const { envelope } = await load('charts/range_over_time.tsx');
  const one = { key: 'a', label: 'a', time_ns: [0, 50], low: [-3, 4], high: [-1, 9] };
  const other = { key: 'b', label: 'b', time_ns: [20, 30], low: [7, 2], high: [7, 2] };
  assert.deepEqual(envelope([one], 2, 0, 100), [{ low: -3, high: -1 }, { low: -3, high: 9 }], 'a value holds until the next');
  assert.deepEqual(envelope([one, other], 4, 0, 100), [{ low: -3, high: 7 }, { low: -3, high: 7 }, { low: -3, high: 9 }, { low: Infinity, high: -Infinity }]);
});

fact('curves of the fabric have the colours of what they are held against', async () => {
  const { fabricCurves, jobSeries, tableRows } = await load('data/fabric.ts');
  const job = (name, group_size, bytes) => ({ name, group_size, bytes, count: 3, busbw_bytes_per_s: [1, 2, 3, 4, 5], algbw_median_bytes_per_s: 2 });
  const measured = (operation, bytes, spread = 1) => ({ operation, bytes, busbw_bytes_per_s: 6, slowest_busbw_bytes_per_s: 6 - spread, fastest_busbw_bytes_per_s: 6 + spread, mean_ns: 10 });
  const source = { source: 'bench.json', backend: 'MPI', rank_count: 2, ratio: 0.5, points: [measured('all_reduce', 8), measured('all_reduce', 64), measured('broadcast', 8), measured('send_recv', 8)] };
  const fabric = [{ ...job('all_reduce', 4, 64), transfer_ns: 9, busbw_median_bytes_per_s: 3, fabric_busbw_bytes_per_s: 6, ratio: 0.5 }];
  const series = jobSeries({ bandwidth: [job('all_gather', 4, 8), job('all_reduce', 4, 64), job('all_reduce', 4, 8), job('recv', 2, 8)], fabric });
  assert.deepEqual(series.map((each) => each.label), ['all_gather, 4 ranks', 'all_reduce, 4 ranks', 'recv, 2 ranks']);
  assert.deepEqual(series[1].points.map((point) => [point.bytes, point.ratio]), [[8, null], [64, 0.5]], 'by size; what has no measurement has no share');
  const used = fabricCurves(source, series, true);
  assert.deepEqual(used.map((curve) => [curve.label, curve.at, curve.points.length]), [['fabric: all_reduce, 2 ranks', 1, 2], ['fabric: send_recv, 2 ranks', 2, 1]]);
  assert.deepEqual(fabricCurves(source, series, false).map((curve) => curve.at), [1, 3, 2], 'broadcast has a colour of its own');
  assert.deepEqual(fabricCurves(source, series.slice(0, 1), true).length, 3, 'all where the job uses none of them');
  assert.deepEqual(fabricCurves(null, series, true), []);
  const rows = tableRows(series, used, 2);
  assert.deepEqual(rows.map((row) => row.of), ['job', 'job', 'job', 'job', 'fabric', 'fabric', 'fabric']);
  assert.deepEqual([rows[0].busbw_median_bytes_per_s, rows[4].busbw_min_bytes_per_s, rows[4].busbw_max_bytes_per_s, rows[4].count], [3, 5, 7, null]);
});

fact('ranks are listed in runs', async () => {
  const { rankList } = await load('numbers.ts');
  assert.equal(rankList([]), 'no rank');
  assert.equal(rankList([2]), 'rank 2');
  assert.equal(rankList([5, 4, 7, 3]), 'ranks 3 to 5 and 7');
  assert.equal(rankList([1, 2]), 'ranks 1 and 2');
  assert.equal(rankList([0, 2, 4, 6, 8, 10, 12, 14]), 'ranks 0, 2, 4, 6, 8, 10 … (8 in all)');
});

fact('kernel names lose what does not tell them apart', async () => {
  const { shortName } = await load('numbers.ts');
  assert.equal(shortName('ncclKernel_SendRecv_RING(ncclDevComm*, unsigned long)'), 'ncclKernel_SendRecv_RING');
  assert.equal(shortName('Memcpy HtoD (Pageable -> Device)'), 'Memcpy HtoD (Pageable -> Device)');
  assert.equal(shortName('void (anonymous namespace)::f<int>(int)'), 'f<int>');
  assert.equal(shortName('at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)'), 'vectorized_elementwise_kernel<4, FillFunctor<float>>');
});

fact('an address goes there and back', async () => {
  const { href, parseHash } = await load('app/route.ts');
  const name = 'compute:void f<a, b>(int &x) %41 ü';
  const back = parseHash(href('kernels', { open: name, 'kernels.sort': '-count' }));
  assert.equal(back.view, 'kernels');
  assert.equal(back.params.get('open'), name);
  assert.equal(back.params.get('kernels.sort'), '-count');
  for (const odd of ['', '#', '#/', '#/%E0%A4%A', '#/x?&&=']) assert.ok(parseHash(odd).params);
});

fact('rows without a value come last, whichever way they are sorted', async () => {
  const { sortRows } = await load('parts/data_table.tsx');
  const column = { key: 'v', title: 'v', value: (row) => row };
  assert.deepEqual(sortRows([2, null, 3, 1], column, false), [1, 2, 3, null]);
  assert.deepEqual(sortRows([2, null, 3, 1], column, true), [3, 2, 1, null]);
  assert.deepEqual(sortRows(['rank 10', 'rank 9'], column, false), ['rank 9', 'rank 10']);
});

fact('CSV keeps what is in a cell, and no cell is a formula', async () => {
  const { csvText } = await load('parts/save.ts');
  assert.equal(csvText(['a', 'b'], [['x,"y"', null], ['=1+1', -5]]), 'a,b\r\n"x,""y""",\r\n\'=1+1,-5\r\n');
});

fact('axes begin at 0, reach the largest value and have round ticks', async () => {
  const { axisFromZero, labelStride } = await load('charts/scales.ts');
  for (const kind of ['ns', 'bytes', 'number']) {
    for (const max of [0, 1, 3, 1023, 1024, 999_999, 14.93e6, 7.3e9, 4e12]) {
      const axis = axisFromZero(max, 500, kind);
      assert.equal(axis.at(0), 0);
      assert.ok(axis.at(max) <= 500.001, `${kind} ${max}`);
      assert.ok(axis.ticks.length >= 2 && axis.ticks.length <= 14, `${kind} ${max}: ${axis.ticks.length} ticks`);
      assert.equal(new Set(axis.ticks.map((tick) => tick.text)).size, axis.ticks.length, `${kind} ${max}: ${axis.ticks.map((t) => t.text)}`);
    }
  }
  assert.deepEqual(axisFromZero(6 * 1024 ** 3, 500, 'bytes').ticks.map((tick) => tick.text), ['0', '2 GiB', '4 GiB', '6 GiB']);
  assert.equal(labelStride(2000, 1000, 50), 100);
  assert.equal(labelStride(5, 1000, 50), 1);
});

fact('a rank stands in a group as its counters say beside the foremost', async () => {
  const { groupCells } = await load('data/hang.ts');
  const at = (rank, enqueued, completed, open) => ({
    rank, last_enqueued: enqueued, last_started: null, last_completed: completed, oldest_retained: null, open_since_unix_ns: null,
    open_operation: open, waits_for: [],
  });
  const group = (ranks, members) => ({ name: '0', description: null, members, members_inferred: false, ranks });
  const standings = (ranks, members) => groupCells([group(ranks, members)]).map((cell) => `${cell.rank} ${cell.standing}`);
  assert.deepEqual(
    standings([at(0, 5, 4, 'all_reduce'), at(1, 4, 4, null), at(3, 5, 4, 'all_reduce')], [0, 1, 2, 3]),
    ['0 waiting', '1 behind', '2 no_record', '3 waiting'],
  );
  assert.deepEqual(standings([at(0, 5, 5, null), at(1, 5, 4, 'all_reduce')], [0, 1]), ['0 in_step', '1 device_behind']);
  // What is not known is behind nobody.
  assert.deepEqual(standings([at(0, 5, 5, null), at(1, null, null, null)], [0, 1]), ['0 in_step', '1 in_step']);
});

fact('stacks part at the first frame that differs, counted from the outermost', async () => {
  const { isUserFrame, sharedFrames } = await load('data/hang.ts');
  const frame = (name, line, file = '/job/train.py') => ({ function: name, file, line });
  const a = [frame('barrier', 9, '/x/site-packages/torch/distributed/c10d.py'), frame('save', 82), frame('main', 120)];
  const b = [frame('clip', 74), frame('train', 88), frame('main', 120)];
  assert.equal(sharedFrames(a, b), 1);
  assert.equal(sharedFrames(a, a), 3);
  assert.equal(sharedFrames(a, []), 0);
  assert.deepEqual(a.map(isUserFrame), [false, true, true]);
  assert.ok(!isUserFrame({ function: 'f', file: null, line: null }));
});

fact('what is missing for the same reason on several ranks is said once', async () => {
  const { foldMissing } = await load('views/hang_evidence.tsx');
  const item = (rank, reason) => ({ rank, host: 'node-1', what: 'python_stacks', reason, remedy: 'install py-spy' });
  const folded = foldMissing([item(0, 'no py-spy'), item(2, 'no py-spy'), item(1, 'gone')]);
  assert.deepEqual(folded.map((each) => each.ranks), [[0, 2], [1]]);
  assert.deepEqual(folded[0].hosts, ['node-1']);
});

fact('silence counts back from the collection, or from the last instant where that is not known', async () => {
  const { silenceRows } = await load('views/hang_silence.tsx');
  const rank = (number, silent) => ({ rank: number, role: 'victim', doing: null, silent_since_unix_ns: silent });
  const data = (collected) => ({ ranks: [rank(0, 1e9), rank(1, 3e9), rank(2, null)], groups: [], job: { world_size: 3, collected_unix_ns: collected } });
  assert.deepEqual(silenceRows(data(5e9)).map((row) => row.silent_ns), [4e9, 2e9, null]);
  assert.deepEqual(silenceRows(data(null)).map((row) => row.silent_ns), [2e9, 0, null]);
});

fact('a history goes on with views, and a place in a column is a time', async () => {
  const { Timeline } = await load('live/timeline.ts');
  const timeline = new Timeline();
  const S = 1e9;
  timeline.load({
    schema: 'lockstep.live-history/1', until_unix_ns: 1005.5 * S, window_ns: S, bucket_ns: S, times_unix_ns: [1001 * S, 1002 * S, 1005 * S],
    jobs: [{ job_id: 'a', step_ns: [1, 2, 5], ranks: [{ rank: '0', own_ns: [10, null, 50], state: 'rk.' }], serving: [] }], nodes: [],
  });
  assert.equal(timeline.shown, 5);
  const job = timeline.jobs.get('a');
  assert.deepEqual(timeline.last(job.job, 'step_ns', 6), [null, 1, 2, null, null, 5]);
  assert.deepEqual(timeline.last(job.ranks.get('0'), 'own_ns', 5), [10, null, null, null, 50]);
  assert.deepEqual(timeline.last(job.ranks.get('0'), 'state', 5), [1, 5, null, null, null]);
  const rank = (own_ns, state) => ({ rank: '0', step_ns: null, own_ns, compute_ratio: null, communication_ratio: null, state });
  const view = (at_s, step_ns, ...ranks) => ({ asked_unix_ns: at_s * S, window_ns: S, nodes: [], jobs: [{ job_id: 'a', step_ns, ranks, serving: [] }] });
  assert.equal(timeline.append(view(1005.2, 99, rank(99, 'runs'))), false, 'the history has it');
  assert.ok(timeline.append(view(1007.1, 6, rank(60, 'runs'))));
  assert.ok(timeline.append(view(1007.9, 8, rank(80, 'slow'))));
  assert.deepEqual(timeline.last(job.job, 'step_ns', 3), [5, 6, 7], 'the mean of the looks of a bucket; one bucket that was skipped is no hole');
  assert.deepEqual(timeline.last(job.ranks.get('0'), 'state', 2), [1, 3], 'the worst state of a bucket');
  assert.ok(timeline.append(view(1008.5, 8, rank(12345, 'unheard'))));
  assert.deepEqual(timeline.last(job.ranks.get('0'), 'own_ns', 2), [70, null], 'what a silent node said before is not measured now');
  // Paused: what comes is kept and not shown.
  timeline.frozen_ns = 1007.9 * S;
  assert.deepEqual(timeline.last(job.job, 'step_ns', 1), [7]);
  timeline.append(view(1009.5, 9));
  assert.equal(timeline.last_number, 1007);
  timeline.frozen_ns = null;
  assert.deepEqual(timeline.last(job.job, 'step_ns', 2), [8, 9]);
  for (let at = 1010; at < 1700; ++at) timeline.append(view(at + 0.5, 1));
  assert.ok(timeline.is_full);
  // A history that spans more than the page keeps leaves room for what comes.
  timeline.load({
    schema: 'lockstep.live-history/1', until_unix_ns: 2000.5 * S, window_ns: S, bucket_ns: S, times_unix_ns: Array.from({ length: 300 }, (_, i) => (1402 + 2 * i) * S),
    jobs: [{ job_id: 'a', step_ns: Array.from({ length: 300 }, (_, i) => i), ranks: [], serving: [] }], nodes: [],
  });
  for (let at = 2001; at < 2100; ++at) timeline.append(view(at + 0.5, 1));
  assert.ok(!timeline.is_full);
  assert.deepEqual(timeline.last(timeline.jobs.get('a').job, 'step_ns', 100).slice(0, 2), [299, 1]);
  // While nobody looks the server asks less often: means over a window hold for all of it.
  timeline.load({
    schema: 'lockstep.live-history/1', until_unix_ns: 2020.5 * S, window_ns: 10 * S, bucket_ns: S, times_unix_ns: [2000 * S, 2010 * S, 2030 * S],
    jobs: [{ job_id: 'a', step_ns: [1, 2, 3], ranks: [], serving: [] }], nodes: [],
  });
  assert.deepEqual(timeline.last(timeline.jobs.get('a').job, 'step_ns', 31), [1, ...Array(10).fill(2), ...Array(19).fill(null), 3]);
  timeline.append({ ...view(2040.5, 4), window_ns: 10 * S });
  assert.deepEqual(timeline.last(timeline.jobs.get('a').job, 'step_ns', 11), [3, ...Array(10).fill(4)]);
  // A machine that slept: what was before is too far away to be held beside what is now.
  timeline.append(view(9000.5, 3));
  assert.equal(timeline.shown, 1);
});

fact('a cell of the live heat map keeps its column while time goes on', async () => {
  const { Timeline } = await load('live/timeline.ts');
  const { rowsOver, timeColumns } = await load('live/shared.tsx');
  const timeline = new Timeline();
  const view = (second) => ({ asked_unix_ns: second * 1e9, nodes: [], jobs: [{ job_id: 'a', ranks: [{ rank: '0', own_ns: second, state: 'runs' }], serving: [] }] });
  for (let second = 100; second <= 103; ++second) timeline.append(view(second));
  const look = () => {
    const values = rowsOver([timeline.jobs.get('a').ranks.get('0'), undefined], 'own_ns', 3, timeline);
    const { columns, ago } = timeColumns(3, timeline);
    return { in_order: [...columns].map((column) => values[column]), at: [...values].indexOf(103), ago: [...columns].map(ago), none: values[3] };
  };
  const before = look();
  assert.deepEqual(before.in_order, [101, 102, 103]);
  assert.deepEqual(before.ago, [2e9, 1e9, 0]);
  assert.ok(Number.isNaN(before.none), 'a row without columns is not measured');
  timeline.append(view(104));
  assert.deepEqual(look().in_order, [102, 103, 104]);
  assert.equal(look().at, before.at);
});

fact('the verdict of a live job names who holds it up, the gravest first', async () => {
  const { chosenJob, verdict, worseRank } = await load('live/verdict.ts');
  const rank = (name, more = {}) => ({ rank: name, host: 'n1', node: 'n1', state: 'waits', waits_for_rank: '2', behind_steps: 0, own_ns: 1e6, progress_age_ns: 1e9, open_phase: null, open_phase_ns: null, groups: [], ...more });
  const job = (more = {}) => ({
    job_id: 'a', world_size: 3, missing_ranks: [], steps_per_s: 18, step_ns: 55e6, communication_ratio: 0.4, slowest_rank: null, slowest_ratio: null, alarms: [], serving: [],
    ranks: [rank('0'), rank('1'), rank('2', { state: 'slow', waits_for_rank: null, own_ns: 3e6 })], ...more,
  });
  const node = { host: 'n1', silent_ns: 4e9, alarms: [] };
  const straggler = { kind: 'straggler', severity: 'warning', text: 'rank 2 takes 1.88 times', rank: '2' };
  const slow = verdict(job({ slowest_rank: '2', slowest_ratio: 1.88, alarms: [straggler] }), [node]);
  assert.equal(slow.severity, 'warning');
  assert.match(slow.sentence, /^Rank 2 on n1 is the slowest: its own time is 1\.88 times/);
  assert.match(slow.why, /^Ranks 0 and 1 wait for it\. 40 % /);
  // A sick device of its nodes colours the box, and is not taken for the cause.
  const ill = verdict(job({ slowest_rank: '2', slowest_ratio: 1.88, alarms: [straggler] }), [{ ...node, alarms: [{ kind: 'gpu_xid', severity: 'critical', text: 'x', rank: null }] }]);
  assert.deepEqual([ill.severity, ill.sentence], ['critical', slow.sentence]);
  const stuck = verdict(job({ ranks: ['0', '1'].map((name) => rank(name, { state: 'stuck', progress_age_ns: 90e9 })).concat(rank('2', { state: 'stuck', waits_for_rank: null })) }), [node]);
  assert.equal(stuck.sentence, 'Rank 2 holds the job up: no step has ended for 90.0 s.');
  assert.equal(stuck.severity, 'critical');
  const phase = (open_phase) => ({ open_phase, open_phase_ns: 89e9 });
  const known = verdict(job({ ranks: ['0', '1'].map((name) => rank(name, { state: 'stuck', progress_age_ns: 90e9, ...phase('comm_exposed') })).concat(rank('2', { state: 'stuck', waits_for_rank: null, ...phase('input') })) }), [node]);
  assert.equal(known.sentence, 'Rank 2 holds the job up: it has been in input for 89.0 s, and no step has ended for 90.0 s.');
  const gone = verdict(job({ ranks: [rank('0', { state: 'unheard', waits_for_rank: null })] }), [node]);
  assert.match(gone.sentence, /No figures from rank 0: n1 has not answered for 4\.00 s/);
  const well = verdict(job({ ranks: ['0', '1', '2'].map((name) => rank(name, { state: 'runs', waits_for_rank: null })) }), [node]);
  assert.deepEqual([well.severity, well.sentence], ['none', 'No alarm: 3 ranks, 18.0 steps a second of 55.0 ms.']);
  assert.match(verdict(job({ ranks: [rank('0', { state: 'silent' })] }), [node]).sentence, /^1 rank is there, and it records no steps\.$/);
  assert.match(verdict(job({ ranks: [] }), []).sentence, /No rank/);
  const order = [rank('1', { state: 'stuck' }), rank('2', { state: 'stuck', waits_for_rank: null, own_ns: 0 }), rank('10', { state: 'runs' }), rank('9', { state: 'runs' }), rank('3', { state: 'runs', own_ns: 9e6 }), rank('4', { state: 'runs', behind_steps: 5 }), rank('5', { state: 'unheard' }), rank('6', { state: 'stuck' }), rank('7', { state: 'slow' })].sort(worseRank);
  assert.deepEqual(order.map((each) => each.rank), ['5', '2', '1', '6', '7', '4', '3', '9', '10']);
  const view = { jobs: [job({ job_id: 'small', ranks: [] }), job()] };
  assert.equal(chosenJob(view, '').job_id, 'a');
  assert.equal(chosenJob(view, 'small').job_id, 'small');
  assert.equal(chosenJob(view, 'gone').job_id, 'a');
  assert.equal(chosenJob({ jobs: [] }, ''), null);
});

fact('what a live page lacks is listed, the gravest first', async () => {
  const { doubts } = await load('live/verdict.ts');
  const node = (more) => ({ host: 'n1', problem: null, silent_ns: null, is_cut: false, bad_line_count: 0, clock_offset_ns: 0, collectors: [], alarms: [], ...more });
  const rank = { rank: '0', state: 'runs', dropped_event_count: 0, is_since_start: false, gpu: {}, bus_bytes_per_s: 1, oldest_collective_ns: null, groups: [], communication_ratio: 0, mfu_ratio: 0.4 };
  const job = (ranks, more = {}) => ({ world_size: ranks.length, missing_ranks: [], ranks, ...more });
  assert.deepEqual(doubts({ nodes: [node({})] }, job([rank])), []);
  const found = doubts(
    { nodes: [node({ bad_line_count: 2, is_cut: true, clock_offset_ns: -3e9, collectors: [{ name: 'nvidia', is_present: true, succeeded: false }] }), node({ host: 'n2', problem: 'refused' })] },
    job([{ ...rank, dropped_event_count: 12, gpu: null, mfu_ratio: null }, { ...rank, rank: '1', state: 'silent' }], { world_size: 3, missing_ranks: [2] }),
  );
  const words = found.map((each) => `${each.severity}: ${each.what}`).join('\n');
  for (const part of ['critical: n2 does not answer: refused', 'critical: Rank 2 runs on none', 'warning: n1 reported more', 'warning: 2 lines from n1', '3.00 s behind', 'n1 cannot read nvidia',
    'Rank 1 records no steps', '12 records of rank 0 were dropped', 'info: Devices are not measured for rank 0', 'info: MFU is not']) assert.ok(words.includes(part), `${part}\n${words}`);
  assert.deepEqual(found.map((each) => each.severity), [...found.map((each) => each.severity)].sort((a, b) => ['critical', 'warning', 'info'].indexOf(a) - ['critical', 'warning', 'info'].indexOf(b)));
});

fact('a critical alert goes before an alarm that is no more than a remark', async () => {
  const { troubles } = await load('live/verdict.ts');
  const alarm = (severity, text, host = null) => ({ kind: 'kind', severity, text, rank: null, host });
  const alert = (severity, name) => ({ name, state: 'firing', severity, summary: 'it is so.', runbook: null, labels: {}, since_unix_ns: 0, value: null });
  assert.deepEqual(troubles([], []), []);
  assert.deepEqual(troubles([alarm('warning', 'n1 gpu 3: hot', 'n1'), alarm('info', 'rank 2 is new')], [alert('critical', 'Lost'), alert('page', 'Mine'), alert(null, 'Bare')]), [
    { severity: 'critical', text: 'Lost: it is so.' },
    { severity: 'warning', text: 'n1 gpu 3: hot.' },
    { severity: 'warning', text: 'Mine: it is so.' },
    { severity: 'warning', text: 'Bare: it is so.' },
    { severity: 'info', text: 'Rank 2 is new.' },
  ]);
});

fact('ranks in words become numbers, and nothing else does', async () => {
  const { parseRanks } = await load('live/verdict.ts');
  assert.deepEqual(parseRanks(''), []);
  assert.deepEqual(parseRanks(' 8, 0-3,2 '), [0, 1, 2, 3, 8]);
  for (const odd of ['a', '3-1', '-1', '1.5', '0-99999999', '1;2']) assert.equal(parseRanks(odd), null, odd);
});

fact('of a process group it is said who has called least', async () => {
  const { groupRows } = await load('live/network.tsx');
  const rank = (name, ...groups) => ({ rank: name, groups: groups.map(([group, enqueued_count, completed_count, oldest_inflight_ns]) => ({ group, enqueued_count, completed_count, oldest_inflight_ns })) });
  const [stuck, calm, unknown] = groupRows([rank('0', ['world', 7, 5, 9e9], ['tp', 3, 3, null], ['x', null, null, null]), rank('1', ['world', 6, 5, null], ['tp', 3, 3, null])]);
  assert.deepEqual(stuck, { name: 'world', ranks: 2, enqueued: 7, completed: 5, behind: 1, last_rank: '1', oldest_ns: 9e9 });
  assert.deepEqual([calm.name, calm.behind, calm.last_rank], ['tp', 0, null]);
  assert.deepEqual([unknown.name, unknown.enqueued, unknown.behind, unknown.last_rank], ['x', null, null, null]);
});

fact('lines have gaps where nothing was measured, and time is said back from now', async () => {
  const { agoText, linePath } = await load('charts/time_lines.tsx');
  const id = (value) => value;
  assert.equal(linePath([1, 2, null, 4, null, 5, 6], id, id), 'M0.0 1.0L1.0 2.0M3.0 4.0h1M5.0 5.0L6.0 6.0');
  assert.equal(linePath([null, null], id, id), '');
  assert.deepEqual([0, 5e9, 60e9, 90e9, 120e9, 700e9].map(agoText), ['now', '−5 s', '−1 min', '−90 s', '−2 min', '−11.7 min']);
});

fact('the ends of a live scale are calm and hold what is measured', async () => {
  const { scaleOf } = await load('live/heat_panel.tsx');
  const [low, high] = scaleOf(Float64Array.of(NaN, 101e6, 100e6, 99e6));
  assert.ok(low > 0 && low <= 99e6 && high >= 101e6 && high - low >= 0.09 * high, `${low} to ${high}`);
  assert.deepEqual(scaleOf(Float64Array.of(NaN, NaN)), [0, 1]);
  assert.deepEqual(scaleOf(Float64Array.of(0, 0)), [0, 0]);
});

fact('the colour maps run from dark to bright without turning back', async () => {
  const { viridis, cividis } = await load('colors.ts');
  for (const map of [viridis, cividis]) {
    let before = -1;
    for (let t = 0; t <= 1.0001; t += 0.02) {
      const [r, g, b] = map(t);
      const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
      assert.ok(light > before, `at ${t}`);
      before = light;
    }
  }
});

fact('text has a contrast of 4.5 and graphics of 3 against what they stand on, in both themes', async () => {
  const css = readFileSync(join(source, 'styles/page.css'), 'utf8');
  const light = /^:root \{(.*?)^\}/ms.exec(css)[1];
  const dark = /^:root\[data-theme='dark'\] \{(.*?)^\}/ms.exec(css)[1];
  // Without a script the system's theme holds; it is the same.
  const early = /:root:not\(\[data-theme\]\) \{(.*?)^ {2}\}/ms.exec(css)[1];
  const tokens = (text) => new Map([...text.matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6});/g)].map((match) => [match[1], match[2]]));
  assert.deepEqual([...tokens(early)], [...tokens(dark)]);
  const luminance = (color) => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const c = parseInt(color.slice(at, at + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const TEXT = ['text', 'muted', 'link', 'critical', 'warning', 'info'];
  const GRAPHICS = ['compute', 'communication', 'memory', 'host', 'idle', 'strong-line', 'focus', 'series-1', 'series-2', 'series-3', 'series-4', 'series-5', 'series-6'];
  for (const [name, theme] of [['light', tokens(light)], ['dark', tokens(dark)]]) {
    for (const text of TEXT) {
      for (const ground of ['background', 'panel', 'raised', 'select']) {
        const value = contrast(theme.get(text), theme.get(ground));
        assert.ok(value >= 4.5, `${name}: ${text} on ${ground}: ${value.toFixed(2)}`);
      }
    }
    for (const mark of GRAPHICS) {
      const value = contrast(theme.get(mark), theme.get('background'));
      assert.ok(value >= 3, `${name}: ${mark}: ${value.toFixed(2)}`);
    }
  }
});

fact('round ticks hold both ends, with steps of 1, 2 or 5, also below 1 and around 0', async () => {
  const { roundTicks, linear, logarithmic, cutText, textWidth } = await load('charts/scales.ts');
  for (const [low, high, wanted] of [[0, 7, 5], [0, 0.34, 6], [-130, 420, 5], [-1000, 1000, 5], [3.2e9, 3.3e9, 4], [0, 1e-7, 3]]) {
    const ticks = roundTicks(low, high, wanted);
    const step = ticks[1] - ticks[0];
    assert.ok(ticks[0] <= low && ticks.at(-1) >= high * (1 - 1e-12), `${ticks}`);
    assert.ok(ticks.length >= 2 && ticks.length <= 2 * wanted + 3, `${ticks}`);
    assert.match(step.toExponential(6), /^[125]\.0+e/, `${ticks}`);
    ticks.forEach((tick, at) => assert.ok(Math.abs(tick - ticks[0] - at * step) < step * 1e-6));
  }
  assert.deepEqual(roundTicks(0, 0.3, 3), [0, 0.1, 0.2, 0.3]);
  assert.equal(linear(10, 20, 100, 0)(15), 50);
  assert.equal(logarithmic(1, 100, 0, 200)(10), 100);
  assert.equal(logarithmic(1, 100, 0, 200)(0.001), 0);
  const name = 'sm80_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x256x32_stage3_kernel';
  for (const width of [40, 100, 200]) {
    assert.ok(textWidth(cutText(name, width)) <= width);
    assert.match(cutText(name, width), /^sm.*….*l$/);
  }
  assert.equal(cutText('short', 100), 'short');
});

/** Two steps of two ranks: 60 + 40 ns and 30 + 20 ns, the second with 5 ns left out of its rows. */
const PATH = {
  step_count: 2, step_ns: 152, path_ns: 150, largest_error_ns: 2,
  categories: [{ category: 'compute', path_ns: 90 }, { category: 'transfer', path_ns: 60 }],
  ranks: [{ rank_index: 1, path_ns: 100, slack_ns: 0, category_ns: { compute: 90, transfer: 10 } }, { rank_index: 0, path_ns: 50, slack_ns: 4, category_ns: { transfer: 50 } }],
  names: [{ category: 'compute', name: 'gemm', path_ns: 90, slack_ns: 0 }], rest_name_count: 3, rest_names_ns: 60,
  steps: [
    { window: 0, step: 7, start_ns: 0, step_ns: 102, path_ns: 100, category_ns: { compute: 60, transfer: 40 }, slack: [[0, 9], [1, 0], [2, 5]] },
    { window: 0, step: 8, start_ns: 102, step_ns: 50, path_ns: 50, category_ns: { compute: 30, transfer: 20 }, slack: null },
  ],
  rows: [[0, 1, 2, 0, 60], [0, 0, 4, 1, 25], [0, 0, 4, 2, 15], [1, 1, 2, 0, 30], [1, 0, 4, 1, 15]], rest_ns: [0, 5], rows_per_step: 3,
  pieces: [], pieces_per_step: null, texts: ['gemm', 'all_reduce', ''], kinds: ['host', 'data_loader', 'compute', 'copy', 'transfer'],
};

fact('the path of one step is that of its rows, the mean that of all steps', async () => {
  const { longestStep, pathSlice } = await load('data/depth.ts');
  assert.equal(longestStep(PATH), 0);
  const mean = pathSlice(PATH, null);
  assert.equal(mean.path_ns, 75);
  assert.deepEqual(mean.ranks.map((row) => [row.rank_index, row.path_ns, row.category_ns]), [[1, 50, { compute: 45, transfer: 5 }], [0, 25, { transfer: 25 }]]);
  assert.equal(mean.rest_ns, 30);
  const first = pathSlice(PATH, 0);
  assert.deepEqual(first.categories, [{ category: 'compute', path_ns: 60 }, { category: 'transfer', path_ns: 40 }]);
  // Rank 2 is not on the path, but has slack.
  assert.deepEqual(first.ranks.map((row) => [row.rank_index, row.path_ns, row.slack_ns]), [[1, 60, 0], [0, 40, 9], [2, 0, 5]]);
  assert.deepEqual(first.names.map((row) => [row.name, row.path_ns, row.slack_ns]), [['gemm', 60, 0], ['all_reduce', 25, null], [null, 15, null]]);
  const second = pathSlice(PATH, 1);
  assert.equal(second.names.reduce((sum, row) => sum + row.path_ns, 0) + second.rest_ns, second.path_ns);
  assert.deepEqual(second.ranks.map((row) => row.slack_ns), [null, null]);
  assert.equal(pathSlice(PATH, 9).step, null);
});

fact('waits of a rank add up over their kinds; worst first', async () => {
  const { waitsByRank } = await load('data/depth.ts');
  const state = (rank_index, kind, wait_ns) => ({ rank_index, kind, count: 2, wait_ns });
  const rows = waitsByRank({ states: [state(0, 'late_sender', 5), state(0, 'wait_at_collective', 6), state(3, 'late_sender', 40)] });
  assert.deepEqual(rows.map((row) => [row.rank_index, row.wait_ns, row.count, [...row.kinds]]),
    [[3, 40, 2, [['late_sender', 40]]], [0, 11, 4, [['late_sender', 5], ['wait_at_collective', 6]]]]);
});

fact('bubbles are means over the steps that are no warm-up, unless all are', async () => {
  const { bubblesByStage } = await load('data/depth.ts');
  const step = (number, warm_up) => ({ step: number, dp_rank: 0, warm_up });
  const stage = (number, of, busy_ns, memory_bytes) => ({ step: number, dp_rank: 0, stage: of, window_ns: 100, busy_ns, bubble_ratio: 1 - busy_ns / 100, memory_bytes });
  const stages = [stage(0, 1, 10, null), stage(1, 1, 60, 5), stage(2, 1, 80, 9), stage(1, 0, 50, null)];
  const rows = bubblesByStage({ steps: [step(0, true), step(1, false), step(2, false)], stages });
  assert.deepEqual(rows.map((row) => [row.stage, row.count, row.busy_ns, row.memory_bytes]), [[0, 1, 50, null], [1, 2, 70, 9]]);
  assert.ok(Math.abs(rows[1].bubble_ratio - 0.3) < 1e-12);
  assert.deepEqual(bubblesByStage({ steps: [step(0, true)], stages: [stage(0, 0, 10, null)] }).map((row) => row.busy_ns), [10]);
});

fact('a roofline takes what has a rate and an intensity, between whole powers of ten', async () => {
  const { decades, rooflinePoints, simulationError } = await load('data/depth.ts');
  const row = (intensity, mean_flops_per_s) => ({ intensity, mean_flops_per_s });
  assert.deepEqual(rooflinePoints([row(2, 5), row(2, null), row(0, 5), row(2, 0)]).map((point) => point.flops_per_s), [5]);
  assert.deepEqual(decades(3, 250), [1, 10, 100, 1000]);
  assert.deepEqual(decades(10, 10), [10, 100]);
  assert.equal(simulationError({ error_ratio: null, observed_step_ns: 100 }), 0);
  assert.equal(simulationError({ error_ratio: 0.25, observed_step_ns: 100 }), 25);
});

fact('a view without data says which command gives it', async () => {
  const { causesMissing, groupsMissing, measuredMissing, pathMissing, regionsMissing, stagesMissing, whatIfMissing } = await load('data/depth.ts');
  const none = { critical_path: null, wait_states: null, what_if: null, bubbles: null, groups: null, flops: null, regions: null, kernel_launches: null, kernel_sums: null, stage_scopes: null };
  for (const missing of [causesMissing, groupsMissing, measuredMissing, pathMissing, regionsMissing, stagesMissing]) assert.match(missing(none), /lockstep analyze/);
  assert.match(whatIfMissing(none), /--what-if/);
  assert.equal(pathMissing({ ...none, critical_path: PATH }), null);
  assert.match(pathMissing({ ...none, critical_path: { ...PATH, path_ns: 0 } }), /no path/);
  assert.equal(whatIfMissing({ ...none, what_if: {} }), null);
  assert.equal(groupsMissing({ ...none, groups: [], flops: [{}] }), null);
  assert.match(regionsMissing({ ...none, regions: [] }), /record_function/);
  assert.equal(regionsMissing({ ...none, regions: [{}] }), null);
  assert.match(stagesMissing({ ...none, stage_scopes: [] }), /lockstep run --stages/);
  assert.equal(stagesMissing({ ...none, stage_scopes: [{}] }), null);
  assert.match(measuredMissing({ ...none, kernel_launches: [], kernel_sums: [] }), /ncu --csv/);
  assert.equal(measuredMissing({ ...none, kernel_launches: [], kernel_sums: [{}] }), null);
});

fact('an edge of a ring leads to the next rank and back to the first, and knows whether it leaves a host', async () => {
  const { channelText, ringEdges } = await load('data/nccl.ts');
  const edges = ringEdges({ channels: [0, 1, 2, 5], order: [0, 2, 3, 1] }, new Map([[0, 'a'], [1, 'a'], [2, 'b'], [3, 'b']]));
  assert.deepEqual(edges.map((edge) => [edge.rank, edge.next_rank, edge.between_hosts]), [[0, 2, true], [2, 3, false], [3, 1, true], [1, 0, false]]);
  assert.equal(edges[0].channels, '0-2, 5');
  assert.equal(channelText([]), '');
});

fact('ranks of a tree stand above the middle of those below them, each once, however deep', async () => {
  const { layoutTree } = await load('data/nccl.ts');
  const { nodes, width, depth } = layoutTree({ channels: [0], roots: [0], edges: [[0, 1], [0, 2], [2, 3], [2, 4], [1, 4], [4, 0]] });
  const by = new Map(nodes.map((node) => [node.rank, node]));
  assert.deepEqual([...by.keys()].sort(), [0, 1, 2, 3, 4]);
  assert.equal(by.get(0).x, (by.get(1).x + by.get(2).x) / 2);
  assert.equal(by.get(4).parent, 1, 'the first that claims it');
  assert.ok(width >= 2 && depth === 2);
  const chain = layoutTree({ channels: [0], roots: [0], edges: [...Array(20000).keys()].map((rank) => [rank, rank + 1]) });
  assert.deepEqual([chain.width, chain.depth, chain.nodes.length], [1, 20000, 20001]);
  assert.deepEqual(layoutTree({ channels: [], roots: [], edges: [] }), { nodes: [], width: 1, depth: 0 });
});

fact('elements of a machine stand one level below what is around them', async () => {
  const { topologyLines } = await load('data/nccl.ts');
  const node = (name, parent) => ({ kind: 'pci', name, facts: null, parent });
  const lines = topologyLines([node('system', null), node('cpu', 0), node('gpu', 1), node('net', 1), node('lost', 99)]);
  assert.deepEqual(lines.map((line) => [line.level, line.parent_line]), [[0, -1], [1, 0], [2, 1], [2, 1], [0, -1]]);
});

fact('a point of a benchmark in time has its slowest rank longest, and values that no network has are not drawn', async () => {
  const { benchCurves, benchRows, pointOf } = await load('data/bench.ts');
  const point = { operation: 'all_reduce', bytes: 8, busbw_bytes_per_s: 1e6, slowest_busbw_bytes_per_s: 5e5, fastest_busbw_bytes_per_s: 2e6, mean_ns: 100 };
  assert.deepEqual(pointOf(point, 'time'), { bytes: 8, value: 100, low: 200, high: 50 });
  assert.deepEqual(pointOf(point, 'busbw'), { bytes: 8, value: 1e6, low: 5e5, high: 2e6 });
  assert.equal(pointOf({ ...point, busbw_bytes_per_s: 1e300 }, 'busbw'), null);
  assert.equal(pointOf({ ...point, mean_ns: null }, 'time'), null);
  const fabric = (points) => ({ source: 'x', backend: null, rank_count: 2, hosts: ['a', 'a'], points, pairs: [], pair_count: 0 });
  const both = { fabric: fabric([point]), earlier: fabric([{ ...point, busbw_bytes_per_s: 8e5, mean_ns: null }, { ...point, operation: 'reduce' }]) };
  assert.deepEqual(benchCurves(both, 'busbw').map((curve) => [curve.operation, curve.earlier, curve.at]), [['all_reduce', false, 0], ['all_reduce', true, 0], ['reduce', true, 1]]);
  assert.deepEqual(benchCurves(both, 'time').map((curve) => [curve.operation, curve.earlier]), [['all_reduce', false], ['reduce', true]]);
  assert.ok(Math.abs(benchRows(both)[0].change_ratio - 0.25) < 1e-12);
});

fact('a stage of a step says who takes longest and who costs most, by their numbers', async () => {
  const { stagesOfStep } = await load('data/stages.ts');
  const stage = (name, rank_ns, cost_ns, frontier_ns) => ({ stage: name, rank_ns, cost_ns, frontier_ns, imbalance_ns: 0, leader_ns: rank_ns });
  const rows = stagesOfStep({ ranks: [{ rank: 4 }, { rank: 7 }, { rank: 9 }], step_count: 10, total_ns: 1000, stages: [stage('input', [10, 300, 20], [0, 280, 0], 300), stage('gc', [0, 0, 0], [0, 0, 0], 0)] });
  assert.deepEqual(rows, [{ stage: 'input', median_ns: 2, slowest_ns: 30, slowest_rank: 7, ratio: 0.3, imbalance_ratio: 0, cost_rank: 7, cost_ratio: 0.28 }]);
  assert.deepEqual(stagesOfStep({ ranks: [], step_count: 0, total_ns: 0, stages: [] }), []);
});

let failed = 0;
for (const { name, check } of tests) {
  try {
    await check();
    console.log(`ok   ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}
rmSync(folder, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
