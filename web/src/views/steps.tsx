import { useMemo } from 'preact/hooks';
import { useBlock } from '../app/blocks';
import { useParam } from '../app/route';
import { StackedColumns } from '../charts/stacked_columns';
import { StackedRows, type BarRow } from '../charts/stacked_rows';
import type { AnalyzeData, StepMatrix, StepQuantity } from '../data/types';
import { duration, percent, plural } from '../numbers';
import { Legend, Note, Select, Waiting } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { mean, measured, median, rankLabel, rankName, TIME_LEGEND, timeParts, useRankTimes, type RankTime } from './ranks';

interface StepRow {
  step: number;
  total_ns: number | null;
  compute_ns: number | null;
  exposed_communication_ns: number | null;
  exposed_memory_ns: number | null;
  idle_ns: number | null;
  wait_ns: number | null;
}

/** Of one row of the matrix, or the mean over the ranks that have the step. */
function stepRows(matrix: StepMatrix, rank: number | null): StepRow[] {
  const { shape } = matrix;
  const row = rank === null ? null : shape.rank_indices.indexOf(rank);
  const columns = new Map(shape.quantities.map((quantity) => [
    quantity, row === null ? matrix.stepMeans(quantity) : row < 0 ? undefined : matrix.ofRank(quantity, row),
  ]));
  const at = (quantity: StepQuantity, column: number): number | null => {
    const value = columns.get(quantity)?.[column] ?? NaN;
    return Number.isFinite(value) ? value : null;
  };
  return shape.step_numbers.map((step, column) => {
    const parts = {
      compute_ns: at('compute_ns', column),
      exposed_communication_ns: at('exposed_communication_ns', column),
      exposed_memory_ns: at('exposed_memory_ns', column),
      idle_ns: at('idle_ns', column),
    };
    const values = Object.values(parts);
    return {
      step, ...parts, wait_ns: at('wait_ns', column),
      total_ns: values.every((value) => value === null) ? null : values.reduce<number>((sum, value) => sum + (value ?? 0), 0),
    };
  });
}

function BySteps({ data, matrix }: { data: AnalyzeData; matrix: StepMatrix }) {
  const [rankText, setRank] = useParam('rank', 'mean');
  const chosen = matrix.shape.rank_indices.find((index) => rankName(data, index) === rankText) ?? null;
  const rows = useMemo(() => stepRows(matrix, chosen), [matrix, chosen]);
  const known = rows.filter((row) => row.total_ns !== null);
  const middle = median(known.map((row) => row.total_ns!));
  const worst = known.reduce<StepRow | null>((best, row) => (best === null || row.total_ns! > best.total_ns! ? row : best), null);
  const who = chosen === null ? `mean of ${plural(matrix.shape.rank_indices.length, 'rank')}` : rankLabel(data, chosen);
  const summary = worst === null
    ? `No step of ${who} was measured.`
    : rows.length === 1 ? `One step, number ${worst.step}, ${who}: ${duration(worst.total_ns)}.`
    : `${plural(rows.length, 'step')}, ${who}: median ${duration(middle)}; the longest, step ${worst.step}, takes ${duration(worst.total_ns)}` +
      (middle > 0 ? `, ${percent(worst.total_ns! / middle - 1)} more.` : '.');
  const bars: BarRow[] = rows.map((row) => ({
    key: String(row.step), label: `step ${row.step}`,
    parts: row.total_ns === null ? null : timeParts({
      compute_ns: row.compute_ns ?? 0, exposed_communication_ns: row.exposed_communication_ns ?? 0,
      exposed_memory_ns: row.exposed_memory_ns ?? 0, idle_ns: row.idle_ns ?? 0,
    }),
  }));
  const time = (key: keyof StepRow, title: string) => ({
    key, title, numeric: true, value: (row: StepRow) => row[key], text: (row: StepRow) => duration(row[key]),
  });
  return (
    <Figure
      id="steps"
      title="Step by step"
      summary={summary}
      controls={
        <Select
          label="Rank"
          value={chosen === null ? 'mean' : rankText}
          onChange={setRank}
          options={[
            { value: 'mean', label: 'mean of all' },
            ...matrix.shape.rank_indices.map((index) => ({ value: rankName(data, index), label: rankLabel(data, index) })),
          ]}
        />
      }
      columns={[
        { key: 'step', title: 'Step', numeric: true, value: (row) => row.step, text: (row) => String(row.step) },
        time('total_ns', 'Total'), time('compute_ns', 'Compute'), time('exposed_communication_ns', 'Exposed communication'),
        time('exposed_memory_ns', 'Exposed copies'), time('idle_ns', 'Idle'), time('wait_ns', 'Waits for others'),
      ]}
      rows={rows}
      rowKey={(row) => String(row.step)}
      sort="-total_ns"
    >
      <Legend items={TIME_LEGEND} />
      <StackedColumns columns={bars} tick={(index) => String(rows[index]!.step)} xTitle="step" many="the longest of" kind="ns" format={duration} label={summary} />
    </Figure>
  );
}

