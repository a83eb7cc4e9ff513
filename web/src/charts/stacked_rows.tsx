import type { ComponentChildren } from 'preact';
import { Tooltip, useTip } from '../parts/tooltip';
import { useWidth } from '../parts/measure';
import { count } from '../numbers';
import { axisFromZero, cutText, textWidth } from './scales';

export interface Part {
  /** Class of the fill: "compute" for fill-compute. */
  mark: string;
  label: string;
  value: number;
}

export interface BarRow {
  key: string;
  label: string;
  /** null: not measured; drawn as such. */
  parts: readonly Part[] | null;
  /** At the right end. */
  text?: string;
  /** A limit to be drawn as a line, such as a device's memory. */
  limit?: number | null;
}

export interface StackedRowsProps {
  rows: readonly BarRow[];
  kind: 'ns' | 'bytes' | 'number' | 'ratio' | 'flops';
  format: (value: number) => string;
  label: string;
}

const ROW = 26;
const MOST = 40;

type Line = { kind: 'row'; row: BarRow } | { kind: 'gap'; count: number };

/** Worst first is how they come; of very many the worst, the middle and the best are drawn, the table has all. */
function lines(rows: readonly BarRow[]): Line[] {
  if (rows.length <= MOST) return rows.map((row) => ({ kind: 'row', row }));
  const middle = Math.floor(rows.length / 2);
  const pick = (from: number, to: number): Line[] => rows.slice(from, to).map((row) => ({ kind: 'row', row }));
  return [
    ...pick(0, 20), { kind: 'gap', count: middle - 2 - 20 }, ...pick(middle - 2, middle + 2),
    { kind: 'gap', count: rows.length - 6 - (middle + 2) }, ...pick(rows.length - 6, rows.length),
  ];
}

/** One bar a row, made of parts. */
export function StackedRows({ rows, kind, format, label }: StackedRowsProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const drawn = lines(rows);
  const gutter = Math.min(width * 0.3, Math.max(40, ...rows.slice(0, 400).map((row) => textWidth(row.label))) + 12);
  const right = Math.max(0, ...rows.slice(0, 400).map((row) => textWidth(row.text ?? ''))) + 14;
  const plot = Math.max(60, width - gutter - right);
  const total = (row: BarRow) => (row.parts ?? []).reduce((sum, part) => sum + part.value, 0);
  const axis = axisFromZero(Math.max(0, ...rows.map((row) => Math.max(total(row), row.limit ?? 0))), plot, kind);
  const height = drawn.length * ROW + 26;

  const tipOf = (row: BarRow): ComponentChildren => (
    <>
      <strong>{row.label}</strong>
      {row.parts === null ? <div>not measured</div> : row.parts.map((part) => (
        <div key={part.label} class="tip-line"><span>{part.label}</span><span class="number">{format(part.value)}</span></div>
      ))}
    </>
  );

  return (
    <div ref={ref} class="chart" onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value} transform={`translate(${gutter + axis.at(tick.value)},0)`}>
            <line class="grid" y1={0} y2={height - 22} />
            <text class="muted" y={height - 7} text-anchor="middle">{tick.text}</text>
          </g>
        ))}
        {drawn.map((line, at) => {
          const y = at * ROW;
          if (line.kind === 'gap') {
            return <text key={`gap${at}`} class="muted" x={gutter} y={y + 17}>{`… ${count(line.count)} between`}</text>;
          }
          const { row } = line;
          let x = gutter;
          return (
            <g key={row.key} onMouseMove={(event) => {
              const box = ref.current!.getBoundingClientRect();
              show({ x: event.clientX - box.left, y: y + ROW, content: tipOf(row) });
            }}>
              <rect class="hover-target" x={0} y={y} width={width} height={ROW} />
              <text x={gutter - 8} y={y + 17} text-anchor="end">{cutText(row.label, gutter - 10)}</text>
              {row.parts === null && <rect class="fill-absent" x={gutter} y={y + 4} width={48} height={ROW - 8} />}
              {row.parts?.map((part) => {
                const w = axis.at(part.value);
                const rect = w > 0 ? <rect key={part.label} class={`fill-${part.mark}`} x={x} y={y + 4} width={Math.max(0.75, w - 1)} height={ROW - 8} /> : null;
                x += w;
                return rect;
              })}
              {row.limit !== null && row.limit !== undefined && (
                <line class="limit" x1={gutter + axis.at(row.limit)} x2={gutter + axis.at(row.limit)} y1={y + 2} y2={y + ROW - 2} />
              )}
              {row.text !== undefined && (
                <text x={row.parts === null ? gutter + 56 : row.limit ? gutter + plot + 8 : Math.min(x + 7, gutter + plot + 8)} y={y + 17}>{row.text}</text>
              )}
            </g>
          );
        })}
        <line class="axis" x1={gutter} x2={gutter} y1={0} y2={height - 22} />
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
