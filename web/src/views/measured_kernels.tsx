import { useParam } from '../app/route';
import { Roofline } from '../charts/roofline';
import { StackedRows } from '../charts/stacked_rows';
import { measuredMissing, type KernelLaunchRow, type KernelRooflineRow, type KernelSumRow } from '../data/depth';
import { duration, flopRate, number, percent, plural, shortName } from '../numbers';
import { Answer } from '../parts/answer';
import { countColumn, numberColumn, shareColumn, textColumn, timeColumn } from '../parts/columns';
import { Legend, Select } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';

const DRAWN = 30;
const POINTS = 200;
const MARKS: Record<string, string> = { compute: 'compute', memory: 'communication', balanced: 'memory', latency: 'idle' };
const WORDS: Record<string, string> = { compute: 'compute', memory: 'memory', balanced: 'both alike', latency: 'latency: too little work in flight', unknown: 'not told' };

const keyOf = (row: { file: string; id: number; kernel: string }) => `${row.file} ${row.id} ${row.kernel}`;
const nameOf = (row: { kernel: string; rank: number | null }) => shortName(row.kernel) + (row.rank === null ? '' : `, rank ${row.rank}`);
const rateColumn = (key: 'flops_per_s' | 'roof_flops_per_s', title: string) => ({
  key, title, numeric: true, value: (row: KernelRooflineRow) => row[key], text: (row: KernelRooflineRow) => flopRate(row[key]),
});

/** `rows`: the longest first. */
export function Launches({ rows }: { rows: readonly KernelLaunchRow[] }) {
  const first = rows[0]!;
  const summary = `${plural(rows.length, 'launch', 'launches')} that Nsight Compute measured, at its clocks and with cold caches. Longest: ${shortName(first.kernel)}, ${duration(first.duration_ns)}, bound by ${WORDS[first.bound]}.` +
    (rows.length > DRAWN ? ` The ${DRAWN} longest are drawn.` : '');
  const met = Object.keys(WORDS).filter((bound) => rows.some((row) => row.bound === bound));
  return (
    <Figure
      id="kernel-launches"
      title="Measured launches"
      summary={summary}
      columns={[
        textColumn('kernel', 'Kernel', 40),
        numberColumn('rank', 'Rank'),
        numberColumn('id', 'No.'),
        textColumn('device', 'Device'),
        textColumn('grid', 'Grid'),
        textColumn('block', 'Block'),
        timeColumn('duration_ns', 'Time'),
        textColumn('bound', 'Bound by'),
        shareColumn('compute_ratio', 'Compute', 'Throughput of the SMs, of the most they sustain'),
        shareColumn('memory_ratio', 'Memory', 'Of the memory system, likewise'),
        shareColumn('dram_ratio', 'DRAM'),
        shareColumn('occupancy_ratio', 'Occupancy'),
        textColumn('file', 'Table', 30),
      ]}
      rows={rows}
      rowKey={keyOf}
      sort="-duration_ns"
      search={['kernel', 'bound', 'file']}
    >
      <Legend items={met.map((bound) => ({ mark: MARKS[bound] ?? 'host', label: WORDS[bound]! }))} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.slice(0, DRAWN).map((row) => ({
          key: keyOf(row), label: nameOf(row),
          parts: row.duration_ns === null ? null : [{ mark: MARKS[row.bound] ?? 'host', label: WORDS[row.bound]!, value: row.duration_ns }],
          text: row.measured_nothing || (row.compute_ratio === null && row.memory_ratio === null) ? 'nothing measured' : `compute ${percent(row.compute_ratio)}, memory ${percent(row.memory_ratio)}`,
        }))}
      />
    </Figure>
  );
}

