import { useMemo } from 'preact/hooks';
import { useParam } from '../app/route';
import type { RangeOverTimeProps } from '../charts/range_over_time';
import { StackedRows } from '../charts/stacked_rows';
import type { AnalyzeData, CounterRow } from '../data/types';
import { bytes, count, duration, number, rate } from '../numbers';
import { Select } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';
import { SeriesOverTime } from './series_over_time';

/** How a counter's values are written, by its unit. */
export function unitOf(unit: string | null): Pick<RangeOverTimeProps, 'kind' | 'format'> {
  if (unit === 'bytes') return { kind: 'bytes', format: bytes };
  if (unit === 'bytes/s') return { kind: 'rate', format: rate };
  if (unit === 'ns') return { kind: 'ns', format: duration };
  return { kind: 'number', format: (value) => (unit === null || value === null || value === undefined ? number(value) : `${number(value)} ${unit}`) };
}

/** A counter over the ranks and devices that have it. */
export interface CounterGroup {
  /** Name and unit: counters of one name and two units are two. */
  key: string;
  name: string;
  unit: string | null;
  /** Largest mean first. */
  rows: CounterRow[];
  mean: number;
}

/** By name. */
export function groupCounters(rows: readonly CounterRow[]): CounterGroup[] {
  const groups = new Map<string, CounterGroup>();
  for (const row of rows) {
    const key = row.unit === null ? row.name : `${row.name} (${row.unit})`;
    if (!groups.has(key)) groups.set(key, { key, name: row.name, unit: row.unit, rows: [], mean: 0 });
    groups.get(key)!.rows.push(row);
  }
  for (const group of groups.values()) {
    group.mean = group.rows.reduce((sum, row) => sum + row.mean, 0) / group.rows.length;
    group.rows.sort((a, b) => b.mean - a.mean);
  }
  return [...groups.values()].sort((a, b) => a.key.localeCompare(b.key));
}

const keyOf = (row: CounterRow) => `${row.rank_index}-${row.device ?? 'host'}`;
const labelOf = (data: AnalyzeData, row: CounterRow) => (row.device === null ? rankLabel(data, row.rank_index) : `${rankLabel(data, row.rank_index)}, device ${row.device}`);

function AllCounters({ data, groups }: { data: AnalyzeData; groups: readonly CounterGroup[] }) {
  const end = (group: CounterGroup, at: number) => {
    const row = group.rows.at(at)!;
    return `${unitOf(group.unit).format(row.mean)} on ${labelOf(data, row)}`;
  };
  return (
    <DataTable
      id="counters"
      caption="Means over time, of all ranks"
      columns={[
        { key: 'name', title: 'Counter', value: (group) => group.key },
        { key: 'series_count', title: 'Series', numeric: true, value: (group) => group.rows.length, text: (group) => count(group.rows.length) },
        { key: 'mean', title: 'Mean', numeric: true, value: (group) => group.mean, text: (group) => unitOf(group.unit).format(group.mean) },
        { key: 'lowest_mean', title: 'Lowest', numeric: true, value: (group) => group.rows.at(-1)!.mean, text: (group) => end(group, -1) },
        { key: 'highest_mean', title: 'Highest', numeric: true, value: (group) => group.rows[0]!.mean, text: (group) => end(group, 0) },
      ]}
      rows={groups}
      rowKey={(group) => group.key}
      sort="name"
    />
  );
}

function ByRank({ data, group, groups, onChoose }: { data: AnalyzeData; group: CounterGroup; groups: readonly CounterGroup[]; onChoose: (key: string) => void }) {
  const { kind, format } = unitOf(group.unit);
  const first = group.rows[0]!;
  const last = group.rows.at(-1)!;
  const summary = group.rows.length === 1
    ? `${group.name}: ${format(first.mean)} on average on ${labelOf(data, first)}, between ${format(first.min)} and ${format(first.max)}.`
    : `${group.name}: most on ${labelOf(data, first)} with ${format(first.mean)} on average, least on ${labelOf(data, last)} with ${format(last.mean)}; the mean of ${count(group.rows.length)} is ${format(group.mean)}.`;
  const column = (key: 'mean' | 'min' | 'median' | 'p95' | 'max', title: string, help?: string) => ({
    key, title, help, numeric: true, value: (row: CounterRow) => row[key], text: (row: CounterRow) => format(row[key]),
  });
  return (
    <Figure
      id="by-rank"
      title="Rank by rank"
      summary={summary}
      controls={groups.length > 1 && (
        <Select label="Counter" value={group.key} onChange={onChoose} options={groups.map((each) => ({ value: each.key, label: each.key }))} />
      )}
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => labelOf(data, row) },
        { key: 'sample_count', title: 'Samples', numeric: true, value: (row) => row.sample_count, text: (row) => count(row.sample_count) },
        column('mean', 'Mean', 'A value counts for as long as it held'), column('min', 'Smallest'), column('median', 'Median', 'Of the samples'),
        column('p95', 'P95', 'Of the samples'), column('max', 'Largest'),
      ]}
      rows={group.rows}
      rowKey={keyOf}
      sort="-mean"
    >
      <StackedRows
        kind={kind === 'rate' ? 'number' : kind}
        format={format}
        label={summary}
        rows={group.rows.map((row) => ({
          key: keyOf(row), label: labelOf(data, row),
          parts: [{ mark: 'compute', label: 'mean', value: Math.max(0, row.mean) }],
          text: `${format(row.mean)} (${format(row.min)} to ${format(row.max)})`,
        }))}
      />
    </Figure>
  );
}

function Counters({ data }: ViewProps) {
  const groups = useMemo(() => groupCounters(data.counters), [data]);
  const [text, setText] = useParam('counter', groups[0]!.key);
  const group = groups.find((each) => each.key === text) ?? groups[0]!;
  const series = useMemo(
    () => group.rows.filter((row) => row.time_ns.length > 0).map((row) => ({ key: keyOf(row), label: labelOf(data, row), time_ns: row.time_ns, low: row.low, high: row.high })),
    [data, group],
  );
  return (
    <>
      <ByRank data={data} group={group} groups={groups} onChoose={setText} />
      {series.length > 0 && <SeriesOverTime key={group.key} what={group.name} series={series} {...unitOf(group.unit)} />}
      {groups.length > 1 && <AllCounters data={data} groups={groups} />}
    </>
  );
}

export const countersView: View = {
  id: 'counters',
  title: 'Counters',
  shows: 'Hardware metrics of the devices and what the program counts, rank by rank and over time.',
  group: 'Work',
  missing: (data) => (data.counters.length === 0
    ? 'No counters were recorded. A program counts with lockstep.counter(name, value); nsys samples devices with --gpu-metrics-devices=cuda-visible.'
    : null),
  component: Counters,
};
