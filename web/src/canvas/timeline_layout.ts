import type { TrackEvents } from '../data/types';

/** A line of the timeline: a rank, or one track of a rank that is open. Heights and places in CSS pixels. */
export interface Line {
  kind: 'rank' | 'track';
  rank_index: number;
  /** Place in the rank's tracks; -1 for the rank's own line. */
  track: number;
  y: number;
  height: number;
  /** It stays at the top while the others are scrolled. */
  pinned: boolean;
}

/** A line that is pinned: a rank's (`track` -1), or a track's. */
export interface Pin {
  rank_index: number;
  track: number;
}

export const LEVEL_HEIGHT = 15;
export const RANK_HEIGHT = 22;
/** What is pinned leaves room for the others: what has none stays in its place. */
const MOST_PINNED_HEIGHT = 300;

/** "3,5.2": rank index 3, and track 2 of rank index 5. What is no such thing is left out. */
export function parsePins(text: string): Pin[] {
  return text.split(',').flatMap((part) => {
    const found = /^(\d{1,7})(?:\.(\d{1,5}))?$/.exec(part);
    return found ? [{ rank_index: Number(found[1]), track: found[2] === undefined ? -1 : Number(found[2]) }] : [];
  });
}
export const pinText = (pins: readonly Pin[]) => pins.map(({ rank_index, track }) => (track < 0 ? String(rank_index) : `${rank_index}.${track}`)).join(',');

/** With the line if it is not there, else without it. */
export function togglePin(pins: readonly Pin[], { rank_index, track }: Pin): Pin[] {
  const others = pins.filter((pin) => pin.rank_index !== rank_index || pin.track !== track);
  return others.length < pins.length ? others : [...pins, { rank_index, track }];
}

const trackHeight = (track: TrackEvents) => Math.max(1, track.level_count) * LEVEL_HEIGHT + 4;

/**
 * The lines of the ranks from top to bottom, first those that are pinned, also of ranks that are not among `ranks`; `tracks` are those of a rank that is open or
 * has a pinned track, undefined while they are unpacked. A pinned rank that is open has its tracks with it.
 */
export function layoutLines(
  ranks: readonly number[], open: ReadonlySet<number>, tracks: (rank: number) => readonly TrackEvents[] | undefined, rank_height: number, pins: readonly Pin[] = [],
): { lines: Line[]; height: number; pinned_count: number; pinned_height: number } {
  const lines: Line[] = [];
  let y = 0;
  const add = (kind: Line['kind'], rank_index: number, track: number, height: number, pinned: boolean) => {
    lines.push({ kind, rank_index, track, y, height, pinned });
    y += height;
  };
  const pinned_ranks = new Set(pins.filter(({ track }) => track < 0).map(({ rank_index }) => rank_index));
  const placed = new Set<string>();
  for (const { rank_index, track } of pins) {
    if (track >= 0 && pinned_ranks.has(rank_index) && open.has(rank_index)) continue;
    const all = tracks(rank_index);
    const own = track >= 0 ? [track].filter((at) => all?.[at]) : open.has(rank_index) ? [...(all ?? []).keys()] : [];
    const height = (track < 0 ? RANK_HEIGHT : 0) + own.reduce((sum, at) => sum + trackHeight(all![at]!), 0);
    if (height === 0 || y + height > MOST_PINNED_HEIGHT) continue;
    if (track < 0) add('rank', rank_index, -1, RANK_HEIGHT, true);
    for (const at of own) add('track', rank_index, at, trackHeight(all![at]!), true);
    placed.add(pinText([{ rank_index, track }]));
  }
  const pinned_count = lines.length;
  const pinned_height = y;
  for (const rank of ranks) {
    if (placed.has(String(rank))) continue;
    add('rank', rank, -1, open.has(rank) ? Math.max(rank_height, RANK_HEIGHT) : rank_height, false);
    if (!open.has(rank)) continue;
    tracks(rank)?.forEach((track, at) => {
      if (!placed.has(`${rank}.${at}`)) add('track', rank, at, trackHeight(track), false);
    });
  }
  return { lines, height: y, pinned_count, pinned_height };
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
