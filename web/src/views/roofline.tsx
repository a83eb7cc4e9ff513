import { Roofline, type Roof } from '../charts/roofline';
import { StackedRows } from '../charts/stacked_rows';
import { rooflinePoints, type FlopsRow, type OperatorFlopsRow } from '../data/depth';
import type { AnalyzeData } from '../data/types';
import { count, duration, flopRate, number, percent, plural, shortName } from '../numbers';
import { countColumn, rankColumn, shareColumn, textColumn, timeColumn } from '../parts/columns';
import { Legend } from '../parts/controls';
import { Figure } from '../parts/figure';
import { rankLabel } from './ranks';

/** Dots drawn: those with the most time; the table has all. */
const POINTS = 300;

/** How much of what the device can do each rank's matrix operators use. */
export function Utilisation({ data, rows }: { data: AnalyzeData; rows: readonly FlopsRow[] }) {
  const known = rows.filter((row) => row.mfu !== null).sort((a, b) => a.mfu! - b.mfu!);
  const worst = known[0];
  const rates = rows.filter((row) => row.flops_per_s !== null).sort((a, b) => a.flops_per_s! - b.flops_per_s!);
  const unknown = rows.reduce((sum, row) => sum + row.unknown_count, 0);
  const summary = (worst !== undefined
    ? `Model FLOPs utilisation (MFU) of ${known.length === 1 ? `${rankLabel(data, worst.rank_index)}: ${percent(worst.mfu)}` : `${plural(known.length, 'rank')}: from ${percent(worst.mfu)} (${rankLabel(data, worst.rank_index)}) to ${percent(known[known.length - 1]!.mfu)}`} of ${flopRate(worst.peak_flops_per_s)} that the device can do in ${worst.precision}. Recomputation counts again.`
    : rates.length > 0
      ? `The matrix operators of ${plural(rates.length, 'rank')} do ${flopRate(rates[0]!.flops_per_s)} to ${flopRate(rates[rates.length - 1]!.flops_per_s)}. What the device can do at most is not known, so there is no utilisation.`
      : 'No call of a matrix operator has shapes from which its FLOPs follow.') + (unknown > 0 ? ` ${plural(unknown, 'call')} ${unknown === 1 ? 'has' : 'have'} shapes from which no FLOPs follow.` : '');
  const sorted = known.length > 0 ? [...known, ...rows.filter((row) => row.mfu === null)] : [...rates, ...rows.filter((row) => row.flops_per_s === null)];
  return (
    <Figure
      id="mfu"
      title="Use of the devices"
      summary={summary}
      columns={[
        rankColumn(data),
        textColumn('device', 'Device'),
        shareColumn('mfu', 'MFU'),
        { key: 'flops_per_s', title: 'Rate', numeric: true, value: (row) => row.flops_per_s, text: (row) => flopRate(row.flops_per_s) },
        { key: 'peak_flops_per_s', title: 'Peak', numeric: true, value: (row) => row.peak_flops_per_s, text: (row) => flopRate(row.peak_flops_per_s) },
        textColumn('precision', 'Precision'),
        countColumn('call_count', 'Calls'),
        countColumn('unknown_count', 'Not told', 'Calls whose shapes do not tell their work'),
        timeColumn('time_ns', 'Time in them'),
        textColumn('peak_source', 'Source of the peak', 40),
      ]}
      rows={sorted}
      rowKey={(row) => String(row.rank_index)}
      sort="mfu"
      search={['rank', 'device']}
    >
      {known.length > 0 ? (
        <StackedRows
          kind="ratio"
          format={percent}
          label={summary}
          rows={sorted.map((row) => ({ key: String(row.rank_index), label: rankLabel(data, row.rank_index), parts: row.mfu === null ? null : [{ mark: 'compute', label: 'MFU', value: row.mfu }], text: row.mfu === null ? 'not known' : `${percent(row.mfu)}, ${flopRate(row.flops_per_s)}` }))}
        />
      ) : (
        <StackedRows
          kind="flops"
          format={flopRate}
          label={summary}
          rows={sorted.map((row) => ({ key: String(row.rank_index), label: rankLabel(data, row.rank_index), parts: row.flops_per_s === null ? null : [{ mark: 'compute', label: 'rate', value: row.flops_per_s }], text: flopRate(row.flops_per_s) }))}
        />
      )}
    </Figure>
  );
}

