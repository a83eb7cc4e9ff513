import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import { bytes, duration, flopRate, number, percent, rate } from '../numbers';
import { axisFromZero } from './scales';

export interface TimeSeries {
  label: string;
  /** 1 to 6: colours of .line-series-N. */
  series: number;
  /** Oldest first, one a place of the time axis; null = not measured, where the line has a gap. */
  values: readonly (number | null)[];
  dashed?: boolean;
}

export interface TimeLinesProps {
  series: readonly TimeSeries[];
  /** Length of a place of the axis; the last one is now. */
  bucket_ns: number;
  kind: 'ns' | 'bytes' | 'rate' | 'number' | 'ratio' | 'flops';
  label: string;
  height?: number;
  /** A line that is a limit, such as a threshold. */
  limit?: { value: number; label: string };
}

const LEFT = 66;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;
const FORMAT = { ns: duration, bytes, rate, number, ratio: percent, flops: flopRate };

/** A path through what was measured; `x` and `y` turn place and value into pixels. A value between two gaps is a dot of a line. */
export function linePath(values: readonly (number | null)[], x: (at: number) => number, y: (value: number) => number): string {
  let path = '';
  values.forEach((value, at) => {
    if (value === null) return;
    const joined = at > 0 && values[at - 1] !== null;
    path += `${joined ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!joined && (values[at + 1] ?? null) === null) path += 'h1';
  });
  return path;
}

/** "now", "−30 s", "−5 min": how long before the last place. */
export function agoText(ns: number): string {
  const seconds = Math.round(ns / 1e9);
  if (seconds === 0) return 'now';
  return seconds % 60 === 0 ? `−${seconds / 60} min` : seconds > 600 ? `−${(seconds / 60).toFixed(1)} min` : `−${seconds} s`;
}

/** Lines over time, the newest at the right. */
export function TimeLines({ series, bucket_ns, kind, label, height = 200, limit }: TimeLinesProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const count = Math.max(2, ...series.map((each) => each.values.length));
  const plot_width = Math.max(80, width - LEFT - RIGHT);
  const plot_height = height - TOP - BOTTOM;
  const most = Math.max(0, limit?.value ?? 0, ...series.map((each) => each.values.reduce<number>((max, value) => Math.max(max, value ?? 0), 0)));
  const axis = axisFromZero(most, plot_height, kind, 40);
  const x = (at: number) => LEFT + (at / (count - 1)) * plot_width;
  const y = (value: number) => TOP + plot_height - axis.at(value);
  const ticks = Math.max(2, Math.min(6, Math.floor(plot_width / 110)));
  const format = FORMAT[kind];
  const onMove = (event: MouseEvent) => {
    const at = Math.round(((event.clientX - ref.current!.getBoundingClientRect().left - LEFT) / plot_width) * (count - 1));
    show(at < 0 || at >= count ? null : {
      x: x(at), y: TOP + 4,
      content: (
        <>
          <strong>{agoText((count - 1 - at) * bucket_ns)}</strong>
          {series.map((each) => <div key={each.label} class="tip-line"><span>{each.label}</span><span class="number">{format(each.values[at] ?? null)}</span></div>)}
        </>
      ),
    });
  };
  return (
    <div ref={ref} class="chart" onMouseMove={onMove} onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value}>
            <line class="grid" x1={LEFT} x2={LEFT + plot_width} y1={y(tick.value)} y2={y(tick.value)} />
            <text class="muted" x={LEFT - 8} y={y(tick.value) + 4} text-anchor="end">{tick.text}</text>
          </g>
        ))}
        {limit && limit.value <= axis.max && (
          <>
            <line class="limit" x1={LEFT} x2={LEFT + plot_width} y1={y(limit.value)} y2={y(limit.value)} />
            <text class="muted" x={LEFT + 4} y={y(limit.value) - 5}>{limit.label}</text>
          </>
        )}
        {series.map((each) => (
          <path key={each.label} class={`time-line line-series-${each.series}${each.dashed ? ' dashed' : ''}`} d={linePath(each.values, x, y)} />
        ))}
        <line class="axis" x1={LEFT} x2={LEFT + plot_width} y1={TOP + plot_height} y2={TOP + plot_height} />
        {Array.from({ length: ticks }, (_, i) => Math.round(((count - 1) * i) / (ticks - 1))).map((at, i) => (
          <text key={i} class="muted" x={x(at)} y={height - 7} text-anchor={i === 0 ? 'start' : i === ticks - 1 ? 'end' : 'middle'}>{agoText((count - 1 - at) * bucket_ns)}</text>
        ))}
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
