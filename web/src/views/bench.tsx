import { useMemo } from 'preact/hooks';
import { useChoice } from '../app/route';
import { encode } from '../canvas/grid';
import { GridView } from '../canvas/grid_view';
import { BenchCurves, BenchKeys } from '../charts/bench_curves';
import { benchCurves, benchRows, type BenchData, type BenchRow, type FabricPair, type MeasuredFabric } from '../data/bench';
import type { PageSource } from '../data/types';
import { bytes, duration, plural, rate } from '../numbers';
import { Answer } from '../parts/answer';
import { Choice, Note } from '../parts/controls';
import { rateColumn, bytesColumn, textColumn, timeColumn } from '../parts/columns';
import { DataTable, type Column } from '../parts/data_table';
import { signedPercent } from '../parts/delta';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { answerTextView } from './answer_views';

type Props = ViewProps<BenchData>;

/** Of more ranks a matrix would show less than a pixel a pair. */
const MOST_MATRIX_RANKS = 512;

function setup(fabric: MeasuredFabric): string {
  return `${plural(fabric.rank_count, 'rank')} on ${plural(new Set(fabric.hosts).size, 'host')}, ${fabric.backend ?? 'library not named'}`;
}

function Curves({ data }: Props) {
  const [quantity, choose] = useChoice('quantity', ['busbw', 'time'] as const, 'busbw');
  const curves = benchCurves(data, quantity);
  const rows = benchRows(data);
  const best = data.fabric.points.reduce<BenchData['fabric']['points'][number] | null>((most, point) => (most === null || point.busbw_bytes_per_s > most.busbw_bytes_per_s ? point : most), null);
  const only_then = data.earlier ? [...new Set(data.earlier.points.map((point) => point.operation))].filter((operation) => data.fabric.points.every((point) => point.operation !== operation)) : [];
  const summary = `${plural(rows.length, 'measured point')} of ${plural(new Set(rows.map((row) => row.operation)).size, 'operation')}.` +
    (data.earlier ? ` Dashed, the earlier run: ${setup(data.earlier)} (${data.earlier.source}).${only_then.length > 0 ? ` Measured only then: ${only_then.join(', ')}.` : ''}` : '');
  return (
    <>
      <Answer sentence={best ? `At best ${rate(best.busbw_bytes_per_s)} of bus bandwidth: ${best.operation} of ${bytes(best.bytes)}.` : 'No bandwidth was measured.'}>{setup(data.fabric)}. {data.fabric.source}</Answer>
      <Figure<BenchRow>
        id="curves"
        title={quantity === 'busbw' ? 'Bus bandwidth by message size' : 'Time of a call by message size'}
        summary={summary}
        controls={<Choice name="bench-quantity" label="Draw" value={quantity} onChange={choose} options={[{ value: 'busbw', label: 'bandwidth' }, { value: 'time', label: 'time' }]} />}
        rows={rows}
        rowKey={(row) => `${row.operation} ${row.bytes}`}
        search={['operation']}
        columns={[
          textColumn('operation', 'Operation'), bytesColumn('bytes', 'Size'), timeColumn('mean_ns', 'Time', 'Of a call, mean of the ranks'), rateColumn('busbw_bytes_per_s', 'busbw'),
          rateColumn('slowest_busbw_bytes_per_s', 'Slowest rank'), rateColumn('fastest_busbw_bytes_per_s', 'Fastest rank'),
          ...(data.earlier
            ? [rateColumn('earlier_busbw_bytes_per_s', 'Earlier busbw'), { key: 'change_ratio', title: 'Change', numeric: true, value: (row: BenchRow) => row.change_ratio, text: (row: BenchRow) => signedPercent(row.change_ratio) }]
            : []),
        ]}
      >
        {curves.length > 0
          ? <><BenchKeys curves={curves} /><BenchCurves curves={curves} quantity={quantity} label={summary} /></>
          : <Note>{quantity === 'time' ? 'Times were not recorded.' : 'None of the values can be drawn; the table has them.'}</Note>}
      </Figure>
    </>
  );
}

