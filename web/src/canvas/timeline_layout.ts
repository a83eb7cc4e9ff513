import type { TrackEvents } from '../data/types';

/** A line of the timeline: a rank, or one track of a rank that is open. Heights and places in CSS pixels. */
export interface Line {
  kind: 'rank' | 'track';
  rank_index: number;
  /** Place in the rank's tracks; -1 for the rank's own line. */
  track: number;
  y: number;
  height: number;
}

export const LEVEL_HEIGHT = 15;
export const RANK_HEIGHT = 22;

/** The lines of the ranks from top to bottom; `tracks` are those of an open rank, undefined while they are unpacked. */
export function layoutLines(
  ranks: readonly number[], open: ReadonlySet<number>, tracks: (rank: number) => readonly TrackEvents[] | undefined, rank_height: number,
): { lines: Line[]; height: number } {
  const lines: Line[] = [];
  let y = 0;
  for (const rank of ranks) {
    const height = open.has(rank) ? Math.max(rank_height, RANK_HEIGHT) : rank_height;
    lines.push({ kind: 'rank', rank_index: rank, track: -1, y, height });
    y += height;
    if (!open.has(rank)) continue;
    tracks(rank)?.forEach((track, at) => {
      const track_height = Math.max(1, track.level_count) * LEVEL_HEIGHT + 4;
      lines.push({ kind: 'track', rank_index: rank, track: at, y, height: track_height });
      y += track_height;
    });
  }
  return { lines, height: y };
}

/** First line that reaches below `y`. */
export function firstLineAt(lines: readonly Line[], y: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle]!.y + lines[middle]!.height > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

const LABEL_HEIGHT = 13;

/**
 * Which lines from `first` on, down to `bottom`, have room for their label. That of `here` (-1: none), which the cursor is on, has its label in any
 * case, and its neighbours leave room for it.
 */
export function labelledLines(lines: readonly Line[], first: number, bottom: number, here: number): ReadonlySet<number> {
  const labelled = new Set<number>();
  let free = -Infinity;
  for (let at = first; at < lines.length && lines[at]!.y < bottom; ++at) {
    const { y, height } = lines[at]!;
    const in_the_way = at !== here && here >= first && height < LABEL_HEIGHT && Math.abs(y - lines[here]!.y) < LABEL_HEIGHT;
    if (at !== here && (y < free || in_the_way)) continue;
    labelled.add(at);
    free = y + Math.max(height, LABEL_HEIGHT);
  }
  return labelled;
}

/** "0-3,8": the ranks' numbers; anything else means all of them (null). */
export function parseRankList(text: string): ((rank: number) => boolean) | null {
  const ranges: [number, number][] = [];
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,7})(?:\s*-\s*(\d{1,7}))?\s*$/.exec(part);
    if (match) ranges.push([Number(match[1]), Number(match[2] ?? match[1])]);
  }
  return ranges.length === 0 ? null : (rank) => ranges.some(([from, to]) => from <= rank && rank <= to);
}

/** Where each class is drawn in a rank's line, as parts of its height; those that never occur get none. */
export function classBands(present: readonly boolean[]): { from: number; to: number }[] {
  // The host's part is small beside a device's, which is what the view is about.
  const weights = [present[0] ? 4 : 0, present[1] ? 4 : 0, present[2] ? 1.5 : 0, present[3] ? (present[0] ? 1.5 : 4) : 0];
  const sum = weights.reduce((a, b) => a + b, 0) || 1;
  let at = 0;
  return weights.map((weight) => {
    const from = at / sum;
    at += weight;
    return { from, to: at / sum };
  });
}
