import type { PageSource } from '../data/types';
import { bytes, capital, duration, percent, plural } from '../numbers';
import { StepSeries } from '../charts/step_series';
import { Answer } from '../parts/answer';
import { Legend, Note } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { changeWord, DeltaChart, deltaColumns, type Delta } from '../parts/delta';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { answerTextView } from './answer_views';

type Maybe = number | null;

interface Side {
  label: string;
  world_size: number;
  workload: Record<string, string>;
  exit_status: Maybe;
  verdict: string;
  warm_up_step_count: number;
  step_count: number;
  mean_step_ns: Maybe;
  median_step_ns: Maybe;
  window_step_ns: number[];
  resident_bytes: Maybe;
  allocated_bytes: Maybe;
  reserved_bytes: Maybe;
}

/** `data` of lockstep.stage_comparison/1 (docs/json.md). */
interface StageComparisonData {
  verdict: { change: string; sentence: string; reasons: { text: string }[]; notes: string[]; confidence: number };
  gate: { allowed_ratio: number; result: 'passed' | 'failed' | 'undecided'; sentence: string } | null;
  a: Side;
  b: Side;
  step: { step_ns: Delta };
  stages: { stage: string; step_ns: Delta }[];
}

type Props = ViewProps<StageComparisonData>;

function Verdict({ data }: Props) {
  const { verdict, gate } = data;
  const rows = [{ name: 'step', delta: data.step.step_ns }, ...data.stages.map((row) => ({ name: row.stage, delta: row.step_ns }))]
    .filter(({ delta }) => (delta.a ?? 0) > 0 || (delta.b ?? 0) > 0);
  const summary = `Change from A to B with its ${percent(verdict.confidence)} interval; medians of windows of steps. ${capital(changeWord(verdict.change))}: ${verdict.sentence}`;
  return (
    <>
      <Answer kind={gate?.result === 'failed' ? 'critical' : verdict.change === 'slower' ? 'warning' : 'info'} sentence={verdict.sentence}>
        {gate && `--fail-on ${gate.result === 'failed' ? 'fails' : gate.result === 'passed' ? 'passes' : 'cannot tell'}: ${gate.sentence}`}
      </Answer>
      {rows.length > 0 && (
        <Figure
          id="stages"
          title="Stages of a step"
          summary={summary}
          columns={[{ key: 'stage', title: 'Stage', value: (row) => row.name }, ...deltaColumns<(typeof rows)[number]>((row) => row.delta)]}
          rows={rows}
          rowKey={(row) => row.name}
        >
          <DeltaChart rows={rows} label={summary} />
        </Figure>
      )}
      {verdict.reasons.length > 1 && <><h3>Also</h3><ul class="plain-list">{verdict.reasons.slice(1).map((reason) => <li key={reason.text}>{reason.text}</li>)}</ul></>}
      {verdict.notes.length > 0 && <><h3>What limits this comparison</h3><ul class="plain-list">{verdict.notes.map((note) => <li key={note}>{note}</li>)}</ul></>}
    </>
  );
}

interface WindowRow { run: 'A' | 'B'; window: number; step_ns: number }

function Windows({ data }: Props) {
  const sides = [{ run: 'A', side: data.a }, { run: 'B', side: data.b }] as const;
  const rows: WindowRow[] = sides.flatMap(({ run, side }) => side.window_step_ns.map((step_ns, window) => ({ run, window, step_ns })));
  if (rows.length === 0) return <Note>Neither run has a window of steps after its warm-up.</Note>;
  const summary = `Means of windows of steps, without the warm-up, from each run's first to its last: ${sides.map(({ run, side }) => `${run} ${plural(side.step_count, 'step')} around ${duration(side.median_step_ns)}`).join(', ')}.`;
  return (
    <Figure<WindowRow>
      id="windows"
      title="Steps over time"
      summary={summary}
      rows={rows}
      rowKey={(row) => `${row.run} ${row.window}`}
      columns={[
        { key: 'run', title: 'Run', value: (row) => row.run },
        { key: 'window', title: 'Window', numeric: true, value: (row) => row.window },
        { key: 'step_ns', title: 'A step', numeric: true, value: (row) => row.step_ns, text: (row) => duration(row.step_ns) },
      ]}
    >
      <Legend items={sides.map(({ run }, at) => ({ mark: `series-${at + 1}`, label: run }))} />
      <StepSeries series={sides.map(({ run, side }) => ({ label: run, values: side.window_step_ns }))} xTitle="share of the run’s steps" label={summary} />
    </Figure>
  );
}

function Runs({ data }: Props) {
  type Row = { name: string; a: string | null; b: string | null };
  const row = (name: string, of: (side: Side) => string | null): Row => ({ name, a: of(data.a), b: of(data.b) });
  const time = (ns: Maybe) => (ns === null ? null : duration(ns));
  const size = (value: Maybe) => (value === null ? null : bytes(value));
  const keys = [...new Set([...Object.keys(data.a.workload), ...Object.keys(data.b.workload)])];
  const rows = [
    row('ranks', (side) => String(side.world_size)), row('steps', (side) => String(side.step_count)), row('warm-up steps left out', (side) => String(side.warm_up_step_count)),
    row('mean step', (side) => time(side.mean_step_ns)), row('median step', (side) => time(side.median_step_ns)),
    row('memory of a process', (side) => size(side.resident_bytes)), row('allocated by PyTorch', (side) => size(side.allocated_bytes)), row('held by PyTorch', (side) => size(side.reserved_bytes)),
    row('exit status', (side) => (side.exit_status === null ? null : String(side.exit_status))),
    ...keys.map((key) => row(key, (side) => side.workload[key] ?? null)),
    row('what it says of itself', (side) => side.verdict || null), row('recorded in', (side) => side.label),
  ].filter(({ a, b }) => a !== null || b !== null);
  return (
    <DataTable<Row>
      id="runs"
      caption="Both runs"
      rows={rows}
      rowKey={(each) => each.name}
      columns={[
        { key: 'name', title: 'What', value: (each) => each.name },
        { key: 'a', title: 'A', value: (each) => each.a, width: 50 },
        { key: 'b', title: 'B', value: (each) => each.b, width: 50 },
      ]}
    />
  );
}

const verdictView: View<StageComparisonData> = {
  id: 'verdict',
  title: 'What changed',
  shows: 'Is run B slower or faster than A, in which stage of the step, and is it more than noise?',
  group: 'Answer',
  component: Verdict,
};

const windowsView: View<StageComparisonData> = {
  id: 'windows',
  title: 'Steps over time',
  shows: 'Both runs window by window: a difference from the start, or one that grows?',
  group: 'Time',
  component: Windows,
};

const runsView: View<StageComparisonData> = {
  id: 'runs',
  title: 'Both runs',
  shows: 'What each run was, what it needed, and what its own stages said of it.',
  group: 'Data',
  component: Runs,
};

export function stageComparisonFacts(source: PageSource): readonly string[] {
  const { a, b } = source.document.data as unknown as StageComparisonData;
  const run = (name: string, side: Side) => `${name}: ${side.label}, ${plural(side.world_size, 'rank')}, ${plural(side.step_count, 'step')}`;
  return [run('A', a), run('B', b)];
}

export const stageComparisonViews = [verdictView, windowsView, runsView, answerTextView] as readonly View<unknown>[];
