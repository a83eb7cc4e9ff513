import { useChoice } from '../app/route';
import { count, duration, number, percent, plural, rate, bytes, shortName } from '../numbers';
import { axisFromZero } from '../charts/scales';
import { Choice, Legend, Note } from '../parts/controls';
import { DataTable, type Column } from '../parts/data_table';
import { changeWord, DeltaChart, deltaColumns, signed, signedPercent, type Delta } from '../parts/delta';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import type { View, ViewProps } from '../view';

type Maybe = number | null;

export interface ComparedRun {
  label: string; rank_count: number; world_size: number; device: string | null; has_steps: boolean; step_count: number;
  step_numbers: number[]; step_ns: number[]; slowest_rank: number[];
}

interface NameRow {
  kind: string; name: string; match: string; change: string; calls_a: number; calls_b: number; call_ns: Delta;
  step_ns_a: number; step_ns_b: number; step_delta_ns: number; p_adjusted: number; worst_rank: Maybe; worst_rank_delta_ns: Maybe;
}

interface CollectiveRow {
  name: string; bytes: Maybe; change: string; calls_a: number; calls_b: number; transfer_ns: Delta; wait_ns: Delta;
  busbw_a_bytes_per_s: Maybe; busbw_b_bytes_per_s: Maybe;
}

/** `data` of lockstep.compare/1 (docs/json.md). */
export interface CompareData {
  verdict: { change: string; sentence: string; reasons: { text: string; delta_ns: number }[]; notes: string[]; confidence: number };
  a: ComparedRun;
  b: ComparedRun;
  parts: Record<string, Delta>;
  ranks: ({ rank: number } & Record<string, Delta | number>)[];
  names: NameRow[];
  collectives: CollectiveRow[];
  memory: { rank: number; device: number; peak_allocated_a_bytes: Maybe; peak_allocated_b_bytes: Maybe; peak_reserved_a_bytes: Maybe; peak_reserved_b_bytes: Maybe }[];
  findings: { state: string; id: string; ranks: number[]; title: string; gain_a_ns_per_step: Maybe; gain_b_ns_per_step: Maybe }[];
}

type Props = ViewProps<CompareData>;

const LABELS: Record<string, string> = {
  job_step_ns: 'step', compute_ns: 'compute', exposed_communication_ns: 'exposed communication', exposed_memory_ns: 'exposed copies', idle_ns: 'idle',
};

function Verdict({ data }: Props) {
  const rows = Object.entries(LABELS)
    .map(([key, name]) => ({ name, delta: data.parts[key]! }))
    .filter(({ delta }) => (delta.a ?? 0) !== 0 || (delta.b ?? 0) !== 0);
  return (
    <>
      <Note kind={data.verdict.change === 'slower' ? 'warning' : 'info'}><strong>{data.verdict.sentence}</strong></Note>
      <Figure
        id="parts"
        title="What changed, per step"
        summary={`Change from A to B with its ${percent(data.verdict.confidence)} interval. The step is the slowest rank's, parts are means over ranks.`}
        columns={[{ key: 'part', title: 'Part', value: (row) => row.name }, ...deltaColumns<(typeof rows)[number]>((row) => row.delta)]}
        rows={rows}
        rowKey={(row) => row.name}
      >
        <DeltaChart rows={rows} label={data.verdict.sentence} />
      </Figure>
      {data.verdict.reasons.length > 1 && <><h3>Also</h3><ul class="plain-list">{data.verdict.reasons.slice(1).map((reason) => <li key={reason.text}>{reason.text}</li>)}</ul></>}
      <h3>What limits this comparison</h3>
      <ul class="plain-list">{data.verdict.notes.map((note) => <li key={note}>{note}</li>)}</ul>
    </>
  );
}

interface StepRow { run: string; step: number; step_ns: number; slowest_rank: number }

