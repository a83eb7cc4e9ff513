import type { ComponentChildren } from 'preact';
import type { Curve, FabricPoint, JobPoint, Series } from '../data/fabric';
import { bytes, duration, percent, plural, rate } from '../numbers';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import { linear, logarithmic, roundTicks } from './scales';

/** Six shapes for six colours: told apart without colour, too. Centred on (0, 0), about 9 px. */
const SHAPES = [
  'M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z', 'M-4-4h8v8h-8Z', 'M0-5.2L5 4H-5Z', 'M0-5.6L5.6 0L0 5.6L-5.6 0Z', 'M0 5.2L5-4H-5Z',
  'M-5-1.7h3.3V-5h3.4v3.3H5v3.4H1.7V5h-3.4V1.7H-5Z',
];
// The seventh has the first's colour, but not its shape.
export const shape = (at: number) => SHAPES[(at + Math.floor(at / 6)) % SHAPES.length]!;
export const mark = (at: number) => `series-${(at % 6) + 1}`;

const LEFT = 76;
const TOP = 10;
const HEIGHT = 400;
const BOTTOM = 44;

/** Powers of two between both, at most `most` of them. */
export function byteTicks(low: number, high: number, most: number): number[] {
  const all: number[] = [];
  for (let power = Math.floor(Math.log2(low)); power <= Math.ceil(Math.log2(high)); ++power) all.push(2 ** power);
  let stride = 1;
  while (all.length / stride > most) stride *= 2;
  return all.filter((value) => Math.log2(value) % stride === 0 && value >= low && value <= high);
}

const Line = ({ name, children }: { name: string; children: ComponentChildren }) => <div class="tip-line"><span>{name}</span><span class="number">{children}</span></div>;

function JobTip({ label, row }: { label: string; row: JobPoint }) {
  const [low, quarter, middle, upper, high] = row.busbw_bytes_per_s;
  return (
    <>
      <strong>{label}</strong>
      <div>{bytes(row.bytes)}, {plural(row.count, 'time')}</div>
      <Line name="median">{rate(middle)}</Line>
      <Line name="half between">{rate(quarter)} … {rate(upper)}</Line>
      <Line name="all between">{rate(low)} … {rate(high)}</Line>
      {row.ratio !== null && <Line name="the fabric can">{rate(row.fabric_busbw_bytes_per_s)}</Line>}
      {row.ratio !== null && <Line name="share of it">{percent(row.ratio)}</Line>}
    </>
  );
}

function FabricTip({ label, point }: { label: string; point: FabricPoint }) {
  return (
    <>
      <strong>{label}</strong>
      <div>{bytes(point.bytes)}{point.mean_ns !== null && `, ${duration(point.mean_ns)}`}</div>
      <Line name="mean of the ranks">{rate(point.busbw_bytes_per_s)}</Line>
      {point.slowest_busbw_bytes_per_s !== null && point.fastest_busbw_bytes_per_s !== null && (
        <Line name="ranks between">{rate(point.slowest_busbw_bytes_per_s)} … {rate(point.fastest_busbw_bytes_per_s)}</Line>
      )}
    </>
  );
}

