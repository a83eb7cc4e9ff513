import { useMemo } from 'preact/hooks';
import { useParam } from '../app/route';
import { QuantileBox } from '../charts/quantile_box';
import { StackedRows } from '../charts/stacked_rows';
import type { AnalyzeData, NameRow } from '../data/types';
import { count, duration, percent, plural, shortName } from '../numbers';
import { DataTable, type Column } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const KIND_MARK: Record<string, string> = { compute: 'compute', communication: 'communication', memcpy: 'memory', memset: 'memory', operator: 'host' };
const KIND_LABEL: Record<string, string> = { memcpy: 'copy', memset: 'set' };

/** Rows of one name are told apart by their kind. */
function keyOf(row: NameRow): string {
  return `${row.kind}:${row.name}`;
}

/** What the totals of each rank are of. Operators: own device time where there is any, else own CPU time. */
function spreadOf(row: NameRow): string {
  if (row.kind !== 'operator') return 'total duration';
  return row.total_ns > 0 ? 'own device time' : 'own CPU time';
}

function unevenness(row: NameRow): number | null {
  const [, , middle, , high] = row.rank_quantiles_ns;
  return row.rank_count > 1 && middle > 0 ? high / middle - 1 : null;
}

function Details({ row, data, id }: { row: NameRow; data: AnalyzeData; id: string }) {
  const color = row.kind === 'operator' ? (row.total_ns > 0 ? 'compute' : 'host') : (KIND_MARK[row.kind] ?? 'compute');
  const [low, , middle, , high] = row.rank_quantiles_ns;
  const what = spreadOf(row);
  const summary =
    `${what[0]!.toUpperCase()}${what.slice(1)} on ${plural(row.rank_count, 'rank')}: median ${duration(middle)}, ` +
    `most on ${rankLabel(data, row.max_rank_index)} (${duration(high)}), least on ${rankLabel(data, row.min_rank_index)} (${duration(low)}).`;
  const ranks = (row.by_rank ?? [])
    .map((total_ns, index) => ({ index, total_ns }))
    .sort((a, b) => (b.total_ns ?? -1) - (a.total_ns ?? -1));
  return (
    <div class="details">
      <p class="full-name"><code>{row.name}</code></p>
      {row.by_rank === null ? (
        <p>{summary} The values of single ranks were left out of this page: there are too many ranks.</p>
      ) : (
        <Figure
          id={`${id}-ranks`}
          title="Rank by rank"
          summary={summary}
          columns={[
            { key: 'rank', title: 'Rank', value: (each) => rankLabel(data, each.index) },
            { key: 'total_ns', title: what, numeric: true, value: (each) => each.total_ns, text: (each) => duration(each.total_ns) },
          ]}
          rows={ranks}
          rowKey={(each) => String(each.index)}
          sort="-total_ns"
        >
          <StackedRows
            kind="ns"
            format={duration}
            label={summary}
            rows={ranks.map((each) => ({
              key: String(each.index), label: rankLabel(data, each.index),
              parts: each.total_ns === null ? [] : [{ mark: color, label: what, value: each.total_ns }],
              text: each.total_ns === null ? 'never ran here' : duration(each.total_ns),
            }))}
          />
        </Figure>
      )}
    </div>
  );
}

function spreadColumns(): Column<NameRow>[] {
  return [
    {
      key: 'spread', title: 'Across ranks', value: (row) => row.rank_quantiles_ns[4],
      text: (row) => `${duration(row.rank_quantiles_ns[0])} to ${duration(row.rank_quantiles_ns[4])}`,
      render: (row) => (
        <span class="spread" title={row.rank_quantiles_ns.map(duration).join(' · ')}>
          <QuantileBox values={row.rank_quantiles_ns} max={row.rank_quantiles_ns[4]} />
        </span>
      ),
      help: 'Totals of the ranks: minimum, quartiles, maximum; from 0 to the largest',
    },
    {
      key: 'uneven', title: 'Uneven', numeric: true, value: unevenness, text: (row) => {
        const value = unevenness(row);
        return value === null ? '–' : `+${percent(value)}`;
      },
      help: 'How much more the rank with the largest total has than the median',
    },
  ];
}

const RANKS: Column<NameRow> = { key: 'rank_count', title: 'Ranks', numeric: true, value: (row) => row.rank_count, text: (row) => count(row.rank_count), help: 'How many ranks have it' };

function NameTable(props: { id: string; data: AnalyzeData; caption: string; rows: readonly NameRow[]; columns: readonly Column<NameRow>[]; sort: string }) {
  const [open, setOpen] = useParam('open', '');
  const chosen = props.rows.find((row) => keyOf(row) === open);
  return (
    <>
      <DataTable
        id={props.id}
        caption={props.caption}
        columns={props.columns}
        rows={props.rows}
        rowKey={keyOf}
        sort={props.sort}
        search={['name', 'kind']}
        selected={chosen ? open : null}
        onSelect={(row) => setOpen(row ? keyOf(row) : '')}
      />
      {chosen && <Details key={open} id={props.id} row={chosen} data={props.data} />}
    </>
  );
}

