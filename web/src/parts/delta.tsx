import { axisFromZero } from '../charts/scales';
import { duration, percent } from '../numbers';
import type { Column } from './data_table';
import { useWidth } from './measure';

type Maybe = number | null;

/** A delta of lockstep.compare/1. */
export interface Delta { a: Maybe; b: Maybe; shift: Maybe; low: Maybe; high: Maybe; p: Maybe; ratio: Maybe; change: string }

export function signed(ns: Maybe): string {
  return ns === null ? duration(null) : `${ns > 0 ? '+' : ''}${duration(ns)}`;
}
export function signedPercent(ratio: Maybe): string {
  return ratio === null ? percent(null) : `${ratio > 0 ? '+' : ''}${(ratio * 100).toFixed(1)} %`;
}
/** "none" is not always the same: unknown stays unknown. */
export function changeWord(change: string): string {
  return { none: 'same', unknown: 'cannot tell' }[change] ?? change;
}

/** Columns of a delta, for tables: A, B, change, interval, what it means. */
export function deltaColumns<Row>(of: (row: Row) => Delta): Column<Row>[] {
  const time = (key: 'a' | 'b' | 'shift' | 'low' | 'high', title: string): Column<Row> => ({
    key: `${key}_ns`, title, numeric: true, value: (row) => of(row)[key],
    text: (row) => (key === 'a' || key === 'b' ? duration(of(row)[key]) : signed(of(row)[key])),
  });
  return [
    time('a', 'A'), time('b', 'B'), time('shift', 'Change'),
    { key: 'ratio', title: 'Of A', numeric: true, value: (row) => of(row).ratio, text: (row) => signedPercent(of(row).ratio) },
    time('low', 'At least'), time('high', 'At most'),
    { key: 'change', title: 'Meaning', value: (row) => of(row).change, text: (row) => changeWord(of(row).change) },
  ];
}

const LEFT = 170;

/** Change of each part with its interval, around a line at zero. */
export function DeltaChart({ rows, label }: { rows: readonly { name: string; delta: Delta }[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const largest = Math.max(1, ...rows.flatMap(({ delta }) => [delta.shift, delta.low, delta.high].map((v) => Math.abs(v ?? 0))));
  const plot = width - LEFT - 100;
  const axis = axisFromZero(largest, plot / 2, 'ns', 80);
  const x = (value: number) => LEFT + plot / 2 + Math.sign(value) * axis.at(Math.abs(value));
  const height = rows.length * 32 + 36;
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        {[-1, 1].flatMap((sign) => axis.ticks.filter((tick) => sign > 0 || tick.value > 0).map((tick) => (
          <g key={`${sign * tick.value}`}>
            <line class={tick.value === 0 ? 'axis' : 'grid'} x1={x(sign * tick.value)} x2={x(sign * tick.value)} y1={0} y2={height - 30} />
            <text class="muted" x={x(sign * tick.value)} y={height - 12} text-anchor="middle">{`${tick.value === 0 ? '' : sign > 0 ? '+' : '-'}${tick.text}`}</text>
          </g>
        )))}
        {rows.map(({ name, delta }, at) => {
          const y = at * 32 + 18;
          if (delta.shift === null) return null;
          return (
            <g key={name}>
              <text x={LEFT - 10} y={y + 4} text-anchor="end">{name}</text>
              {delta.low !== null && delta.high !== null && <line class="whisker" x1={x(delta.low)} x2={x(delta.high)} y1={y} y2={y} />}
              {delta.low !== null && <line class="whisker" x1={x(delta.low)} x2={x(delta.low)} y1={y - 5} y2={y + 5} />}
              {delta.high !== null && <line class="whisker" x1={x(delta.high)} x2={x(delta.high)} y1={y - 5} y2={y + 5} />}
              <circle class="dot" cx={x(delta.shift)} cy={y} r="5" />
              <text class="muted" x={width - 4} y={y + 4} text-anchor="end">{changeWord(delta.change)}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
