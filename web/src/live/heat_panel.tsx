import { useMemo, useRef } from 'preact/hooks';
import { useChoice, useParam } from '../app/route';
import { agoText } from '../charts/time_lines';
import { encode, quantiles } from '../canvas/grid';
import { GridView } from '../canvas/grid_view';
import { capital, plural } from '../numbers';
import { Choice, Select } from '../parts/controls';
import { Figure } from '../parts/figure';
import { rowsOver, timeColumns, useSpan } from './shared';
import type { LiveStore } from './store';
import type { Columns } from './types';
import type { ComponentChildren } from 'preact';

export interface HeatRow {
  key: string;
  label: string;
  host: string | null;
  columns: Columns | undefined;
}

export interface HeatQuantity {
  /** Column of the history. */
  value: string;
  label: string;
  format: (value: number | null) => string;
  /** The colours begin at 0. */
  from_zero?: boolean;
  /** The least is the worst, as of a busy share. */
  low_is_worse?: boolean;
}

export interface HeatPanelProps {
  store: LiveStore;
  id: string;
  /** "rank" or "device". */
  what: string;
  rows: readonly HeatRow[];
  quantities: readonly HeatQuantity[];
  /** What a click or Enter on a row offers, drawn below; without, rows do not open. */
  offer?: (row: HeatRow, text: string) => ComponentChildren;
  open_words?: string;
}

const SORTS = ['given', 'host', 'worst'] as const;
const SAMPLE = 16_384;

interface RowSum {
  row: HeatRow;
  now: number | null;
  mean: number | null;
  most: number | null;
}

/** Two digits are enough for the ends of a scale, and they do not flicker. */
function calm(value: number, up: boolean): number {
  if (!(value > 0)) return 0;
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return (up ? Math.ceil(value / unit) : Math.floor(value / unit)) * unit;
}

/** The ends of the colours: all but the outermost 0.2 %, and at least a tenth of the value. */
export function scaleOf(values: Float64Array): [number, number] {
  const stride = Math.max(1, Math.floor(values.length / SAMPLE)) | 1;
  const sample = stride === 1 ? values : Float64Array.from({ length: Math.floor(values.length / stride) }, (_, i) => values[i * stride]!);
  const [first, last] = quantiles(sample, [0.002, 0.998]) as [number, number];
  if (Number.isNaN(first)) return [0, 1];
  const room = Math.max(0, last * 0.1 - (last - first)) / 2;
  return [calm(first - Math.min(first, room), false), calm(last + room, true)];
}

/** Means and ends of each row over what is shown. */
export function rowSums(rows: readonly HeatRow[], values: Float64Array, buckets: number, columns: Uint32Array): RowSum[] {
  return rows.map((row, r) => {
    let sum = 0;
    let found = 0;
    let most: number | null = null;
    let now: number | null = null;
    for (let at = 0; at < buckets; ++at) {
      const value = values[r * buckets + columns[at]!]!;
      if (value !== value) continue;
      sum += value;
      ++found;
      now = value;
      if (most === null || value > most) most = value;
    }
    return { row, now, mean: found > 0 ? sum / found : null, most };
  });
}

