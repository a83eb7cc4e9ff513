import { useMemo } from 'preact/hooks';
import { count, duration } from '../numbers';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import { axisFromZero, linear, plain, roundTicks } from './scales';

/** A quantity over time: the smallest and the largest of each stretch, which begins at `time_ns` and holds until the next. */
export interface RangeSeries {
  key: string;
  label: string;
  time_ns: readonly number[];
  low: readonly number[];
  high: readonly number[];
}

export const lowest = (each: RangeSeries) => each.low.reduce((least, value) => Math.min(least, value), Infinity);
export const highest = (each: RangeSeries) => each.high.reduce((most, value) => Math.max(most, value), -Infinity);

/**
 * Smallest and largest over all series in equal pieces of [start, end); a series holds its value until its next point,
 * and is not known before its first and after its last.
 */
export function envelope(series: readonly RangeSeries[], pieces: number, start: number, end: number): { low: number; high: number }[] {
  const bands = Array.from({ length: pieces }, () => ({ low: Infinity, high: -Infinity }));
  for (const each of series) {
    let at = 0;
    while (at < each.time_ns.length && each.time_ns[at]! < start) ++at;
    for (let piece = 0; piece < pieces; ++piece) {
      const until = start + ((piece + 1) / pieces) * (end - start);
      const band = bands[piece]!;
      if (at > 0 && at < each.time_ns.length) {
        band.low = Math.min(band.low, each.low[at - 1]!);
        band.high = Math.max(band.high, each.high[at - 1]!);
      }
      for (; at < each.time_ns.length && each.time_ns[at]! < until; ++at) {
        band.low = Math.min(band.low, each.low[at]!);
        band.high = Math.max(band.high, each.high[at]!);
      }
    }
  }
  return bands;
}

const LEFT = 76;
const TOP = 8;
const HEIGHT = 280;
const BOTTOM = 40;

export interface RangeOverTimeProps {
  /** Drawn as a line, and its times are those of the axis. */
  chosen: RangeSeries;
  /** The chosen one and those it is compared with, as a band. */
  all: readonly RangeSeries[];
  kind: 'bytes' | 'rate' | 'number' | 'ns';
  format: (value: number | null | undefined) => string;
  label: string;
}

/** One series as a line, before the band from the smallest to the largest of all. */
export function RangeOverTime({ chosen, all, kind, format, label }: RangeOverTimeProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const start = chosen.time_ns[0] ?? 0;
  const end = Math.max(start + 1, chosen.time_ns[chosen.time_ns.length - 1] ?? 1);
  const plotWidth = Math.max(80, width - LEFT - 16);
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const pieces = Math.max(20, Math.min(400, Math.floor(plotWidth / 3)));
  const bands = useMemo(() => envelope(all, pieces, start, end), [all, pieces, start, end]);
  const bottom = Math.min(0, ...all.map(lowest));
  const top = Math.max(...all.map(highest));
  let ticks: number[];
  let py: (value: number) => number;
  if (bottom < 0) {
    ticks = roundTicks(bottom, Math.max(top, 0), Math.max(2, Math.floor(plotHeight / 50)));
    py = linear(ticks[0]!, ticks[ticks.length - 1]!, TOP + plotHeight, TOP);
  } else {
    const axis = axisFromZero(top, plotHeight, kind, 50);
    ticks = axis.ticks.map((tick) => tick.value);
    py = (value) => TOP + plotHeight - axis.at(value);
  }
  const x = axisFromZero(end - start, plotWidth, 'ns', 110);
  const px = (ns: number) => LEFT + ((ns - start) / (end - start)) * plotWidth;

  const up: string[] = [];
  const down: string[] = [];
  bands.forEach((band, at) => {
    if (!Number.isFinite(band.high) || !Number.isFinite(band.low)) return;
    const left = LEFT + (at / pieces) * plotWidth;
    const right = LEFT + ((at + 1) / pieces) * plotWidth;
    up.push(`${left.toFixed(1)} ${py(band.high).toFixed(1)}`, `${right.toFixed(1)} ${py(band.high).toFixed(1)}`);
    down.push(`${left.toFixed(1)} ${py(band.low).toFixed(1)}`, `${right.toFixed(1)} ${py(band.low).toFixed(1)}`);
  });
  let line = '';
  chosen.time_ns.forEach((ns, at) => {
    line += `${at ? 'H' : 'M'}${px(ns).toFixed(1)}${at ? 'V' : ' '}${py(chosen.high[at]!).toFixed(1)}V${py(chosen.low[at]!).toFixed(1)}`;
  });
  const onMove = (event: MouseEvent) => {
    const box = ref.current!.getBoundingClientRect();
    const ns = start + ((event.clientX - box.left - LEFT) / plotWidth) * (end - start);
    let at = chosen.time_ns.findIndex((value) => value > ns) - 1;
    if (at === -2) at = chosen.time_ns.length - 1;
    const band = bands[Math.floor(((ns - start) / (end - start)) * pieces)];
    show(ns < start || ns > end || at < 0 ? null : {
      x: event.clientX - box.left, y: TOP + 6,
      content: (
        <>
          <strong>at {duration(Math.round(ns - start))}</strong>
          <div class="tip-line"><span>{chosen.label}</span><span class="number">{format(chosen.high[at])}</span></div>
          {all.length > 1 && band && Number.isFinite(band.high) && <div class="tip-line"><span>all {count(all.length)}</span><span class="number">{format(band.low)} … {format(band.high)}</span></div>}
        </>
      ),
    });
  };
  return (
    <div ref={ref} class="chart" onMouseMove={onMove} onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {ticks.map((tick) => (
          <g key={tick}>
            <line class="grid" x1={LEFT} x2={LEFT + plotWidth} y1={py(tick)} y2={py(tick)} />
            <text class="muted" x={LEFT - 8} y={py(tick) + 4} text-anchor="end">{plain(format(tick))}</text>
          </g>
        ))}
        {x.ticks.filter((tick) => tick.value <= end - start).map((tick) => (
          <text key={tick.value} class="muted" x={px(start + tick.value)} y={TOP + plotHeight + 16} text-anchor="middle">{tick.text}</text>
        ))}
        {all.length > 1 && up.length > 0 && <path class="fill-band" d={`M${up.join('L')}L${down.reverse().join('L')}Z`} />}
        <path class="range-line" d={line} />
        <line class="axis" x1={LEFT} x2={LEFT + plotWidth} y1={TOP + plotHeight} y2={TOP + plotHeight} />
        <text class="muted" x={LEFT} y={HEIGHT - 4}>{start === 0 ? 'time since the start of the run' : `time since ${duration(start)} into the run`}</text>
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
