import { bytes, duration, flopRate, number, rate } from '../numbers';

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

/** Round values around [low, high]: the ends are round as well, ticks are 1, 2 or 5 times a power of ten apart, about `wanted` of them. */
export function roundTicks(low: number, high: number, wanted: number): number[] {
  // Between two of 1, 2, 5, 10 the geometric mean decides.
  const raw = (high - low) / Math.max(1, wanted);
  const power = Math.floor(Math.log10(raw));
  const lead = raw / 10 ** power;
  const digit = lead >= Math.sqrt(50) ? 10 : lead >= Math.sqrt(10) ? 5 : lead >= Math.SQRT2 ? 2 : 1;
  // Below 1 by division: 3 / 10 is what a reader writes, 3 * 0.1 is not.
  const at = (i: number) => (power < 0 ? (i * digit) / 10 ** -power : i * digit * 10 ** power);
  const first = Math.floor(low / at(1) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / at(1) - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => at(first + i));
}

/** Data to pixels; `from` may be the larger one. */
export function linear(low: number, high: number, from: number, to: number): (value: number) => number {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

/** The same over powers of ten; below `low` as `low`. */
export function logarithmic(low: number, high: number, from: number, to: number): (value: number) => number {
  const along = linear(Math.log10(low), Math.log10(high), from, to);
  return (value) => along(Math.log10(Math.max(low, Math.min(high, value))));
}

const BINARY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** From 0 to at least `max`, with round ticks in the words of the quantity. */
export function axisFromZero(max: number, pixels: number, kind: 'ns' | 'bytes' | 'rate' | 'number' | 'ratio' | 'flops', space = 90): Axis {
  const top = max > 0 && Number.isFinite(max) ? max : 1;
  const wanted = Math.max(2, Math.floor(pixels / space));
  let values: number[];
  if (kind === 'bytes') {
    const unit = 1024 ** Math.floor(Math.log(top) / Math.log(1024));
    const step = (BINARY.find((s) => (s * unit) * wanted >= top) ?? 1024) * unit;
    values = Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, i) => i * step);
  } else {
    values = roundTicks(0, top, wanted);
    // There is nothing between two nanoseconds.
    if (kind === 'ns') values = values.filter(Number.isInteger);
  }
  const end = Math.max(values[values.length - 1]!, top);
  const text = { ns: duration, bytes, rate, number, flops: flopRate, ratio: (v: number) => `${Number((v * 100).toPrecision(3))} %` }[kind];
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

/** The text cut to a width, with "…" in its middle: names differ at their ends. */
export function cutText(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = text.length - 1;
  const cut = () => `${text.slice(0, Math.ceil(kept * 0.6)).trimEnd()}…${text.slice(text.length - Math.floor(kept * 0.4)).trimStart()}`;
  while (kept > 2 && textWidth(cut()) > width) --kept;
  return cut();
}
