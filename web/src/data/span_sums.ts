/** Sums over a stretch of time, from single events. Pure. */
import type { TrackEvents } from './types';

/** All events of one name on one kind of track; what lies outside the stretch does not count. */
export interface NameSum {
  lane: TrackEvents['lane'];
  name: string;
  count: number;
  total_ns: number;
  longest_ns: number;
  /** Which rank has most of it, and how much. */
  most_rank_index: number;
  most_ns: number;
  rank_count: number;
}

/** Adds one rank's events within [start_ns, end_ns). Events within others count for both: a total of all names means nothing. */
export function addSums(sums: Map<string, NameSum>, rank_index: number, tracks: readonly TrackEvents[], names: readonly string[], start_ns: number, end_ns: number): void {
  const own = new Map<string, { lane: TrackEvents['lane']; name: number; count: number; total_ns: number; longest_ns: number }>();
  for (const track of tracks) {
    for (let event = 0; event < track.name.length; ++event) {
      const from = track.start_ns[event]!;
      if (from >= end_ns) break;
      const inside = Math.min(from + track.duration_ns[event]!, end_ns) - Math.max(from, start_ns);
      // What takes no time belongs to where it is.
      if (inside < 0 || (inside === 0 && !(track.duration_ns[event] === 0 && from >= start_ns))) continue;
      const key = `${track.lane} ${track.name[event]}`;
      const row = own.get(key);
      if (!row) {
        own.set(key, { lane: track.lane, name: track.name[event]!, count: 1, total_ns: inside, longest_ns: inside });
        continue;
      }
      row.count += 1;
      row.total_ns += inside;
      row.longest_ns = Math.max(row.longest_ns, inside);
    }
  }
  for (const { lane, name, count, total_ns, longest_ns } of own.values()) {
    const text = names[name] ?? '?';
    const key = `${lane} ${text}`;
    const row = sums.get(key);
    if (!row) {
      sums.set(key, { lane, name: text, count, total_ns, longest_ns, most_rank_index: rank_index, most_ns: total_ns, rank_count: 1 });
      continue;
    }
    row.count += count;
    row.total_ns += total_ns;
    row.longest_ns = Math.max(row.longest_ns, longest_ns);
    row.rank_count += 1;
    if (total_ns > row.most_ns) {
      row.most_ns = total_ns;
      row.most_rank_index = rank_index;
    }
  }
}
