import { Tooltip, useTip } from '../parts/tooltip';
import { useWidth } from '../parts/measure';
import { flopRate, number } from '../numbers';
import { decades } from './../data/depth';
import { cutText, plain } from './scales';

export interface RoofPoint {
  label: string;
  /** FLOP a byte, FLOP a second. */
  intensity: number;
  flops_per_s: number;
  /** 0..1: share of the time, for the size of the dot. */
  weight: number;
  bound: boolean | null;
}

export interface Roof {
  label: string;
  peak_flops_per_s: number;
  bandwidth_bytes_per_s: number;
}

const LEFT = 92;
const TOP = 12;
const BOTTOM = 42;
const HEIGHT = 340;

/** Work per byte against work per second, both logarithmic, under the roof of the device: bandwidth to the left, peak to the right. */
export function Roofline({ points, roofs, label }: { points: readonly RoofPoint[]; roofs: readonly Roof[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const plot_width = Math.max(80, width - LEFT - 16);
  const plot_height = HEIGHT - TOP - BOTTOM;
  const ridges = roofs.map((roof) => roof.peak_flops_per_s / roof.bandwidth_bytes_per_s);
  const xs = decades(Math.min(...points.map((point) => point.intensity), ...ridges), Math.max(...points.map((point) => point.intensity), ...ridges.map((ridge) => ridge * 2)));
  const ys = decades(Math.min(...points.map((point) => point.flops_per_s)), Math.max(...points.map((point) => point.flops_per_s), ...roofs.map((roof) => roof.peak_flops_per_s)));
  const scale = (values: readonly number[], pixels: number) => (value: number) =>
    ((Math.log10(value) - Math.log10(values[0]!)) / (Math.log10(values[values.length - 1]!) - Math.log10(values[0]!))) * pixels;
  const along = scale(xs, plot_width);
  const up = scale(ys, plot_height);
  const x = (value: number) => LEFT + Math.max(0, Math.min(plot_width, along(value)));
  const y = (value: number) => TOP + plot_height - Math.max(0, Math.min(plot_height, up(value)));
  const stride = Math.max(1, Math.ceil(xs.length / Math.max(1, plot_width / 60)));
  const y_stride = Math.max(1, Math.ceil(ys.length / (plot_height / 28)));
  return (
    <div ref={ref} class="chart" onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {xs.map((value, at) => (
          <g key={value}>
            <line class="grid" x1={x(value)} x2={x(value)} y1={TOP} y2={TOP + plot_height} />
            {at % stride === 0 && <text class="muted" x={x(value)} y={TOP + plot_height + 16} text-anchor="middle">{value >= 1e5 || value < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(1)))}</text>}
          </g>
        ))}
        {ys.map((value, at) => (
          <g key={value}>
            <line class="grid" x1={LEFT} x2={LEFT + plot_width} y1={y(value)} y2={y(value)} />
            {at % y_stride === 0 && <text class="muted" x={LEFT - 8} y={y(value) + 4} text-anchor="end">{plain(flopRate(value))}</text>}
          </g>
        ))}
        {roofs.map((roof, at) => {
          // The slope may leave the picture below or to the left.
          const left = Math.max(xs[0]!, ys[0]! / roof.bandwidth_bytes_per_s);
          const ridge = ridges[at]!;
          return (
            <g key={roof.label} class={`line-series-${(at % 6) + 1}`}>
              <path class="roof" d={`M${x(left).toFixed(1)} ${y(left * roof.bandwidth_bytes_per_s).toFixed(1)}L${x(ridge).toFixed(1)} ${y(roof.peak_flops_per_s).toFixed(1)}H${LEFT + plot_width}`} />
              <text class="muted" x={LEFT + plot_width} y={y(roof.peak_flops_per_s) - 6} text-anchor="end">{cutText(roof.label, plot_width / 2)}</text>
            </g>
          );
        })}
        {points.map((point, at) => (
          <circle
            key={at}
            class={point.bound === false ? 'roof-point memory' : 'roof-point'}
            cx={x(point.intensity)}
            cy={y(point.flops_per_s)}
            r={3 + 9 * Math.sqrt(Math.max(0, point.weight))}
            onMouseMove={() => show({
              x: x(point.intensity), y: y(point.flops_per_s) + 14,
              content: <><strong>{point.label}</strong><div class="tip-line"><span>FLOP/B</span><span class="number">{number(point.intensity)}</span></div><div class="tip-line"><span>rate</span><span class="number">{flopRate(point.flops_per_s)}</span></div></>,
            })}
          />
        ))}
        <line class="axis" x1={LEFT} x2={LEFT + plot_width} y1={TOP + plot_height} y2={TOP + plot_height} />
        <text class="muted" x={LEFT} y={HEIGHT - 4}>FLOP per byte of memory</text>
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