function time(key: keyof NameRow, title: string, help?: string): Column<NameRow> {
  return { key, title, help, numeric: true, value: (row) => row[key] as number | null, text: (row) => duration(row[key] as number | null) };
}

const NAME: Column<NameRow> = { key: 'name', title: 'Name', value: (row) => row.name, text: (row) => shortName(row.name), width: 44 };

function Kernels({ data }: ViewProps) {
  const all = data.kernels.reduce((sum, row) => sum + row.total_ns, 0);
  const columns = useMemo<Column<NameRow>[]>(() => [
    NAME,
    {
      key: 'kind', title: 'Kind', value: (row) => row.kind, text: (row) => KIND_LABEL[row.kind] ?? row.kind,
      render: (row) => (
        <span class="kind"><svg width="10" height="10" aria-hidden="true"><rect class={`fill-${KIND_MARK[row.kind] ?? 'compute'}`} width="10" height="10" rx="2" /></svg>{KIND_LABEL[row.kind] ?? row.kind}</span>
      ),
    },
    time('total_ns', 'Total', 'Durations added up over all ranks; overlapping events count twice'),
    { key: 'ratio', title: 'Share', numeric: true, value: (row) => (all > 0 ? row.total_ns / all : null), text: (row) => percent(all > 0 ? row.total_ns / all : null) },
    ...spreadColumns(),
    { key: 'count', title: 'Count', numeric: true, value: (row) => row.count, text: (row) => count(row.count) },
    time('mean_ns', 'Mean'), time('min_ns', 'Min'), time('max_ns', 'Max'), RANKS,
  ], [data]);
  const first = data.kernels[0];
  return (
    <>
      {first && (
        <p class="figure-summary">
          {plural(data.kernels.length, 'kernel')} with {duration(all)} in all; the longest, {shortName(first.name).slice(0, 60)}, has {percent(first.total_ns / all)} of it.{' '}
          <span class="screen-only">Choose a row to see its ranks.</span>
        </p>
      )}
      <NameTable id="kernels" data={data} caption="Kernels and copies, all ranks" rows={data.kernels} columns={columns} sort="-total_ns" />
    </>
  );
}

const OPERATOR_COLUMNS: readonly Column<NameRow>[] = [
  NAME,
  time('total_ns', 'Device, own', 'Device time launched from this operator itself'),
  time('device_total_ns', 'Device, all', 'And from everything nested in it'),
  time('cpu_self_ns', 'CPU, own', 'Time in the operator less what is nested in it'),
  time('cpu_total_ns', 'CPU, all'),
  ...spreadColumns(),
  { key: 'count', title: 'Count', numeric: true, value: (row) => row.count, text: (row) => count(row.count) },
  RANKS,
];

function Operators({ data }: ViewProps) {
  const device = data.operators.some((row) => row.total_ns > 0);
  // On a job without a device its two columns would hold nothing but zeros.
  const columns = device ? OPERATOR_COLUMNS : OPERATOR_COLUMNS.filter((column) => column.key !== 'total_ns' && column.key !== 'device_total_ns');
  const uneven = data.operators
    .filter((row) => unevenness(row) !== null && row.rank_quantiles_ns[4] > 0.02 * Math.max(...data.operators.map((other) => other.rank_quantiles_ns[4])))
    .sort((a, b) => unevenness(b)! - unevenness(a)!)[0];
  return (
    <>
      <p class="figure-summary">
        {plural(data.operators.length, 'operator')} and annotations over {plural(data.ranks.length, 'rank')}.
        {uneven && <> Most uneven of the long ones: {uneven.name}, {percent(unevenness(uneven))} above the median on {rankLabel(data, uneven.max_rank_index)}.</>}{' '}
        <span class="screen-only">Choose a row to see its ranks.</span>
      </p>
      <NameTable id="operators" data={data} caption="Operators, all ranks" rows={data.operators} columns={columns} sort={device ? '-total_ns' : '-cpu_self_ns'} />
    </>
  );
}

export const kernelsView: View = {
  id: 'kernels',
  title: 'Kernels',
  shows: 'Which kernels and copies take the time, and on which ranks they take longer.',
  group: 'Work',
  missing: (data) => (data.kernels.length === 0 ? 'No device events were recorded: this job ran on the CPU, or was profiled without ProfilerActivity.CUDA.' : null),
  component: Kernels,
};

export const operatorsView: View = {
  id: 'operators',
  title: 'Operators',
  shows: 'Which operators and annotations take the time, on the device and on the CPU, and how that differs between ranks.',
  group: 'Work',
  missing: (data) => (data.operators.length === 0 ? 'No operators were recorded.' : null),
  component: Operators,
};
