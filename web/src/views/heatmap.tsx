import { useMemo } from 'preact/hooks';
import { useBlock } from '../app/blocks';
import { href, useChoice } from '../app/route';
import { encode, quantiles } from '../canvas/grid';
import { GridView } from '../canvas/grid_view';
import type { AnalyzeData, StepMatrix, StepQuantity } from '../data/types';
import { duration, percent, plural } from '../numbers';
import { Choice, Note, Select, Waiting } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const QUANTITIES: { value: StepQuantity; label: string; words: string }[] = [
  { value: 'step_ns', label: 'step time', words: 'step time' },
  { value: 'compute_ns', label: 'compute', words: 'compute time' },
  { value: 'communication_ns', label: 'communication', words: 'communication' },
  { value: 'exposed_communication_ns', label: 'exposed communication', words: 'exposed communication' },
  { value: 'wait_ns', label: 'waiting for others', words: 'waiting for others' },
  { value: 'exposed_memory_ns', label: 'exposed copies', words: 'exposed copies' },
  { value: 'idle_ns', label: 'idle', words: 'idle time' },
];
const SORTS = ['rank', 'host', 'value'] as const;
const TABLE_ROWS = 200;

/** Mean of each row over the steps that were measured; NaN for none. */
export function rowMeans(values: Float64Array, row_count: number, width: number): Float64Array {
  const means = new Float64Array(row_count).fill(NaN);
  for (let r = 0; r < row_count; ++r) {
    let sum = 0;
    let found = 0;
    for (let c = 0, at = r * width; c < width; ++c, ++at) {
      const value = values[at]!;
      if (value === value) {
        sum += value;
        ++found;
      }
    }
    if (found > 0) means[r] = sum / found;
  }
  return means;
}

/** Each value over the median of its column: how a rank does beside the others in the same step. NaN where that is 0. */
export function againstMedian(values: Float64Array, row_count: number, width: number): Float64Array {
  const out = new Float64Array(values.length).fill(NaN);
  const column = new Float64Array(row_count);
  for (let c = 0; c < width; ++c) {
    let found = 0;
    for (let r = 0; r < row_count; ++r) {
      const value = values[r * width + c]!;
      if (value === value) column[found++] = value;
    }
    const sorted = column.subarray(0, found).sort();
    const median = found === 0 ? NaN : (sorted[(found - 1) >> 1]! + sorted[found >> 1]!) / 2;
    if (!(median > 0)) continue;
    for (let r = 0; r < row_count; ++r) out[r * width + c] = values[r * width + c]! / median;
  }
  return out;
}

interface Cell {
  row: number;
  column: number;
  value: number;
  ratio: number;
}

function scaled(values: Float64Array, low: number, high: number) {
  return [low, high, encode(values, low, high)] as const;
}

/** The largest cells, largest first. */
export function largestCells(values: Float64Array, most: number): number[] {
  const threshold = quantiles(values, [1 - Math.min(1, (most * 2) / Math.max(1, values.length))])[0]!;
  const found: number[] = [];
  for (let i = 0; i < values.length; ++i) if (values[i]! >= threshold) found.push(i);
  return found.sort((a, b) => values[b]! - values[a]! || a - b).slice(0, most);
}

