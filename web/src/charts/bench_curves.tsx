import type { BenchCurve, CurvePoint, Quantity } from '../data/bench';
import { bytes, duration, rate } from '../numbers';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import { byteTicks, mark, shape } from './bandwidth';
import { logarithmic, plain } from './scales';

const LEFT = 76;
const TOP = 10;
const HEIGHT = 360;
const BOTTOM = 44;

/** Curves over message size, both axes in powers; a band from the slowest rank to the fastest; an earlier run's dashed. At least one point. */
export function BenchCurves({ curves, quantity, label }: { curves: readonly BenchCurve[]; quantity: Quantity; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const words = quantity === 'busbw' ? rate : duration;
  const points = curves.flatMap((curve) => curve.points);
  const ends = points.flatMap((point) => [point.value, point.low ?? point.value, point.high ?? point.value]);
  const sizes = points.map((point) => Math.max(1, point.bytes));
  const [least, most] = [Math.min(...ends) / 1.3, Math.max(...ends) * 1.3];
  const plot_width = Math.max(80, width - LEFT - 16);
  const plot_height = HEIGHT - TOP - BOTTOM;
  const [small, large] = [Math.min(...sizes) / 1.6, Math.max(...sizes) * 1.6];
  const x = logarithmic(small, large, LEFT, LEFT + plot_width);
  const y = logarithmic(least, most, TOP + plot_height, TOP);
  const powers = Array.from({ length: Math.ceil(Math.log10(most)) - Math.floor(Math.log10(least)) + 1 }, (_, i) => 10 ** (Math.floor(Math.log10(least)) + i)).filter((value) => value >= least && value <= most);
  const path = (all: readonly CurvePoint[], value: (point: CurvePoint) => number) => all.map((point, i) => `${i ? 'L' : 'M'}${x(Math.max(1, point.bytes)).toFixed(1)} ${y(value(point)).toFixed(1)}`).join('');
  return (
    <div ref={ref} class="chart" onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {powers.map((value) => (
          <g key={value}>
            <line class="grid" x1={LEFT} x2={LEFT + plot_width} y1={y(value)} y2={y(value)} />
            <text class="muted" x={LEFT - 8} y={y(value) + 4} text-anchor="end">{plain(words(value))}</text>
          </g>
        ))}
        {byteTicks(small, large, plot_width / 70).map((value) => (
          <g key={value}>
            <line class="grid" x1={x(value)} x2={x(value)} y1={TOP} y2={TOP + plot_height} />
            <text class="muted" x={x(value)} y={TOP + plot_height + 16} text-anchor="middle">{bytes(value).replace(/\.0+ /, ' ')}</text>
          </g>
        ))}
        <line class="axis" x1={LEFT} x2={LEFT + plot_width} y1={TOP + plot_height} y2={TOP + plot_height} />
        <text class="muted" x={LEFT} y={HEIGHT - 6}>message size (log scale)</text>
        {curves.map((curve) => (
          <g key={`${curve.operation} ${curve.earlier}`} class={`line-${mark(curve.at)}`}>
            {!curve.earlier && curve.points.every((point) => point.low !== null && point.high !== null) && (
              <path class="fabric-spread" d={`${path(curve.points, (point) => point.high!)}${path([...curve.points].reverse(), (point) => point.low!).replace('M', 'L')}Z`} />
            )}
            <path class={curve.earlier ? 'fabric-curve' : 'series-line'} d={path(curve.points, (point) => point.value)} />
            {curve.points.map((point) => {
              const [at, up] = [x(Math.max(1, point.bytes)), y(point.value)];
              const content = (
                <>
                  <strong>{curve.operation}{curve.earlier && ', earlier'}</strong>
                  <div class="tip-line"><span>{bytes(point.bytes)}</span><span class="number">{words(point.value)}</span></div>
                  {point.low !== null && point.high !== null && <div class="tip-line"><span>ranks between</span><span class="number">{words(Math.min(point.low, point.high))} … {words(Math.max(point.low, point.high))}</span></div>}
                </>
              );
              return (
                <g key={point.bytes} onMouseEnter={() => show({ x: at, y: up, content })}>
                  <circle class="hover-target" cx={at} cy={up} r="7" />
                  <path class={curve.earlier ? 'fabric-point' : 'dot'} transform={`translate(${at},${up})${curve.earlier ? ' scale(0.7)' : ''}`} d={shape(curve.at)} />
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

export function BenchKeys({ curves }: { curves: readonly BenchCurve[] }) {
  return (
    <ul class="legend">
      {curves.map((curve) => (
        <li key={`${curve.operation} ${curve.earlier}`}>
          <svg class={`line-${mark(curve.at)}`} width="26" height="14" aria-hidden="true">
            <path class={curve.earlier ? 'fabric-curve' : 'series-line'} d="M1 7H25" />
            <path class={curve.earlier ? 'fabric-point' : 'dot'} transform={`translate(13,7) scale(${curve.earlier ? 0.7 : 0.9})`} d={shape(curve.at)} />
          </svg>
          {curve.operation}{curve.earlier && ', earlier'}
        </li>
      ))}
      <li class="muted">around a curve: from its slowest rank to its fastest</li>
    </ul>
  );
}
