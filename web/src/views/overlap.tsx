import { useMemo } from 'preact/hooks';
import { useChoice } from '../app/route';
import { StackedRows, type Part } from '../charts/stacked_rows';
import { duration, percent, plural } from '../numbers';
import { Choice, Legend, Waiting } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { measured, rankLabel, useRankTimes, type RankTime } from './ranks';

function overlapRatio(row: RankTime): number | null {
  return measured(row) && row.communication_ns > 0 ? row.overlapped_communication_ns / row.communication_ns : null;
}

function parts(row: RankTime): Part[] {
  return [
    { mark: 'compute', label: 'compute only', value: row.compute_ns - row.overlapped_communication_ns },
    { mark: 'both', label: 'both', value: row.overlapped_communication_ns },
    { mark: 'communication', label: 'communication only', value: row.exposed_communication_ns },
    { mark: 'memory', label: 'copies only', value: row.exposed_memory_ns },
    { mark: 'idle', label: 'idle', value: row.idle_ns },
  ];
}

const SORTS = ['exposed', 'rank', 'overlap'] as const;

function Overlap({ data, source }: ViewProps) {
  const [sort, setSort] = useChoice('sort', SORTS, 'exposed');
  const times = useRankTimes(source, data);
  const { words } = times;
  const rows = useMemo(() => {
    const order: Record<(typeof SORTS)[number], (row: RankTime) => number> = {
      exposed: (row) => -(row.exposed_communication_ns ?? 0),
      rank: (row) => row.rank_index,
      overlap: (row) => overlapRatio(row) ?? 2,
    };
    return [...times.rows].sort((a, b) => order[sort](a) - order[sort](b) || a.rank_index - b.rank_index);
  }, [times, sort]);
  const known = rows.filter(measured);
  const communication = known.reduce((sum, row) => sum + row.communication_ns, 0);
  const hidden = known.reduce((sum, row) => sum + row.overlapped_communication_ns, 0);
  const worst = [...known].sort((a, b) => b.exposed_communication_ns - a.exposed_communication_ns)[0];
  const summary = communication === 0
    ? `No communication was recorded on ${plural(known.length, 'rank')}.`
    : `${percent(hidden / communication)} of the communication runs beside compute, over ${plural(known.length, 'rank')}; the rest is exposed and costs time. ` +
      `Most exposed: ${rankLabel(data, worst!.rank_index)} with ${duration(worst!.exposed_communication_ns)} ${words}.`;
  const time = (key: string, title: string, at: number) => ({
    key, title, numeric: true,
    value: (row: RankTime) => (measured(row) ? parts(row)[at]!.value : null),
    text: (row: RankTime) => duration(measured(row) ? parts(row)[at]!.value : null),
  });
  if (times.loading) return <Waiting what="the steps" />;
  return (
    <Figure
      id="overlap"
      title={`Compute and communication, ${words}`}
      summary={summary}
      controls={
        <Choice
          name="overlap-sort"
          label="Sort"
          value={sort}
          onChange={setSort}
          options={[{ value: 'exposed', label: 'most exposed' }, { value: 'overlap', label: 'least hidden' }, { value: 'rank', label: 'rank' }]}
        />
      }
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => rankLabel(data, row.rank_index) },
        time('compute_only_ns', 'Compute only', 0), time('both_ns', 'Both', 1), time('exposed_communication_ns', 'Communication only', 2),
        time('exposed_memory_ns', 'Copies only', 3), time('idle_ns', 'Idle', 4),
        { key: 'communication_overlap_ratio', title: 'Hidden', numeric: true, value: overlapRatio, text: (row) => percent(overlapRatio(row)), help: 'Share of communication with compute beside it' },
      ]}
      rows={rows}
      rowKey={(row) => String(row.rank_index)}
      sort="-exposed_communication_ns"
      search={['rank']}
    >
      <Legend items={[
        { mark: 'compute', label: 'compute only' }, { mark: 'both', label: 'both: communication hidden under compute' },
        { mark: 'communication', label: 'communication only' }, { mark: 'memory', label: 'copies only' }, { mark: 'idle', label: 'idle' },
      ]} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({
          key: String(row.rank_index), label: rankLabel(data, row.rank_index),
          parts: measured(row) ? parts(row) : null,
          text: overlapRatio(row) === null ? (measured(row) ? 'no communication' : 'not measured') : `${percent(overlapRatio(row))} hidden`,
        }))}
      />
    </Figure>
  );
}

export const overlapView: View = {
  id: 'overlap',
  title: 'Overlap',
  shows: 'How much communication runs beside compute, and how much more could be hidden, rank by rank.',
  group: 'Communication',
  missing: (data) => (data.breakdown.some(measured) ? null : 'No rank has events to take a time from.'),
  component: Overlap,
};
