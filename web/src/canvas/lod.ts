import type { TimelineLevel } from '../data/types';

export const CLASS_COUNT = 4;

/** The coarsest level whose buckets are no wider than a pixel; the finest when all are wider. Levels: coarsest first. */
export function chooseLevel(levels: readonly TimelineLevel[], ns_per_pixel: number): TimelineLevel | null {
  for (const level of levels) if (level.bucket_ns <= ns_per_pixel) return level;
  return levels[levels.length - 1] ?? null;
}

/** First bucket and the one after the last of each pixel, at least one; -1 for pixels beyond the level. */
export function pixelBuckets(level: TimelineLevel, start_ns: number, ns_per_pixel: number, width: number): Int32Array {
  const spans = new Int32Array(width * 2);
  for (let x = 0; x < width; ++x) {
    const from = Math.floor((start_ns + x * ns_per_pixel) / level.bucket_ns + 1e-9);
    const to = Math.ceil((start_ns + (x + 1) * ns_per_pixel) / level.bucket_ns - 1e-9);
    const inside = from >= 0 && from < level.bucket_count;
    spans[2 * x] = inside ? from : -1;
    spans[2 * x + 1] = inside ? Math.min(level.bucket_count, Math.max(from + 1, to)) : -1;
  }
  return spans;
}

/**
 * Adds the shares of one rank to a line of pixels (4 per pixel): the mean of the buckets in a pixel, rounded up so that
 * what is there stays visible; of several ranks in one line the largest.
 */
export function addShares(level: TimelineLevel, rank_index: number, spans: Int32Array, line: Uint8Array): void {
  const base = rank_index * level.bucket_count * CLASS_COUNT;
  const shares = level.shares;
  for (let x = 0, at = 0; 2 * x < spans.length; ++x, at += CLASS_COUNT) {
    const from = spans[2 * x]!;
    if (from < 0) continue;
    const to = spans[2 * x + 1]!;
    const first = base + from * CLASS_COUNT;
    if (to - from === 1) {
      for (let k = 0; k < CLASS_COUNT; ++k) if (shares[first + k]! > line[at + k]!) line[at + k] = shares[first + k]!;
      continue;
    }
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let i = first, end = base + to * CLASS_COUNT; i < end; i += CLASS_COUNT) {
      a += shares[i]!;
      b += shares[i + 1]!;
      c += shares[i + 2]!;
      d += shares[i + 3]!;
    }
    const up = to - from - 1;
    const count = to - from;
    a = ((a + up) / count) | 0;
    b = ((b + up) / count) | 0;
    c = ((c + up) / count) | 0;
    d = ((d + up) / count) | 0;
    if (a > line[at]!) line[at] = a;
    if (b > line[at + 1]!) line[at + 1] = b;
    if (c > line[at + 2]!) line[at + 2] = c;
    if (d > line[at + 3]!) line[at + 3] = d;
  }
}

/** Which classes occur anywhere. */
export function classesPresent(levels: readonly TimelineLevel[]): boolean[] {
  const present = [false, false, false, false];
  const level = levels[0];
  if (level) for (let i = 0; i < level.shares.length; ++i) if (level.shares[i]! > 0) present[i & 3] = true;
  return present;
}

/** Mean share of each class of one rank in [start_ns, end_ns), 0..1, from the level that fits the stretch. */
export function meanShares(levels: readonly TimelineLevel[], rank_index: number, start_ns: number, end_ns: number): number[] {
  const level = chooseLevel(levels, (end_ns - start_ns) / 64);
  const sums = [0, 0, 0, 0];
  if (!level) return sums;
  const from = Math.max(0, Math.floor(start_ns / level.bucket_ns));
  const to = Math.min(level.bucket_count, Math.max(from + 1, Math.ceil(end_ns / level.bucket_ns)));
  for (let b = from; b < to; ++b) {
    const at = (rank_index * level.bucket_count + b) * CLASS_COUNT;
    for (let k = 0; k < CLASS_COUNT; ++k) sums[k] = sums[k]! + level.shares[at + k]!;
  }
  return sums.map((sum) => sum / 255 / Math.max(1, to - from));
}

/** Mean over all ranks for the small picture of the whole run: 4 shares per pixel, 0..255. */
export function overviewLine(levels: readonly TimelineLevel[], span_ns: number, width: number, rank_count: number): Uint8Array {
  const line = new Uint8Array(width * CLASS_COUNT);
  const level = chooseLevel(levels, span_ns / Math.max(1, width) * 2);
  if (!level || rank_count === 0) return line;
  const spans = pixelBuckets(level, 0, span_ns / width, width);
  const sums = new Float64Array(line.length);
  const one = new Uint8Array(line.length);
  for (let rank = 0; rank < rank_count; ++rank) {
    one.fill(0);
    addShares(level, rank, spans, one);
    for (let i = 0; i < one.length; ++i) sums[i] = sums[i]! + one[i]!;
  }
  for (let i = 0; i < line.length; ++i) line[i] = Math.round(sums[i]! / rank_count);
  return line;
}
