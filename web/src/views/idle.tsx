import { StackedRows, type Part } from '../charts/stacked_rows';
import type { AnalyzeData, IdleHostRow, IdleRow, LaunchRow } from '../data/types';
import { count, duration, percent, plural } from '../numbers';
import { Legend, Note } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

interface Cause<Row> {
  key: string;
  mark: string;
  label: string;
  /** What it means, for the legend. */
  meaning: string;
  value: (row: Row) => number;
}

const STREAM_CAUSES: readonly Cause<IdleRow>[] = [
  { key: 'host_wait_ns', mark: 'host', label: 'host wait', meaning: 'host wait: the next launch was not made yet', value: (row) => row.host_wait_ns },
  { key: 'kernel_wait_ns', mark: 'series-5', label: 'kernel wait', meaning: 'kernel wait: launched, short gap', value: (row) => row.kernel_wait_ns },
  { key: 'other_ns', mark: 'absent', label: 'other', meaning: 'other: launched, long gap', value: (row) => row.other_ns },
];

const HOST_CAUSES: readonly Cause<IdleHostRow>[] = [
  { key: 'data_loader_ns', mark: 'series-5', label: 'data loader', meaning: 'data loader', value: (row) => row.data_loader_ns },
  { key: 'operator_ns', mark: 'host', label: 'operator', meaning: 'operator', value: (row) => row.operator_ns },
  { key: 'runtime_ns', mark: 'series-6', label: 'runtime call', meaning: 'call of the device runtime', value: (row) => row.runtime_ns },
  { key: 'unknown_ns', mark: 'absent', label: 'nothing recorded', meaning: 'nothing was recorded', value: (row) => row.unknown_ns },
];

function Causes<Row extends { rank_index: number }>(props: {
  id: string; title: string; lead: string; data: AnalyzeData; rows: readonly Row[]; causes: readonly Cause<Row>[];
}) {
  const { data, causes } = props;
  const parts = (row: Row): Part[] => causes.map((cause) => ({ mark: cause.mark, label: cause.label, value: cause.value(row) }));
  const total = (row: Row) => parts(row).reduce((sum, part) => sum + part.value, 0);
  const rows = [...props.rows].sort((a, b) => total(b) - total(a));
  const all = rows.reduce((sum, row) => sum + total(row), 0);
  const shares = causes
    .map((cause) => ({ label: cause.label, ratio: rows.reduce((sum, row) => sum + cause.value(row), 0) / all }))
    .sort((a, b) => b.ratio - a.ratio);
  const worst = rows[0];
  const summary = !worst || all === 0
    ? `${props.lead}: no idle time.`
    : `${props.lead}: ${shares.filter((share) => share.ratio > 0).map((share) => `${share.label} ${percent(share.ratio)}`).join(', ')}, over ${plural(rows.length, 'rank')}. ` +
      `Most: ${rankLabel(data, worst.rank_index)} with ${duration(total(worst))} in the whole window.`;
  return (
    <Figure
      id={props.id}
      title={props.title}
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (row: Row) => rankLabel(data, row.rank_index) },
        { key: 'total_ns', title: 'Idle', numeric: true, value: total, text: (row: Row) => duration(total(row)) },
        ...causes.map((cause) => ({
          key: cause.key, title: cause.label, numeric: true,
          value: (row: Row) => cause.value(row), text: (row: Row) => duration(cause.value(row)),
        })),
      ]}
      rows={rows}
      rowKey={(row) => String(row.rank_index)}
      sort="-total_ns"
      search={['rank']}
    >
      <Legend items={causes.map((cause) => ({ mark: cause.mark, label: cause.meaning }))} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({ key: String(row.rank_index), label: rankLabel(data, row.rank_index), parts: parts(row), text: duration(total(row)) }))}
      />
    </Figure>
  );
}

function Launches({ data }: { data: AnalyzeData }) {
  const integer = (key: keyof LaunchRow, title: string, help: string) => ({
    key, title, help, numeric: true, value: (row: LaunchRow) => row[key], text: (row: LaunchRow) => count(row[key]),
  });
  return (
    <DataTable
      id="launches"
      caption="From launch to start"
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => rankLabel(data, row.rank_index) },
        integer('launch_count', 'Launches', 'Launch calls with a kernel or copy that belongs to them'),
        { key: 'median_delay_ns', title: 'Median delay', numeric: true, value: (row) => row.median_delay_ns, text: (row) => duration(row.median_delay_ns), help: 'From the end of the launch call to the start on the device' },
        { key: 'max_delay_ns', title: 'Longest delay', numeric: true, value: (row) => row.max_delay_ns, text: (row) => duration(row.max_delay_ns) },
        integer('long_delay_count', 'Long delays', 'Launches that waited long: the queue was full, or another stream held them up'),
        integer('short_kernel_count', 'Short kernels', 'Kernels shorter than the call that launches them'),
        integer('long_call_count', 'Long calls', 'Launch calls that took long themselves'),
      ]}
      rows={data.launch}
      rowKey={(row) => String(row.rank_index)}
      sort="-short_kernel_count"
    />
  );
}

function Idle({ data }: ViewProps) {
  return (
    <>
      {data.idle.length > 0 ? (
        <Causes id="stream-idle" title="Why streams were idle" lead="Idle time between the events of a stream, added up over streams" data={data} rows={data.idle} causes={STREAM_CAUSES} />
      ) : (
        <Note>No device stream was recorded, so gaps on streams are not measured.</Note>
      )}
      {data.idle_host.length > 0 && (
        <Causes id="host-idle" title="What the host did meanwhile" lead="While the whole device did nothing, the host was in" data={data} rows={data.idle_host} causes={HOST_CAUSES} />
      )}
      {data.launch.length > 0 && <Launches data={data} />}
    </>
  );
}

export const idleView: View = {
  id: 'idle',
  title: 'Idle time',
  shows: 'Why nothing ran: what the device waited for, and what the host was doing then.',
  group: 'Time',
  missing: (data) => (data.idle.length + data.idle_host.length === 0 ? 'Idle time was not measured in this run.' : null),
  component: Idle,
};