export function Rooflines({ rows, launches }: { rows: readonly KernelRooflineRow[]; launches: readonly KernelLaunchRow[] }) {
  const roofOf = (row: KernelRooflineRow) => `${row.device ?? 'the device'}, ${row.precision}`;
  const roofs = [...new Set(rows.map(roofOf))];
  const [choice, choose] = useParam('roof', roofs[0]!);
  const roof = roofs.includes(choice) ? choice : roofs[0]!;
  const chosen = rows.filter((row) => roofOf(row) === roof);
  const drawn = chosen.slice(0, POINTS);
  const times = new Map(launches.map((row) => [keyOf(row), row.duration_ns ?? 0]));
  const longest = Math.max(1, ...drawn.map((row) => times.get(keyOf(row)) ?? 0));
  // The longest launch's ceiling: clocks differ a little between launches.
  const first = drawn[0]!;
  const summary = `${plural(chosen.length, 'launch', 'launches')} under the roofline of ${roof}; larger dots take longer. ${shortName(first.kernel)} does ${flopRate(first.flops_per_s)}, ${percent(first.roof_ratio)} of its roof.` +
    (first.approximate ? ' About: how many operations an instruction does depends on the device.' : '') +
    (chosen.length > drawn.length ? ` The ${POINTS} longest are drawn.` : '');
  return (
    <Figure
      id="kernel-rooflines"
      title="Roofline of measured kernels"
      summary={summary}
      columns={[
        textColumn('kernel', 'Kernel', 40),
        numberColumn('rank', 'Rank'),
        numberColumn('id', 'No.'),
        textColumn('device', 'Device'),
        textColumn('precision', 'Arithmetic'),
        { key: 'flops_per_byte', title: 'FLOP/B', numeric: true, value: (row) => row.flops_per_byte, text: (row) => number(row.flops_per_byte) },
        rateColumn('flops_per_s', 'Rate'),
        rateColumn('roof_flops_per_s', 'Roof'),
        shareColumn('roof_ratio', 'Of the roof'),
      ]}
      rows={chosen}
      rowKey={keyOf}
      sort="roof_ratio"
      search={['kernel']}
    >
      {roofs.length > 1 && <Select label="Roofline" value={roof} options={roofs.map((value) => ({ value, label: value }))} onChange={choose} />}
      <Legend items={[{ mark: 'compute', label: 'right of the ridge' }, { mark: 'communication', label: 'left of it: memory is the ceiling' }]} />
      <Roofline
        points={drawn.map((row) => ({ label: nameOf(row), intensity: row.flops_per_byte, flops_per_s: row.flops_per_s, weight: (times.get(keyOf(row)) ?? 0) / longest, bound: row.flops_per_byte >= row.ridge_flops_per_byte }))}
        roofs={[{ label: `${roof}: ${flopRate(first.peak_flops_per_s)}`, peak_flops_per_s: first.peak_flops_per_s, bandwidth_bytes_per_s: first.peak_flops_per_s / first.ridge_flops_per_byte }]}
        label={summary}
      />
    </Figure>
  );
}

export function Sums({ rows }: { rows: readonly KernelSumRow[] }) {
  const kernels = rows.filter((row) => row.kind === 'kernel');
  const drawn = (kernels.length > 0 ? kernels : rows).slice(0, DRAWN);
  const first = drawn[0]!;
  const summary = `${plural(rows.length, 'name')} of kernels, calls, memory operations and ranges that nsys stats sums up. Most: ${shortName(first.name)}, ${duration(first.total_ns)}.`;
  return (
    <Figure
      id="kernel-sums"
      title="Sums of names"
      summary={summary}
      columns={[
        textColumn('kind', 'Kind'),
        textColumn('name', 'Name', 40),
        timeColumn('total_ns', 'Time'),
        countColumn('count', 'Count'),
        timeColumn('min_ns', 'Shortest'),
        timeColumn('max_ns', 'Longest'),
        countColumn('report_count', 'Reports'),
        { key: 'imbalance', title: 'Most/mean', help: 'Largest rank over the mean', numeric: true, value: (row) => row.imbalance, text: (row) => number(row.imbalance) },
        numberColumn('most_rank', 'On rank'),
      ]}
      rows={rows}
      rowKey={(row) => `${row.kind} ${row.name}`}
      search={['kind', 'name']}
    >
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={drawn.map((row) => ({
          key: `${row.kind} ${row.name}`, label: shortName(row.name), parts: [{ mark: 'compute', label: row.kind, value: row.total_ns }],
          text: row.imbalance === null ? duration(row.total_ns) : `most on rank ${row.most_rank}: ${number(row.imbalance)} of the mean`,
        }))}
      />
    </Figure>
  );
}

/** What the launches come to, in a sentence; at least one. */
export function launchesSentence(launches: readonly KernelLaunchRow[]): string {
  const idle = launches.filter((row) => row.bound === 'latency').length;
  return idle > 0
    ? `${idle} of ${plural(launches.length, 'measured launch', 'measured launches')} ${idle === 1 ? 'uses' : 'use'} neither arithmetic nor memory to 60 %: too little work is in flight.`
    : `None of ${plural(launches.length, 'measured launch', 'measured launches')} lacks work: arithmetic or memory is busy.`;
}

function Measured({ data }: ViewProps) {
  const launches = data.kernel_launches ?? [];
  const rooflines = data.kernel_rooflines ?? [];
  const sums = data.kernel_sums ?? [];
  const sentence = launches.length === 0
    ? 'Tables of nsys stats lay beside the traces, of Nsight Compute none: what bounds each kernel is not told.'
    : launchesSentence(launches);
  return (
    <>
      <Answer sentence={sentence}>{null}</Answer>
      {rooflines.length > 0 && <Rooflines rows={rooflines} launches={launches} />}
      {launches.length > 0 && <Launches rows={launches} />}
      {sums.length > 0 && <Sums rows={sums} />}
    </>
  );
}

export const measuredView: View = {
  id: 'measured-kernels',
  title: 'Measured kernels',
  shows: 'What bounds single launches, by tables of Nsight Compute and nsys stats that lie beside the traces.',
  group: 'Work',
  missing: measuredMissing,
  component: Measured,
};