function Matrix({ data, matrix }: { data: AnalyzeData; matrix: StepMatrix }) {
  const { shape } = matrix;
  const offered = QUANTITIES.filter((each) => shape.quantities.includes(each.value));
  const [quantity, setQuantity] = useChoice('by', offered.map((each) => each.value), offered[0]!.value);
  const [sort, setSort] = useChoice('sort', SORTS, 'rank');
  const [scale, setScale] = useChoice('scale', ['time', 'median'] as const, 'time');
  const height = shape.rank_indices.length;
  const width = shape.step_numbers.length;
  const words = offered.find((each) => each.value === quantity)!.words;
  const values = useMemo(() => matrix.values(quantity), [matrix, quantity]);
  const shown = useMemo(() => (scale === 'median' ? againstMedian(values, height, width) : values), [values, scale]);
  const means = useMemo(() => rowMeans(values, height, width), [values]);
  const [low, high, codes] = useMemo(() => {
    const [first, last] = quantiles(shown, [0.002, 0.998]) as [number, number];
    if (scale === 'median') return scaled(shown, Math.min(1, first), Math.max(1.1, last));
    // On a scale of less than a tenth every run would look uneven: the middle stays in the middle.
    const room = Math.max(0, last * 0.1 - (last - first)) / 2;
    return scaled(shown, first - Math.min(first, room), last + room);
  }, [shown, scale]);
  const rows = useMemo(() => {
    const order = Uint32Array.from({ length: height }, (_, i) => i);
    const host = (row: number) => data.ranks[shape.rank_indices[row]!]?.host ?? '\uffff';
    if (sort === 'host') order.sort((a, b) => host(a).localeCompare(host(b), 'en', { numeric: true }) || a - b);
    if (sort === 'value') order.sort((a, b) => (Number.isNaN(means[a]!) ? 1 : 0) - (Number.isNaN(means[b]!) ? 1 : 0) || means[b]! - means[a]! || a - b);
    return order;
  }, [matrix, means, sort]);
  const ratios = useMemo(() => (scale === 'median' ? shown : null), [shown, scale]);
  const worst = useMemo(() => largestCells(values, TABLE_ROWS), [values]);
  const cells = useMemo<Cell[]>(
    () => worst.map((i) => ({ row: Math.floor(i / width), column: i % width, value: values[i]!, ratio: ratios ? ratios[i]! : NaN })),
    [worst, ratios],
  );
  const name = (row: number) => rankLabel(data, shape.rank_indices[row]!);
  const host = (row: number) => data.ranks[shape.rank_indices[row]!]?.host ?? null;
  const value = (row: number, column: number) => values[row * width + column]!;
  const text = (row: number, column: number) => {
    const v = value(row, column);
    if (Number.isNaN(v)) return 'not measured';
    if (scale !== 'median') return duration(v);
    const ratio = shown[row * width + column]!;
    return Number.isNaN(ratio) ? duration(v) : `${ratio.toFixed(2)}×`;
  };
  const top = cells[0];
  const highest = means.reduce((best, mean, row) => (Number.isNaN(mean) || (best >= 0 && means[best]! >= mean) ? best : row), -1);
  const summary = top === undefined
    ? `${words} was not measured in any step.`
    : `${plural(height, 'rank')} × ${plural(width, 'step')}. Most ${words}: ${name(top.row)} in step ${shape.step_numbers[top.column]} with ${duration(top.value)}; ` +
      `highest mean: ${name(highest)} with ${duration(means[highest]!)} a step.`;
  const bound = (v: number) => (scale === 'median' ? `${v.toFixed(2)}× the median` : duration(v));
  const openTimeline = (row: number, column: number) => {
    const start = shape.start_ns?.[column];
    const end = shape.end_ns?.[column];
    const rank = shape.rank_indices[row]!;
    const pad = start !== undefined && end !== undefined ? Math.round((end - start) * 0.03) : 0;
    location.hash = href('timeline', {
      row: rank, open: rank, ...(start !== undefined && end !== undefined ? { t: `${Math.max(0, start - pad)}-${end + pad}` } : {}),
    });
  };
  return (
    <Figure
      id="heat"
      title={`${words[0]!.toUpperCase()}${words.slice(1)}, rank by step`}
      summary={summary}
      controls={
        <>
          <Select label="Colour" value={quantity} onChange={setQuantity} options={offered} />
          <Choice name="heat-scale" label="Scale" value={scale} onChange={setScale} options={[{ value: 'time', label: 'time' }, { value: 'median', label: 'against the step’s median' }]} />
          <Choice name="heat-sort" label="Sort" value={sort} onChange={setSort} options={[{ value: 'rank', label: 'rank' }, { value: 'host', label: 'host' }, { value: 'value', label: 'value' }]} />
        </>
      }
      columns={[
        { key: 'rank', title: 'Rank', value: (cell) => name(cell.row) },
        { key: 'host', title: 'Host', value: (cell) => host(cell.row) },
        { key: 'step', title: 'Step', numeric: true, value: (cell) => shape.step_numbers[cell.column]!, text: (cell) => String(shape.step_numbers[cell.column]) },
        { key: quantity, title: words[0]!.toUpperCase() + words.slice(1), numeric: true, value: (cell) => cell.value, text: (cell) => duration(cell.value), help: `The ${TABLE_ROWS} largest cells` },
        ...(scale === 'median' ? [{ key: 'ratio', title: 'Against the median', numeric: true, value: (cell: Cell) => (Number.isNaN(cell.ratio) ? null : cell.ratio), text: (cell: Cell) => (Number.isNaN(cell.ratio) ? '–' : `${cell.ratio.toFixed(2)}×`) }] : []),
      ]}
      rows={cells}
      rowKey={(cell) => `${cell.row},${cell.column}`}
      sort={`-${quantity}`}
      search={['rank', 'host']}
    >
      <GridView
        id="heat-map"
        label={`Heat map. ${summary}`}
        codes={codes}
        row_count={height}
        column_count={width}
        rows={rows}
        columns={null}
        rowLabel={(row) => (sort === 'host' && host(row) !== null ? `${host(row)} · ${name(row)}` : name(row))}
        columnLabel={(column) => String(shape.step_numbers[column])}
        row_title=""
        column_title="step"
        valueText={text}
        describe={(row, column) => {
          const v = value(row, column);
          const ratio = scale === 'median' ? shown[row * width + column]! : NaN;
          return `${name(row)}${host(row) !== null ? ` on ${host(row)}` : ''}, step ${shape.step_numbers[column]}: ${words} ${Number.isNaN(v) ? 'not measured' : duration(v)}` +
            (Number.isNaN(ratio) ? '' : `, ${percent(ratio)} of the step’s median`);
        }}
        onOpen={data.timeline ? openTimeline : undefined}
        open_words="opens the timeline there"
        scale={Number.isNaN(low) ? ['low', 'high', ''] : [`≤ ${bound(low)}`, `≥ ${bound(high)}`, '']}
      />
    </Figure>
  );
}

function HeatMap({ data, source }: ViewProps) {
  const steps = useBlock(source, 'steps', () => source.steps());
  if (steps.state === 'loading') return <Waiting what="the steps" />;
  if (steps.state === 'failed') return <Note kind="warning">The steps could not be read: {steps.message}</Note>;
  if (steps.value === null) return <Note>The steps were left out of this page to keep it small.</Note>;
  return <Matrix data={data} matrix={steps.value} />;
}

export const heatmapView: View = {
  id: 'heatmap',
  title: 'Rank × step',
  shows: 'Is it one rank, one host or one moment? Every rank in every step, the slowest in the brightest colour.',
  group: 'Time',
  missing: (data) => (data.step_matrix === null
    ? data.job.step_count === 0 ? 'No step is marked in these traces. Call profiler.step() once a step.' : 'The steps were left out of this page to keep it small.'
    : null),
  component: HeatMap,
};
