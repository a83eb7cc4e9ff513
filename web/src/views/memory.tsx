import { useMemo } from 'preact/hooks';
import { StackedRows } from '../charts/stacked_rows';
import type { AnalyzeData, MemoryRow } from '../data/types';
import { bytes, count, percent } from '../numbers';
import { Legend, Note } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { median, rankLabel } from './ranks';
import { SeriesOverTime } from './series_over_time';

function deviceLabel(data: AnalyzeData, row: { rank_index: number; device: number }): string {
  const several = data.memory.filter((other) => other.rank_index === row.rank_index).length > 1;
  // PyTorch counts the host's allocations as device -1.
  const device = row.device < 0 ? 'CPU' : `device ${row.device}`;
  return several ? `${rankLabel(data, row.rank_index)}, ${device}` : rankLabel(data, row.rank_index);
}

const keyOf = (row: { rank_index: number; device: number }) => `${row.rank_index}-${row.device}`;

/** Without the allocator's counters: what the single allocations say. */
function Changes({ data }: { data: AnalyzeData }) {
  return (
    <>
      <Note>The trace has single allocations but not the total that was allocated, so peaks are not measured.</Note>
      <DataTable
        id="allocations"
        caption="Allocations, rank by rank"
        columns={[
          { key: 'rank', title: 'Rank', value: (row) => deviceLabel(data, row) },
          { key: 'allocation_count', title: 'Allocations', numeric: true, value: (row) => row.allocation_count, text: (row) => count(row.allocation_count) },
          { key: 'net_bytes', title: 'Net growth', numeric: true, value: (row) => row.net_bytes, text: (row) => bytes(row.net_bytes), help: 'Allocated less freed within the window' },
        ]}
        rows={data.memory}
        rowKey={keyOf}
        sort="-net_bytes"
      />
    </>
  );
}

function ByRank({ data }: { data: AnalyzeData }) {
  const rows = useMemo(() => [...data.memory].sort((a, b) => (b.peak_allocated_bytes ?? -1) - (a.peak_allocated_bytes ?? -1)), [data]);
  const known = rows.filter((row) => row.peak_allocated_bytes !== null);
  const first = known[0];
  const devices = known.filter((row) => row.device >= 0);
  const middle = median(devices.map((row) => row.peak_allocated_bytes!));
  const summary = !first
    ? ''
    : `Peak of allocated memory: most on ${deviceLabel(data, first)} with ${bytes(first.peak_allocated_bytes)}` +
      (first.device_memory_bytes ? ` of ${bytes(first.device_memory_bytes)} (${percent(first.peak_allocated_bytes! / first.device_memory_bytes)})` : '') +
      (devices.length > 1 ? `; the median device has ${bytes(middle)}.` : '.');
  if (!first) return <Changes data={data} />;
  const column = (key: keyof MemoryRow, title: string, help?: string) => ({
    key, title, help, numeric: true, value: (row: MemoryRow) => row[key], text: (row: MemoryRow) => bytes(row[key]),
  });
  return (
    <Figure
      id="peaks"
      title="Peaks, rank by rank"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => deviceLabel(data, row) },
        column('peak_allocated_bytes', 'Allocated, peak', 'Held by tensors'), column('peak_reserved_bytes', 'Reserved, peak', 'Held by the caching allocator'),
        column('device_memory_bytes', 'Device memory'),
        { key: 'allocation_count', title: 'Allocations', numeric: true, value: (row) => row.allocation_count, text: (row) => count(row.allocation_count) },
        column('net_bytes', 'Net growth', 'Allocated less freed within the window'),
      ]}
      rows={rows}
      rowKey={keyOf}
      sort="-peak_allocated_bytes"
    >
      <Legend items={[{ mark: 'memory', label: 'allocated: held by tensors' }, { mark: 'absent', label: 'reserved by the allocator beyond that' }]} />
      <StackedRows
        kind="bytes"
        format={bytes}
        label={summary}
        rows={rows.map((row) => ({
          key: keyOf(row), label: deviceLabel(data, row),
          parts: row.peak_allocated_bytes === null ? null : [
            { mark: 'memory', label: 'allocated', value: row.peak_allocated_bytes },
            { mark: 'absent', label: 'reserved beyond', value: Math.max(0, (row.peak_reserved_bytes ?? row.peak_allocated_bytes) - row.peak_allocated_bytes) },
          ],
          text: row.peak_allocated_bytes === null ? 'not measured' : `${bytes(row.peak_allocated_bytes)}${row.device_memory_bytes ? ` · ${percent(row.peak_allocated_bytes / row.device_memory_bytes)} of the device` : ''}`,
        }))}
      />
    </Figure>
  );
}

function OverTime({ data }: { data: AnalyzeData }) {
  const series = useMemo(
    () => data.memory_series.map((each) => ({ key: keyOf(each), label: deviceLabel(data, each), time_ns: each.time_ns, low: each.min_bytes, high: each.max_bytes, is_host: each.device < 0 })),
    [data],
  );
  // Devices are compared with devices, hosts with hosts.
  return <SeriesOverTime what="Allocated memory" series={series} alike={(a, b) => a.is_host === b.is_host} kind="bytes" format={bytes} />;
}

function Memory({ data }: ViewProps) {
  return (
    <>
      {data.memory.length > 0 && <ByRank data={data} />}
      {data.memory_series.length > 0 && <OverTime data={data} />}
    </>
  );
}

export const memoryView: View = {
  id: 'memory',
  title: 'Memory',
  shows: 'Which rank is fullest, how close it is to the limit, and when that happens.',
  group: 'Work',
  missing: (data) => (data.memory.length + data.memory_series.length === 0 ? 'Memory was not recorded. Profile with profile_memory=True.' : null),
  component: Memory,
};