function roofs(data: AnalyzeData, rows: readonly OperatorFlopsRow[]): Roof[] {
  const precisions = [...new Set(rows.map((row) => row.precision))];
  return data.device_peaks.flatMap((peak) => precisions.flatMap((precision) => {
    const flops = peak.flops_per_s[precision];
    return flops ? [{ label: `${peak.device}, ${precision}: ${flopRate(flops)}`, peak_flops_per_s: flops, bandwidth_bytes_per_s: peak.bandwidth_bytes_per_s }] : [];
  }));
}

/** Matrix operators under the roof of their device. */
export function OperatorRoofline({ data, rows }: { data: AnalyzeData; rows: readonly OperatorFlopsRow[] }) {
  const points = rooflinePoints(rows).sort((a, b) => b.row.time_ns - a.row.time_ns);
  if (points.length === 0) return null;
  const drawn = points.slice(0, POINTS);
  const most = drawn[0]!.row;
  const longest = Math.max(1, most.time_ns);
  const over = roofs(data, drawn.map((point) => point.row));
  const bound = rows.filter((row) => row.compute_bound === false);
  const summary = `${plural(points.length, 'operator')} with shapes, by FLOP per byte and FLOP per second; larger dots take longer. ${shortName(most.name)} ${most.dims} takes longest: ${duration(most.time_ns)} at ${flopRate(most.mean_flops_per_s)}` +
    (most.roof_ratio !== null ? `, ${percent(most.roof_ratio)} of its roof.` : '.') +
    (over.length > 0 ? ` ${count(bound.length)} cannot reach the peak: memory is too slow for so little work per byte.` : ' The device’s peak is not known, so there is no roof.') +
    (points.length > drawn.length ? ` The ${POINTS} longest are drawn.` : '');
  return (
    <Figure
      id="roofline"
      title="Roofline of the matrix operators"
      summary={summary}
      columns={[
        textColumn('name', 'Operator'),
        textColumn('dims', 'Shapes', 40),
        rankColumn(data),
        textColumn('precision', 'Precision'),
        countColumn('call_count', 'Calls'),
        timeColumn('time_ns', 'Time'),
        { key: 'intensity', title: 'FLOP/B', numeric: true, value: (row) => row.intensity, text: (row) => number(row.intensity) },
        { key: 'mean_flops_per_s', title: 'Rate', numeric: true, value: (row) => row.mean_flops_per_s, text: (row) => flopRate(row.mean_flops_per_s) },
        shareColumn('roof_ratio', 'Of the roof'),
        { key: 'compute_bound', title: 'Bound by', value: (row) => (row.compute_bound === null ? null : row.compute_bound ? 'compute' : 'memory') },
      ]}
      rows={rows}
      rowKey={(row) => `${row.rank_index} ${row.name} ${row.dims} ${row.dtype ?? ''} ${row.precision}`}
      sort="-time_ns"
      search={['name', 'dims', 'rank']}
    >
      {over.length > 0 && <Legend items={[{ mark: 'compute', label: 'bound by compute' }, { mark: 'communication', label: 'bound by memory' }]} />}
      <Roofline
        points={drawn.map(({ row, intensity, flops_per_s }) => ({ label: `${shortName(row.name)} ${row.dims}, ${rankLabel(data, row.rank_index)}`, intensity, flops_per_s, weight: row.time_ns / longest, bound: row.compute_bound }))}
        roofs={over}
        label={summary}
      />
    </Figure>
  );
}