function ByRanks({ data, source }: ViewProps) {
  const times = useRankTimes(source, data);
  const { words } = times;
  const rows = useMemo(() => [...times.rows].sort((a, b) => (b.span_ns || 0) - (a.span_ns || 0)), [times]);
  const known = rows.filter(measured);
  const spans = known.map((row) => row.span_ns);
  const summary = known.length === 0
    ? 'No rank was measured.'
    : `Time of ${plural(known.length, 'rank')} ${words}, longest first: mean ${duration(mean(spans))}, from ${duration(Math.min(...spans))} to ${duration(Math.max(...spans))}.`;
  const time = (key: 'compute_ns' | 'exposed_communication_ns' | 'exposed_memory_ns' | 'idle_ns' | 'span_ns', title: string) => ({
    key, title, numeric: true,
    value: (row: RankTime) => (measured(row) ? row[key] : null),
    text: (row: RankTime) => duration(measured(row) ? row[key] : null),
  });
  return (
    <Figure
      id="ranks"
      title="Rank by rank"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => rankLabel(data, row.rank_index) },
        { key: 'host', title: 'Host', value: (row) => data.ranks[row.rank_index]?.host ?? null },
        time('span_ns', 'Total'), time('compute_ns', 'Compute'), time('exposed_communication_ns', 'Exposed communication'),
        time('exposed_memory_ns', 'Exposed copies'), time('idle_ns', 'Idle'),
      ]}
      rows={rows}
      rowKey={(row) => String(row.rank_index)}
      sort="-span_ns"
      search={['rank', 'host']}
    >
      <Legend items={TIME_LEGEND} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({
          key: String(row.rank_index), label: rankLabel(data, row.rank_index),
          parts: measured(row) ? timeParts(row) : null,
          text: measured(row) ? duration(row.span_ns) : 'not measured',
        }))}
      />
    </Figure>
  );
}

function Steps({ data, source }: ViewProps) {
  const steps = useBlock(source, 'steps', () => source.steps());
  return (
    <>
      {steps.state === 'loading' && <Waiting what="the steps" />}
      {steps.state === 'failed' && <Note kind="warning">The steps could not be read: {steps.message}</Note>}
      {steps.state === 'ready' && steps.value === null && (
        <Note>{data.job.step_count === 0 ? 'No step is marked in these traces, so time is shown for the whole window. Call profiler.step() once a step.' : 'The steps were left out of this page to keep it small.'}</Note>
      )}
      {steps.state === 'ready' && steps.value !== null && <BySteps data={data} matrix={steps.value} />}
      <ByRanks data={data} source={source} />
    </>
  );
}

export const stepsView: View = {
  id: 'steps',
  title: 'Step time',
  shows: 'Where each step and each rank spends its time, and whether that changed during the run.',
  group: 'Time',
  missing: (data) => (data.breakdown.length === 0 ? 'No rank has events to take a time from.' : null),
  component: Steps,
};
