import { useState } from 'preact/hooks';
import { Tooltip, useTip } from '../parts/tooltip';
import { useWidth } from '../parts/measure';
import { axisFromZero, labelStride } from './scales';
import type { BarRow } from './stacked_rows';

export interface StackedColumnsProps {
  columns: readonly BarRow[];
  /** Short label of a column below the axis. */
  tick: (index: number) => string;
  xTitle: string;
  kind: 'ns' | 'bytes';
  format: (value: number) => string;
  label: string;
  /** Where there are more columns than fit, how the one is called that stands for several: "the longest of". */
  many: string;
  height?: number;
}

const NARROWEST = 2;

function sum(column: BarRow): number {
  return (column.parts ?? []).reduce((total, part) => total + part.value, 0);
}

const LEFT = 64;
const BOTTOM = 40;
const TOP = 8;

/**
 * Columns made of parts, side by side: from one to some thousands. One path a part, so that many are no burden. Where a
 * column would be narrower than two pixels, the largest of several stands for them: none that is worse is hidden.
 */
export function StackedColumns({ columns: all, tick, xTitle, kind, format, label, many, height = 280 }: StackedColumnsProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const [hover, setHover] = useState<number | null>(null);
  const plotWidth = Math.max(80, width - LEFT - 12);
  const plotHeight = height - BOTTOM - TOP;
  const group = Math.max(1, Math.ceil((all.length * NARROWEST) / plotWidth));
  const drawn: number[] = [];
  for (let from = 0; from < all.length; from += group) {
    let largest = from;
    for (let at = from; at < Math.min(all.length, from + group); ++at) if (sum(all[at]!) > sum(all[largest]!)) largest = at;
    drawn.push(largest);
  }
  const columns = drawn.map((at) => all[at]!);
  const totals = columns.map(sum);
  const axis = axisFromZero(Math.max(0, ...totals), plotHeight, kind, 46);
  const pitch = Math.min(72, plotWidth / Math.max(1, columns.length));
  const gap = pitch > 24 ? 6 : pitch > 5 ? 1 : 0;
  const marks = columns.find((column) => column.parts)?.parts?.map((part) => part.mark) ?? [];
  const y = (value: number) => TOP + plotHeight - axis.at(value);

  const paths = marks.map((mark, at) => {
    let d = '';
    columns.forEach((column, index) => {
      const part = column.parts?.[at];
      if (!part || part.value <= 0) return;
      let base = 0;
      for (let i = 0; i < at; ++i) base += column.parts![i]!.value;
      const x0 = LEFT + index * pitch + gap / 2;
      d += `M${x0.toFixed(1)} ${y(base).toFixed(1)}H${(x0 + pitch - gap).toFixed(1)}V${y(base + part.value).toFixed(1)}H${x0.toFixed(1)}Z`;
    });
    return { mark, d };
  });
  let absent = '';
  columns.forEach((column, index) => {
    if (!column.parts) absent += `M${(LEFT + index * pitch + gap / 2).toFixed(1)} ${TOP}h${(pitch - gap).toFixed(1)}v${plotHeight}h${(gap - pitch).toFixed(1)}Z`;
  });

  const onMove = (event: MouseEvent) => {
    const box = ref.current!.getBoundingClientRect();
    const index = Math.floor((event.clientX - box.left - LEFT) / pitch);
    const column = columns[index];
    setHover(column ? index : null);
    show(!column ? null : {
      x: LEFT + (index + 0.5) * pitch, y: TOP + 4,
      content: (
        <>
          <strong>{column.label}</strong>
          {group > 1 && <div>{many} {group}</div>}
          {column.parts === null ? <div>not measured</div> : (
            <>
              {column.parts.map((part) => (
                <div key={part.label} class="tip-line"><span>{part.label}</span><span class="number">{format(part.value)}</span></div>
              ))}
              <div class="tip-line total"><span>total</span><span class="number">{format(totals[index]!)}</span></div>
            </>
          )}
        </>
      ),
    });
  };
  const stride = labelStride(columns.length, columns.length * pitch, 56);

  return (
    <div ref={ref} class="chart" onMouseMove={onMove} onMouseLeave={() => { show(null); setHover(null); }}>
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        {axis.ticks.map((t) => (
          <g key={t.value}>
            <line class="grid" x1={LEFT} x2={LEFT + plotWidth} y1={y(t.value)} y2={y(t.value)} />
            <text class="muted" x={LEFT - 8} y={y(t.value) + 4} text-anchor="end">{t.text}</text>
          </g>
        ))}
        {paths.map((path) => <path key={path.mark} class={`fill-${path.mark}`} d={path.d} />)}
        {absent && <path class="fill-absent" d={absent} />}
        {hover !== null && <rect class="hover-column" x={LEFT + hover * pitch} y={TOP} width={Math.max(1, pitch)} height={plotHeight} />}
        <line class="axis" x1={LEFT} x2={LEFT + plotWidth} y1={TOP + plotHeight} y2={TOP + plotHeight} />
        {columns.map((column, index) => index % stride === 0 && (
          <text key={column.key} class="muted" x={LEFT + (index + 0.5) * pitch} y={TOP + plotHeight + 16} text-anchor="middle">{tick(index * group)}</text>
        ))}
        <text class="muted" x={LEFT} y={height - 4}>{group > 1 ? `${xTitle}; each column is ${many} ${group}` : xTitle}</text>
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
