import { Tooltip, useTip } from '../parts/tooltip';
import { useWidth } from '../parts/measure';
import { cutText, labelStride, textWidth } from './scales';

export interface MarkRow {
  key: string;
  label: string;
  /** Columns that have a mark, ascending. */
  at: readonly number[];
  mark: string;
  /** At the right end. */
  text?: string;
}

export interface MarkGridProps {
  rows: readonly MarkRow[];
  column_count: number;
  /** What stands below a column. */
  tick: (column: number) => string;
  xTitle: string;
  label: string;
}

const ROW = 24;

/** Rows by columns, a mark where something was: steps in which a cause showed, ranks that are in a group. */
export function MarkGrid({ rows, column_count, tick, xTitle, label }: MarkGridProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const gutter = Math.min(width * 0.34, Math.max(40, ...rows.map((row) => textWidth(row.label))) + 12);
  const right = Math.min(width * 0.25, Math.max(0, ...rows.map((row) => textWidth(row.text ?? ''))) + 14);
  const plot = Math.max(60, width - gutter - right);
  const pitch = Math.min(26, plot / Math.max(1, column_count));
  const long = pitch * column_count;
  const height = rows.length * ROW + 36;
  const gap = pitch > 8 ? 2 : pitch > 3 ? 1 : 0;
  const stride = labelStride(column_count, long, Math.max(30, textWidth(tick(column_count - 1)) + 12));
  const onMove = (event: MouseEvent) => {
    const box = ref.current!.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - box.top) / ROW)];
    const column = Math.floor((event.clientX - box.left - gutter) / pitch);
    if (!row || column < 0 || column >= column_count) return show(null);
    return show({
      x: event.clientX - box.left, y: (rows.indexOf(row) + 1) * ROW,
      content: <><strong>{row.label}</strong><div>{xTitle} {tick(column)}: {row.at.includes(column) ? 'yes' : 'no'}</div></>,
    });
  };
  return (
    <div ref={ref} class="chart" onMouseMove={onMove} onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        {rows.map((row, at) => {
          const y = at * ROW + 4;
          let d = '';
          // Runs of marks are one where columns have no gap.
          for (let i = 0; i < row.at.length; ++i) {
            let end = i;
            while (gap === 0 && row.at[end + 1] === row.at[end]! + 1) ++end;
            d += `M${(gutter + row.at[i]! * pitch).toFixed(2)} ${y}h${Math.max(1, (row.at[end]! - row.at[i]! + 1) * pitch - gap).toFixed(2)}v${ROW - 8}H${(gutter + row.at[i]! * pitch).toFixed(2)}Z`;
            i = end;
          }
          return (
            <g key={row.key}>
              <rect class="fill-panel" x={gutter} y={y} width={Math.max(1, long - gap)} height={ROW - 8} />
              <path class={`fill-${row.mark}`} d={d} />
              <text x={gutter - 8} y={y + 12} text-anchor="end">{cutText(row.label, gutter - 12)}</text>
              {row.text !== undefined && <text class="muted" x={gutter + long + 8} y={y + 12}>{cutText(row.text, width - gutter - long - 10)}</text>}
            </g>
          );
        })}
        {Array.from({ length: Math.ceil(column_count / stride) }, (_, i) => i * stride).map((column) => (
          <text key={column} class="muted" x={gutter + (column + 0.5) * pitch} y={rows.length * ROW + 14} text-anchor="middle">{tick(column)}</text>
        ))}
        <text class="muted" x={gutter} y={height - 4}>{xTitle}</text>
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