/** Bus bandwidth over message size: what the job got as symbols with their spread, what the fabric can do as dashed curves with theirs. */
export function BandwidthChart({ series, curves, log, label }: { series: readonly Series[]; curves: readonly Curve[]; log: boolean; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const rows = series.flatMap((each) => each.points);
  const measured = curves.flatMap((curve) => curve.points);
  const plotWidth = width - LEFT - 16;
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const sizes = [...rows, ...measured].map((row) => Math.max(1, row.bytes));
  const x = logarithmic(Math.min(...sizes) / 1.6, Math.max(...sizes) * 1.6, LEFT, LEFT + plotWidth);
  const top = (point: FabricPoint) => point.fastest_busbw_bytes_per_s ?? point.busbw_bytes_per_s;
  const bottom = (point: FabricPoint) => point.slowest_busbw_bytes_per_s ?? point.busbw_bytes_per_s;
  const highest = Math.max(...rows.map((row) => row.busbw_bytes_per_s[4]), ...measured.map(top));
  const positive = [...rows.map((row) => row.busbw_bytes_per_s[0]), ...measured.map(bottom)].filter((value) => value > 0);
  const lowest = Math.max(1, Math.min(...positive, highest));
  const yTicks = log
    ? Array.from({ length: 14 }, (_, i) => 10 ** i).filter((value) => value >= lowest / 1.3 && value <= highest * 1.3)
    : roundTicks(0, highest * 1.06, 6);
  const y = log
    ? logarithmic(lowest / 1.3, highest * 1.3, TOP + plotHeight, TOP)
    : linear(0, yTicks[yTicks.length - 1]!, TOP + plotHeight, TOP);
  const path = <Row extends { bytes: number }>(points: readonly Row[], value: (row: Row) => number) =>
    points.map((row, i) => `${i ? 'L' : 'M'}${x(Math.max(1, row.bytes)).toFixed(1)} ${y(value(row)).toFixed(1)}`).join('');
  return (
    <div ref={ref} class="chart" onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {yTicks.map((value) => (
          <g key={value}>
            <line class="grid" x1={LEFT} x2={LEFT + plotWidth} y1={y(value)} y2={y(value)} />
            <text class="muted" x={LEFT - 8} y={y(value) + 4} text-anchor="end">{value === 0 ? '0' : rate(value).replace(/\.0+ /, ' ')}</text>
          </g>
        ))}
        {byteTicks(Math.min(...sizes) / 1.6, Math.max(...sizes) * 1.6, plotWidth / 70).map((value) => (
          <g key={value}>
            <line class="grid" x1={x(value)} x2={x(value)} y1={TOP} y2={TOP + plotHeight} />
            <text class="muted" x={x(value)} y={TOP + plotHeight + 16} text-anchor="middle">{bytes(value).replace(/\.0+ /, ' ')}</text>
          </g>
        ))}
        <line class="axis" x1={LEFT} x2={LEFT + plotWidth} y1={TOP + plotHeight} y2={TOP + plotHeight} />
        <text class="muted" x={LEFT} y={HEIGHT - 6}>message size (log scale)</text>
        {curves.map((curve) => (
          <g key={curve.label} class={`line-${mark(curve.at)}`}>
            <path class="fabric-spread" d={`${path(curve.points, top)}${path([...curve.points].reverse(), bottom).replace('M', 'L')}Z`} />
            <path class="fabric-curve" d={path(curve.points, (point) => point.busbw_bytes_per_s)} />
            {curve.points.map((point, i) => {
              const at = x(Math.max(1, point.bytes));
              const up = y(point.busbw_bytes_per_s);
              return (
                <g key={i} onMouseEnter={() => show({ x: at, y: up, content: <FabricTip label={curve.label} point={point} /> })}>
                  <circle class="hover-target" cx={at} cy={up} r="7" />
                  <path class="fabric-point" transform={`translate(${at},${up}) scale(0.7)`} d={shape(curve.at)} />
                </g>
              );
            })}
          </g>
        ))}
        {series.map((each) => (
          <g key={each.label} class={`line-${mark(each.at)}`}>
            <path class="trend" d={path(each.points, (row) => row.busbw_bytes_per_s[2])} />
            {each.points.map((row) => {
              const at = x(Math.max(1, row.bytes));
              const [low, quarter, middle, upper, high] = row.busbw_bytes_per_s;
              return (
                <g key={row.bytes} onMouseEnter={() => show({ x: at, y: y(middle), content: <JobTip label={each.label} row={row} /> })}>
                  <line class="whisker" x1={at} x2={at} y1={y(low)} y2={y(high)} />
                  <line class="quartile" x1={at} x2={at} y1={y(quarter)} y2={y(upper)} />
                  <path class="dot" transform={`translate(${at},${y(middle)})`} d={shape(each.at)} />
                </g>
              );
            })}
          </g>
        ))}
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}

export function BandwidthKeys({ series, curves }: { series: readonly Series[]; curves: readonly Curve[] }) {
  return (
    <ul class="legend">
      {series.map((each) => (
        <li key={each.label}>
          <svg class={`line-${mark(each.at)}`} width="16" height="14" aria-hidden="true"><path class="dot" transform="translate(8,7)" d={shape(each.at)} /></svg>
          {each.label}
        </li>
      ))}
      {curves.map((curve) => (
        <li key={curve.label}>
          <svg class={`line-${mark(curve.at)}`} width="26" height="14" aria-hidden="true">
            <path class="fabric-spread" d="M1 3H25V11H1Z" /><path class="fabric-curve" d="M1 7H25" /><path class="fabric-point" transform="translate(13,7) scale(0.7)" d={shape(curve.at)} />
          </svg>
          {curve.label}
        </li>
      ))}
      {series.length > 0 && <li class="muted">symbol: median; thick: half of the instances; thin: all</li>}
      {curves.length > 0 && <li class="muted">dashed: measured by the benchmark; around it: from its slowest rank to its fastest</li>}
    </ul>
  );
}