function Matrix({ fabric, summary }: { fabric: MeasuredFabric; summary: string }) {
  const size = fabric.rank_count;
  const values = useMemo(() => {
    const filled = new Float64Array(size * size).fill(NaN);
    for (const pair of fabric.pairs) {
      filled[pair.rank_a * size + pair.rank_b] = pair.bytes_per_s;
      filled[pair.rank_b * size + pair.rank_a] = pair.back_bytes_per_s;
    }
    return filled;
  }, [fabric]);
  const pairs = useMemo(() => new Map(fabric.pairs.map((pair) => [`${pair.rank_a},${pair.rank_b}`, pair])), [fabric]);
  const most = values.reduce((largest, value) => (value > largest ? value : largest), 0);
  const codes = useMemo(() => encode(values, 0, most), [values]);
  const pairOf = (a: number, b: number) => pairs.get(`${Math.min(a, b)},${Math.max(a, b)}`);
  return (
    <GridView
      id="links-grid"
      label={`Bytes a second from each rank (row) to each other (column). ${summary}`}
      codes={codes}
      row_count={size}
      column_count={size}
      rows={Uint32Array.from({ length: size }, (_, i) => i)}
      columns={null}
      rowLabel={(row) => `rank ${row}`}
      columnLabel={String}
      row_title="sends"
      column_title="receives"
      valueText={(row, column) => (row === column ? '' : rate(values[row * size + column]!))}
      describe={(row, column) => {
        const pair = pairOf(row, column);
        return pair
          ? `Rank ${row} to rank ${column}: ${rate(values[row * size + column]!)}, ${duration(pair.latency_ns)} there${pair.same_host ? ', one host' : ''}${pair.is_slow ? ', slow' : ''}`
          : row === column ? `Rank ${row} itself` : `Rank ${row} to rank ${column}: not measured`;
      }}
      open_words=""
      scale={['0', rate(most), '']}
      marks={fabric.pairs.filter((pair) => pair.is_slow).flatMap((pair) => [{ row: pair.rank_a, column: pair.rank_b }, { row: pair.rank_b, column: pair.rank_a }])}
    />
  );
}

function Links({ data }: Props) {
  const { fabric } = data;
  const slow = fabric.pairs.filter((pair) => pair.is_slow);
  const slower = (pair: FabricPair) => Math.min(pair.bytes_per_s, pair.back_bytes_per_s);
  const rows = useMemo(() => [...fabric.pairs].sort((a, b) => Number(b.is_slow) - Number(a.is_slow) || slower(a) - slower(b)), [fabric]);
  const summary = (slow.length === 0 ? 'No link is slow.' : `${slow.length} of ${plural(fabric.pair_count, 'link')} ${slow.length === 1 ? 'is' : 'are'} slow: less than half of the median of pairs like it.`) +
    (fabric.pairs.length < fabric.pair_count ? ` This page has the ${fabric.pairs.length} slowest.` : '');
  const columns: Column<FabricPair>[] = [
    { key: 'is_slow', title: 'Slow', value: (row) => (row.is_slow ? 'slow' : ''), render: (row) => (row.is_slow ? <span class="severity-word error">slow</span> : '') },
    { key: 'rank_a', title: 'Rank', numeric: true, value: (row) => row.rank_a },
    { key: 'rank_b', title: 'and rank', numeric: true, value: (row) => row.rank_b },
    { key: 'hosts', title: 'Hosts', value: (row) => (row.same_host ? fabric.hosts[row.rank_a]! : `${fabric.hosts[row.rank_a]} and ${fabric.hosts[row.rank_b]}`) || null },
    { key: 'latency_ns', title: 'Latency', help: 'Of 8 bytes', numeric: true, value: (row) => row.latency_ns, text: (row) => duration(row.latency_ns) },
    { key: 'bytes_per_s', title: 'There', numeric: true, value: (row) => row.bytes_per_s, text: (row) => rate(row.bytes_per_s) },
    { key: 'back_bytes_per_s', title: 'Back', numeric: true, value: (row) => row.back_bytes_per_s, text: (row) => rate(row.back_bytes_per_s) },
  ];
  const key = (row: FabricPair) => `${row.rank_a} ${row.rank_b}`;
  if (fabric.rank_count > MOST_MATRIX_RANKS) {
    return (
      <>
        <Answer kind={slow.length > 0 ? 'warning' : 'info'} sentence={summary} />
        <DataTable<FabricPair> id="links" caption="Pairs of ranks, slow ones first" rows={rows} rowKey={key} columns={columns} search={['rank_a', 'rank_b', 'hosts']} />
      </>
    );
  }
  return (
    <Figure<FabricPair> id="links" title="Every two ranks alone" summary={summary} rows={rows} rowKey={key} columns={columns} search={['rank_a', 'rank_b', 'hosts']}>
      <Matrix fabric={fabric} summary={summary} />
    </Figure>
  );
}

const curvesView: View<BenchData> = {
  id: 'curves',
  title: 'Bandwidth and time',
  shows: 'What the fabric can do: bus bandwidth and time of each operation over the size of its message, and how far ranks differ.',
  group: 'Answer',
  component: Curves,
};

const linksView: View<BenchData> = {
  id: 'links',
  title: 'Links',
  shows: 'Is one of the links between two ranks slower than the others like it?',
  group: 'Answer',
  missing: (data) => (data.fabric.pairs.length === 0 ? 'Pairs of ranks were not measured: lockstep bench collectives --pairs does.' : null),
  component: Links,
};

export function benchFacts(source: PageSource): readonly string[] {
  const { fabric, earlier } = source.document.data as unknown as BenchData;
  return [setup(fabric), ...(earlier ? [`beside ${setup(earlier)}`] : [])];
}

export const benchViews = [curvesView, linksView, answerTextView] as readonly View<unknown>[];