/** A component of its own, so that its width is taken again when the picture comes back from the table. */
function StepChart({ rows, label }: { rows: readonly StepRow[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const axis = axisFromZero(Math.max(1, ...rows.map((row) => row.step_ns)), width - 60, 'ns');
  const x = (value: number) => 30 + axis.at(value);
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={190} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value}>
            <line class="grid" x1={x(tick.value)} x2={x(tick.value)} y1={8} y2={160} />
            <text class="muted" x={x(tick.value)} y={178} text-anchor="middle">{tick.text}</text>
          </g>
        ))}
        {(['A', 'B'] as const).map((run, band) => (
          <g key={run}>
            <text x={4} y={48 + band * 76}>{run}</text>
            {rows.filter((row) => row.run === run).map((row, i) => (
              <circle key={row.step} class={`fill-series-${band + 1}`} fill-opacity="0.6" cx={x(row.step_ns)} cy={20 + band * 76 + (i * 23) % 48} r="3.5">
                <title>{`${run}, step ${row.step}: ${duration(row.step_ns)}`}</title>
              </circle>
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}

function Distributions({ data }: Props) {
  const rows: StepRow[] = (['a', 'b'] as const).flatMap((run) =>
    data[run].step_ns.map((step_ns, i) => ({ run: run.toUpperCase(), step: data[run].step_numbers[i]!, step_ns, slowest_rank: data[run].slowest_rank[i]! })));
  const summary = `Every step of both runs: A ${plural(data.a.step_count, 'step')} around ${duration(data.parts['job_step_ns']!.a)}, B ${plural(data.b.step_count, 'step')} around ${duration(data.parts['job_step_ns']!.b)}.`;
  return (
    <Figure
      id="steps"
      title="Step times of both runs"
      summary={summary}
      columns={[
        { key: 'run', title: 'Run', value: (row: StepRow) => row.run },
        { key: 'step', title: 'Step', numeric: true, value: (row: StepRow) => row.step },
        { key: 'step_ns', title: 'Step time', numeric: true, value: (row: StepRow) => row.step_ns, text: (row: StepRow) => duration(row.step_ns) },
        { key: 'slowest_rank', title: 'Slowest rank', numeric: true, value: (row: StepRow) => row.slowest_rank },
      ]}
      rows={rows}
      rowKey={(row) => `${row.run}-${row.step}`}
      sort="-step_ns"
    >
      <Legend items={[{ mark: 'series-1', label: 'A' }, { mark: 'series-2', label: 'B' }]} />
      <StepChart rows={rows} label={summary} />
    </Figure>
  );
}

function Ranks({ data }: Props) {
  type Row = CompareData['ranks'][number];
  const change = (key: string, title: string): Column<Row> => ({
    key, title, numeric: true, value: (row) => (row[key] as Delta).shift, text: (row) => signed((row[key] as Delta).shift),
  });
  return (
    <DataTable
      id="ranks"
      caption="Own time of each rank: the step less exposed communication"
      columns={[
        { key: 'rank', title: 'Rank', numeric: true, value: (row: Row) => row.rank },
        ...deltaColumns<Row>((row) => row['own_ns'] as Delta),
        change('step_ns', 'Step'), change('compute_ns', 'Compute'), change('exposed_communication_ns', 'Exposed comm'), change('idle_ns', 'Idle'),
      ]}
      rows={data.ranks}
      rowKey={(row) => String(row.rank)}
    />
  );
}

const KINDS = ['kernel', 'operator', 'runtime'] as const;

function Names({ data }: Props) {
  const [kind, setKind] = useChoice('kind', KINDS, 'kernel');
  const rows = data.names.filter((row) => row.kind === kind);
  const time = (key: 'step_ns_a' | 'step_ns_b', title: string): Column<NameRow> => ({
    key, title, numeric: true, value: (row) => row[key], text: (row) => duration(row[key]), help: 'Mean per rank and step',
  });
  return (
    <>
      <Choice name="kind" label="Show" value={kind} onChange={setKind} options={KINDS.map((value) => ({ value, label: value === 'runtime' ? 'runtime calls' : `${value}s` }))} />
      <DataTable
        id="names"
        caption="Per rank and step, largest change first"
        columns={[
          { key: 'name', title: 'Name', value: (row: NameRow) => row.name, text: (row: NameRow) => shortName(row.name), width: 48 },
          { key: 'change', title: 'Meaning', value: (row) => row.change, text: (row) => changeWord(row.change), help: 'Of the time per call' },
          { key: 'step_delta_ns', title: 'Change', numeric: true, value: (row) => row.step_delta_ns, text: (row) => signed(row.step_delta_ns) },
          time('step_ns_a', 'A'), time('step_ns_b', 'B'),
          { key: 'calls_a', title: 'Calls A', numeric: true, value: (row) => row.calls_a, text: (row) => number(row.calls_a) },
          { key: 'calls_b', title: 'Calls B', numeric: true, value: (row) => row.calls_b, text: (row) => number(row.calls_b) },
          { key: 'call_ratio', title: 'A call', help: 'Change of the time of one call, from A to B', numeric: true, value: (row) => row.call_ns.ratio, text: (row) => signedPercent(row.call_ns.ratio) },
          { key: 'call_low_ns', title: 'At least', help: 'Lower end of the interval of that change', numeric: true, value: (row) => row.call_ns.low, text: (row) => signed(row.call_ns.low) },
          { key: 'call_high_ns', title: 'At most', help: 'Upper end of the interval of that change', numeric: true, value: (row) => row.call_ns.high, text: (row) => signed(row.call_ns.high) },
          { key: 'worst_rank', title: 'Most on rank', numeric: true, value: (row) => row.worst_rank },
          { key: 'match', title: 'Matched', value: (row) => row.match },
        ]}
        rows={rows}
        rowKey={(row) => `${row.kind} ${row.change} ${row.name}`}
        search={['name', 'change']}
        empty={`Neither run has ${kind} events in its steps.`}
      />
    </>
  );
}

function Collectives({ data }: Props) {
  return (
    <DataTable
      id="collectives"
      caption="By operation and size, per step; waiting of all ranks added up"
      columns={[
        { key: 'name', title: 'Collective', value: (row: CollectiveRow) => row.name },
        { key: 'bytes', title: 'Size', numeric: true, value: (row) => row.bytes, text: (row) => bytes(row.bytes) },
        ...deltaColumns<CollectiveRow>((row) => row.transfer_ns).map((column) => ({ ...column, key: `transfer_${column.key}` })),
        { key: 'wait_a_ns', title: 'Wait A', numeric: true, value: (row) => row.wait_ns.a, text: (row) => duration(row.wait_ns.a) },
        { key: 'wait_b_ns', title: 'Wait B', numeric: true, value: (row) => row.wait_ns.b, text: (row) => duration(row.wait_ns.b) },
        { key: 'busbw_a', title: 'busbw A', numeric: true, value: (row) => row.busbw_a_bytes_per_s, text: (row) => rate(row.busbw_a_bytes_per_s) },
        { key: 'busbw_b', title: 'busbw B', numeric: true, value: (row) => row.busbw_b_bytes_per_s, text: (row) => rate(row.busbw_b_bytes_per_s) },
      ]}
      rows={data.collectives}
      rowKey={(row) => `${row.name} ${row.bytes}`}
      search={['name']}
    />
  );
}

function Memory({ data }: Props) {
  type Row = CompareData['memory'][number];
  const size = (key: keyof Row, title: string): Column<Row> => ({ key, title, numeric: true, value: (row) => row[key], text: (row) => bytes(row[key]) });
  return (
    <DataTable
      id="memory"
      caption="Peaks of the caching allocator"
      columns={[
        { key: 'rank', title: 'Rank', numeric: true, value: (row: Row) => row.rank },
        { key: 'device', title: 'Device', value: (row) => row.device, text: (row) => (row.device < 0 ? 'CPU' : count(row.device)) },
        size('peak_allocated_a_bytes', 'Allocated A'), size('peak_allocated_b_bytes', 'Allocated B'),
        size('peak_reserved_a_bytes', 'Reserved A'), size('peak_reserved_b_bytes', 'Reserved B'),
      ]}
      rows={data.memory}
      rowKey={(row) => `${row.rank} ${row.device}`}
    />
  );
}

function Findings({ data }: Props) {
  type Row = CompareData['findings'][number];
  return (
    <DataTable
      id="findings"
      caption="Findings that appeared in B, went away, or stayed"
      columns={[
        { key: 'state', title: 'State', value: (row: Row) => row.state },
        { key: 'title', title: 'Finding', value: (row) => row.title, width: 70 },
        { key: 'gain_a', title: 'Gain A', numeric: true, value: (row) => row.gain_a_ns_per_step, text: (row) => duration(row.gain_a_ns_per_step) },
        { key: 'gain_b', title: 'Gain B', numeric: true, value: (row) => row.gain_b_ns_per_step, text: (row) => duration(row.gain_b_ns_per_step) },
      ]}
      rows={data.findings}
      rowKey={(row) => `${row.state} ${row.id} ${row.ranks.join(' ')}`}
    />
  );
}

export const compareViewList: readonly View<CompareData>[] = [
  { id: 'verdict', title: 'Verdict', shows: 'Is B faster or slower than A, by how much, why, and is it more than the noise?', group: 'Comparison', component: Verdict },
  { id: 'distributions', title: 'Step times', shows: 'The steps of both runs: how far they lie apart, and how much they vary.', group: 'Comparison', component: Distributions },
  { id: 'ranks', title: 'Ranks', shows: 'Which rank changed: its own time, waiting for others left out.', group: 'Comparison', missing: (data) => (data.ranks.length > 0 ? null : 'The runs share no rank.'), component: Ranks },
  { id: 'names', title: 'Kernels and operators', shows: 'What was added and removed, what became faster and slower, by count and by time.', group: 'Details', component: Names },
  { id: 'collectives', title: 'Collectives', shows: 'Transfer and waiting of each operation and size.', group: 'Details', missing: (data) => (data.collectives.length > 0 ? null : 'Neither run has collectives in its steps.'), component: Collectives },
  { id: 'memory', title: 'Memory', shows: 'Peaks of memory, rank by rank.', group: 'Details', missing: (data) => (data.memory.length > 0 ? null : 'Neither run recorded memory.'), component: Memory },
  { id: 'findings', title: 'Findings', shows: 'Problems that are new, gone or still there.', group: 'Details', missing: (data) => (data.findings.length > 0 ? null : 'Neither run has findings.'), component: Findings },
];
