import { scaleLinear } from 'd3-scale';
import { bytes, duration, number, rate } from '../numbers';

export interface Axis {
  /** Data to pixels. */
  at: (value: number) => number;
  ticks: { value: number; text: string }[];
  max: number;
}

/** "20.0 ms" is "20 ms" on an axis. */
export function plain(text: string): string {
  return text.replace(/(\.\d*?)0+( |$)/, '$1$2').replace(/\.( |$)/, '$1');
}

const BINARY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** From 0 to at least `max`, with round ticks in the words of the quantity. */
export function axisFromZero(max: number, pixels: number, kind: 'ns' | 'bytes' | 'rate' | 'number' | 'ratio', space = 90): Axis {
  const top = max > 0 && Number.isFinite(max) ? max : 1;
  const wanted = Math.max(2, Math.floor(pixels / space));
  let values: number[];
  if (kind === 'bytes') {
    const unit = 1024 ** Math.floor(Math.log(top) / Math.log(1024));
    const step = (BINARY.find((s) => (s * unit) * wanted >= top) ?? 1024) * unit;
    values = Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, i) => i * step);
  } else {
    values = scaleLinear().domain([0, top]).nice(wanted).ticks(wanted);
    // There is nothing between two nanoseconds.
    if (kind === 'ns') values = values.filter(Number.isInteger);
  }
  const end = Math.max(values[values.length - 1]!, top);
  const text = { ns: duration, bytes, rate, number, ratio: (v: number) => `${Math.round(v * 100)} %` }[kind];
  return {
    at: (value) => (value / end) * pixels,
    ticks: values.map((value) => ({ value, text: plain(text(value)) })),
    max: end,
  };
}

/** Every how many columns a label fits. */
export function labelStride(columns: number, width: number, space: number): number {
  const most = Math.max(1, Math.floor(width / space));
  for (let scale = 1; ; scale *= 10) {
    for (const step of [1, 2, 5]) if (columns / (step * scale) <= most) return step * scale;
  }
}

/** Width of a text at 12 px, near enough for layout. */
export function textWidth(text: string): number {
  let width = 0;
  for (const c of text) width += 'iljtf.,:;|!\' '.includes(c) ? 3.8 : 'mwMW@'.includes(c) ? 10 : c >= 'A' && c <= 'Z' ? 8.2 : 7;
  return width;
}