/** Rows by time, coloured by one of several figures, going on with the clock. */
export function HeatPanel({ store, id, what, rows, quantities, offer, open_words = '' }: HeatPanelProps) {
  const [quantity, setQuantity] = useChoice('by', quantities.map((each) => each.value), quantities[0]!.value);
  const [sort, setSort] = useChoice('sort', SORTS, 'given');
  const [open, setOpen] = useParam('open', '');
  const opened = useRef('');
  const { buckets, words, picker } = useSpan(store);
  const { label, format, from_zero, low_is_worse } = quantities.find((each) => each.value === quantity)!;
  const values = rowsOver(rows.map((row) => row.columns), quantity, buckets, store.timeline);
  const { columns, ago } = timeColumns(buckets, store.timeline);
  const [least, high] = scaleOf(values);
  const low = from_zero ? 0 : least;
  const codes = encode(values, low, high);
  const sums = rowSums(rows, values, buckets, columns);
  const worseMean = (a: RowSum, b: RowSum) => (a.mean === null || b.mean === null ? (a.mean === null ? 1 : 0) - (b.mean === null ? 1 : 0) : low_is_worse ? a.mean - b.mean : b.mean - a.mean);
  // Sorted anew when rows come or go, or the choice changes, and not each second: rows that run away cannot be pointed at.
  const due = Math.floor(store.timeline.last_number / 10);
  const order = useMemo(() => {
    const by = Uint32Array.from(rows.keys());
    if (sort === 'host') by.sort((a, b) => (rows[a]!.host ?? '\uffff').localeCompare(rows[b]!.host ?? '\uffff', 'en', { numeric: true }) || a - b);
    if (sort === 'worst') by.sort((a, b) => worseMean(sums[a]!, sums[b]!) || a - b);
    return by;
  }, [rows.map((row) => row.key).join('\n'), sort, quantity, sort === 'worst' ? due : 0]);
  const text = (row: number, column: number) => {
    const value = values[row * buckets + column]!;
    return value !== value ? 'not measured' : format(value);
  };
  const describe = (row: number, column: number) => {
    const when = agoText(ago(column));
    return `${rows[row]!.label}${rows[row]!.host ? ` on ${rows[row]!.host}` : ''}, ${when}: ${label} ${text(row, column)}`;
  };
  const top = sums.reduce<RowSum | null>((best, each) => (each.mean !== null && (best === null || worseMean(each, best) < 0) ? each : best), null);
  const summary = top === null
    ? `${capital(label)} was not measured in ${words}.`
    : `${plural(rows.length, what)}, ${words}. ${low_is_worse ? 'Lowest' : 'Highest'} mean ${label}: ${top.row.label}${top.row.host ? ` on ${top.row.host}` : ''} with ${format(top.mean)}, now ${format(top.now)}.`;
  const chosen = rows.find((row) => row.key === open);
  const column = (key: 'now' | 'mean' | 'most', title: string) => ({ key, title, numeric: true, value: (each: RowSum) => each[key], text: (each: RowSum) => format(each[key]) });
  return (
    <>
      <Figure
        id={id}
        title={`${capital(label)}, ${what} by time`}
        summary={summary}
        controls={
          <>
            <Select label="Colour" value={quantity} onChange={setQuantity} options={quantities} />
            {picker}
            <Choice name={`${id}-sort`} label="Sort" value={sort} onChange={setSort} options={[{ value: 'given', label: what }, { value: 'host', label: 'host' }, { value: 'worst', label: 'worst' }]} />
          </>
        }
        columns={[
          { key: what, title: capital(what), value: (each) => each.row.label },
          { key: 'host', title: 'Host', value: (each) => each.row.host },
          column('now', 'Now'), column('mean', 'Mean'), column('most', 'Most'),
        ]}
        rows={sums}
        rowKey={(each) => each.row.key}
        sort={low_is_worse ? 'mean' : '-mean'}
        search={[what, 'host']}
      >
        <GridView
          id={`${id}-grid`}
          label={`${capital(what)} by time. ${summary}`}
          codes={codes}
          row_count={rows.length}
          column_count={buckets}
          rows={order}
          columns={columns}
          rowLabel={(row) => rows[row]!.label}
          columnLabel={(at) => (ago(at) === 0 ? '0' : agoText(ago(at)))}
          row_title=""
          column_title="time"
          valueText={text}
          describe={describe}
          onOpen={offer && ((row, at) => {
            opened.current = describe(row, at);
            setOpen(rows[row]!.key);
          })}
          open_words={open_words}
          scale={[format(low), format(high), '']}
        />
      </Figure>
      {offer && chosen && <section class="details" aria-label={chosen.label}>{offer(chosen, opened.current)}</section>}
    </>
  );
}
