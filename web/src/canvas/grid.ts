import { CODE_MOST, CODE_NONE, CODE_NOT_MEASURED } from './palette';

/** Which positions of an axis are in view: whole cells, `first` to `first + count - 1`. */
export interface Axis {
  first: number;
  count: number;
}

export function wholeAxis(total: number): Axis {
  return { first: 0, count: Math.max(1, total) };
}

/** `factor` below 1 zooms in; the position at `at_ratio` of the picture stays about where it is. At least one cell. */
export function zoomAxis(axis: Axis, total: number, factor: number, at_ratio: number): Axis {
  let count = Math.round(axis.count * factor);
  if (count === axis.count) count += factor < 1 ? -1 : factor > 1 ? 1 : 0;
  count = Math.min(Math.max(1, total), Math.max(1, count));
  return moveAxis({ first: Math.round(axis.first + (axis.count - count) * at_ratio), count }, total, 0);
}

export function moveAxis(axis: Axis, total: number, by: number): Axis {
  return { first: Math.max(0, Math.min(Math.max(1, total) - axis.count, axis.first + by)), count: axis.count };
}

/** Moves no more than needed for `position` to be in view. */
export function showPosition(axis: Axis, total: number, position: number): Axis {
  if (position < axis.first) return moveAxis(axis, total, position - axis.first);
  if (position >= axis.first + axis.count) return moveAxis(axis, total, position - axis.first - axis.count + 1);
  return axis;
}

/** "10+50" in the address. */
export function parseAxis(text: string, total: number): Axis {
  const match = /^(\d{1,9})\+(\d{1,9})$/.exec(text);
  if (!match) return wholeAxis(total);
  const count = Math.min(Math.max(1, total), Math.max(1, Number(match[2])));
  return moveAxis({ first: Math.min(Number(match[1]), total), count }, total, 0);
}

export function axisText(axis: Axis, total: number): string {
  return axis.count >= total ? '' : `${axis.first}+${axis.count}`;
}

/** First position of each pixel; pixel p shows positions edges[p] up to the larger of edges[p] + 1 and edges[p + 1]. */
export function pixelEdges(axis: Axis, extent: number): Int32Array {
  const edges = new Int32Array(extent + 1);
  for (let p = 0; p <= extent; ++p) edges[p] = axis.first + Math.floor((p * axis.count) / extent + 1e-9);
  edges[extent] = axis.first + axis.count;
  return edges;
}

/** The position under a pixel, or null outside. */
export function positionAt(axis: Axis, extent: number, at: number): number | null {
  if (at < 0 || at >= extent) return null;
  return axis.first + Math.min(axis.count - 1, Math.floor((at * axis.count) / extent));
}

/**
 * Turns values into codes: low and below 0, high and above CODE_MOST, NaN CODE_NOT_MEASURED; where `zero_is_none`, 0 and
 * below become CODE_NONE.
 */
export function encode(values: Float64Array, low: number, high: number, zero_is_none = false): Uint8Array {
  const codes = new Uint8Array(values.length);
  const scale = high > low ? CODE_MOST / (high - low) : 0;
  for (let i = 0; i < values.length; ++i) {
    const value = values[i]!;
    if (value !== value) codes[i] = CODE_NOT_MEASURED;
    else if (zero_is_none && value <= 0) codes[i] = CODE_NONE;
    else codes[i] = Math.min(CODE_MOST, Math.max(0, Math.round((value - low) * scale)));
  }
  return codes;
}

/** The value below which `share` of the measured ones lie, from at most some 65,000 of them, evenly taken. */
export function quantiles(values: Float64Array, shares: readonly number[]): number[] {
  const stride = Math.max(1, Math.floor(values.length / 65_536) | 1);
  const sample = new Float64Array(Math.ceil(values.length / stride));
  let count = 0;
  for (let i = 0; i < values.length; i += stride) if (values[i] === values[i]) sample[count++] = values[i]!;
  const sorted = sample.subarray(0, count).sort();
  return shares.map((share) => (count === 0 ? NaN : sorted[Math.min(count - 1, Math.floor(share * count))]!));
}

/** How strong a code is when several share a pixel: the largest shows, "none" is below any value, "not measured" last. */
const strength = new Uint8Array(256);
const byStrength = new Uint8Array(256);
for (let code = 0; code <= CODE_MOST; ++code) strength[code] = code + 2;
strength[CODE_NONE] = 1;
strength[CODE_NOT_MEASURED] = 0;
for (let code = 0; code < 256; ++code) byStrength[strength[code]!] = code;

/**
 * The codes of each pixel, row-major: of all cells that share a pixel the largest, so that one bad cell among a thousand
 * is seen. `rows` and `columns` say which row and column of the matrix stands at a position; null = in order.
 * Cost: O(cells in view + pixels).
 */
export function gridPixels(
  codes: Uint8Array, stride: number, row_edges: Int32Array, column_edges: Int32Array, rows: Uint32Array, columns: Uint32Array | null,
): Uint8Array {
  const height = row_edges.length - 1;
  const width = column_edges.length - 1;
  const out = new Uint8Array(width * height);
  const first = column_edges[0]!;
  const count = column_edges[width]! - first;
  const line = new Uint8Array(count);
  let done_from = -1;
  let done_to = -1;
  for (let y = 0; y < height; ++y) {
    const from = row_edges[y]!;
    const to = Math.max(from + 1, row_edges[y + 1]!);
    if (from === done_from && to === done_to) {
      out.copyWithin(y * width, (y - 1) * width, y * width); // A tall row is made once.
      continue;
    }
    done_from = from;
    done_to = to;
    line.fill(0);
    for (let position = from; position < to; ++position) {
      const base = rows[position]! * stride;
      if (columns) {
        for (let c = 0; c < count; ++c) {
          const s = strength[codes[base + columns[first + c]!]!]!;
          if (s > line[c]!) line[c] = s;
        }
      } else {
        for (let c = 0, at = base + first; c < count; ++c, ++at) {
          const s = strength[codes[at]!]!;
          if (s > line[c]!) line[c] = s;
        }
      }
    }
    let at = y * width;
    for (let x = 0; x < width; ++x) {
      const begin = column_edges[x]! - first;
      const end = Math.max(begin + 1, column_edges[x + 1]! - first);
      let most = 0;
      for (let c = begin; c < end; ++c) if (line[c]! > most) most = line[c]!;
      out[at++] = byStrength[most]!;
    }
  }
  return out;
}
