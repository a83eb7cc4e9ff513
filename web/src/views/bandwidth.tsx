import { useChoice } from '../app/route';
import { BandwidthChart, BandwidthKeys } from '../charts/bandwidth';
import { StackedRows } from '../charts/stacked_rows';
import { fabricCurves, jobSeries, tableRows, type Curve, type FabricRow, type FabricSource, type TableRow } from '../data/fabric';
import type { BandwidthRow } from '../data/types';
import { bytes, percent, plural, rate } from '../numbers';
import { Answer } from '../parts/answer';
import { bytesColumn, countColumn, rateColumn, shareColumn, textColumn, timeColumn } from '../parts/columns';
import { Choice } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';

const DRAWN = 30;

function jobSummary(rows: readonly BandwidthRow[], operations: number): string {
  if (rows.length === 0) return 'No collective of the job could be timed.';
  const best = rows.reduce((a, b) => (b.busbw_bytes_per_s[2] > a.busbw_bytes_per_s[2] ? b : a));
  const large = [...rows].sort((a, b) => b.bytes * b.count - a.bytes * a.count)[0]!;
  return `${plural(rows.length, 'message size')} of ${plural(operations, 'operation')}. Fastest: ${best.name} of ${bytes(best.bytes)} with a median of ${rate(best.busbw_bytes_per_s[2])}; ` +
    `most bytes go through ${large.name} of ${bytes(large.bytes)} at ${rate(large.busbw_bytes_per_s[2])}. Waiting for late ranks is not included.`;
}

function fabricSummary(source: FabricSource, curves: readonly Curve[]): string {
  const best = curves.flatMap((curve) => curve.points).reduce((a, b) => (b.busbw_bytes_per_s > a.busbw_bytes_per_s ? b : a));
  return ` Dashed: what ${plural(source.rank_count, 'rank')} over ${source.backend || 'an unnamed library'} measured (${source.source}), at best ${rate(best.busbw_bytes_per_s)} with ${best.operation} of ${bytes(best.bytes)}.`;
}

/** The question that the benchmark was run for. */
function Share({ source, rows }: { source: FabricSource; rows: readonly FabricRow[] }) {
  if (source.ratio === null) {
    return <Answer sentence="The fabric was measured, but for none of this job's collectives.">{`Measured: ${[...new Set(source.points.map((point) => point.operation))].join(', ')}.`}</Answer>;
  }
  const drawn = rows.slice(0, DRAWN);
  const first = rows[0]!;
  const named = (row: FabricRow) => `${row.name} of ${bytes(row.bytes)}${row.group_size === null ? '' : `, ${plural(row.group_size, 'rank')}`}`;
  const summary = `Longest in all: ${named(first)} at ${rate(first.busbw_median_bytes_per_s)} of ${rate(first.fabric_busbw_bytes_per_s)}, ${percent(first.ratio)}. Collectives that take most time come first` +
    (rows.length > DRAWN ? `; the first ${DRAWN} are drawn.` : '.');
  return (
    <Figure
      id="fabric"
      title="Share of the fabric"
      summary={summary}
      columns={[
        textColumn('name', 'Operation'), countColumn('group_size', 'Ranks'), bytesColumn('bytes', 'Size'), countColumn('count', 'Count'),
        timeColumn('transfer_ns', 'Transfer', 'Of all of them, waiting not included'), rateColumn('busbw_median_bytes_per_s', 'busbw, median'),
        rateColumn('fabric_busbw_bytes_per_s', 'Fabric', 'What was measured, at this size'), shareColumn('ratio', 'Of it'),
      ]}
      rows={rows}
      rowKey={(row) => `${row.name} ${row.group_size} ${row.bytes}`}
      search={['name']}
    >
      <StackedRows
        kind="ratio"
        format={percent}
        label={summary}
        rows={drawn.map((row) => ({
          key: `${row.name} ${row.group_size} ${row.bytes}`, label: named(row), parts: [{ mark: 'communication', label: 'of what the fabric can do', value: row.ratio }],
          text: `${percent(row.ratio)}: ${rate(row.busbw_median_bytes_per_s)} of ${rate(row.fabric_busbw_bytes_per_s)}`,
        }))}
      />
    </Figure>
  );
}

function Bandwidth({ data }: ViewProps) {
  const source = data.fabric_source;
  // A benchmark goes from bytes to gigabytes: on a linear scale all but its end is on the ground.
  const [scale, setScale] = useChoice('scale', ['linear', 'log'] as const, source ? 'log' : 'linear');
  const [shown, setShown] = useChoice('fabric', ['used', 'all'] as const, 'used');
  const series = jobSeries(data);
  const curves = fabricCurves(source, series, shown === 'used');
  const summary = jobSummary(data.bandwidth, series.length) + (source ? fabricSummary(source, curves) : '');
  return (
    <>
      {source && source.ratio !== null && (
        <Answer sentence={`The job gets ${percent(source.ratio)} of what this fabric can do, by the time that its collectives take.`}>
          {`Fabric: ${plural(source.rank_count, 'rank')}, ${source.backend || 'library not named'} (${source.source}). Check that both used the same devices and network.`}
        </Answer>
      )}
      <Figure<TableRow>
        id="bandwidth"
        title="Bus bandwidth by message size"
        summary={summary}
        controls={
          <>
            {source && <Choice name="bandwidth-fabric" label="Fabric" value={shown} onChange={setShown} options={[{ value: 'used', label: 'as the job uses it' }, { value: 'all', label: 'all' }]} />}
            <Choice name="bandwidth-scale" label="Scale" value={scale} onChange={setScale} options={[{ value: 'linear', label: 'linear' }, { value: 'log', label: 'log' }]} />
          </>
        }
        columns={[
          ...(source ? [textColumn('of', 'Of')] : []),
          textColumn('name', 'Operation'), countColumn('group_size', 'Ranks'), bytesColumn('bytes', 'Size'), countColumn('count', 'Count'),
          rateColumn('busbw_median_bytes_per_s', source ? 'busbw' : 'busbw, median', source ? 'Median of the job, mean of the fabric' : undefined), rateColumn('busbw_min_bytes_per_s', 'Min'),
          rateColumn('busbw_quartile_bytes_per_s', 'Quartile'), rateColumn('busbw_third_quartile_bytes_per_s', '3rd quartile'), rateColumn('busbw_max_bytes_per_s', 'Max'),
          rateColumn('algbw_median_bytes_per_s', 'algbw, median'),
          ...(source ? [rateColumn('fabric_busbw_bytes_per_s', 'Fabric', 'What was measured, at this size'), shareColumn('ratio', 'Of it')] : []),
        ]}
        rows={tableRows(series, curves, source?.rank_count ?? 0)}
        rowKey={(row) => `${row.of} ${row.name} ${row.group_size} ${row.bytes}`}
        sort="-bytes"
        search={['name']}
      >
        <BandwidthKeys series={series} curves={curves} />
        <BandwidthChart series={series} curves={curves} log={scale === 'log'} label={summary} />
      </Figure>
      {source && <Share source={source} rows={data.fabric ?? []} />}
    </>
  );
}

export const bandwidthView: View = {
  id: 'bandwidth',
  title: 'Bandwidth',
  shows: 'Whether the network delivers: bus bandwidth of each collective against the size of its message.',
  group: 'Communication',
  missing: (data) =>
    data.bandwidth.length === 0 && !data.fabric_source ? 'No collective could be timed: sizes were not recorded, or members are missing.' : null,
  component: Bandwidth,
};
