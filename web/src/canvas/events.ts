import type { TrackEvents } from '../data/types';

/** Events of one level of a track, in order of their start. */
export interface Lane {
  /** Into the track's columns. */
  index: Uint32Array;
  /** Latest end among this event and all before it in the lane; never falls. */
  end_ns: Float64Array;
}

/** The lanes of a track; `keep` chooses events. Cost: O(events). */
export function laneIndex(track: TrackEvents, keep?: (event: number) => boolean): Lane[] {
  const counts = new Uint32Array(Math.max(1, track.level_count));
  const count = track.name.length;
  for (let i = 0; i < count; ++i) if (!keep || keep(i)) ++counts[Math.min(track.level[i]!, counts.length - 1)]!;
  const lanes = Array.from(counts, (n) => ({ index: new Uint32Array(n), end_ns: new Float64Array(n) }));
  const filled = new Uint32Array(counts.length);
  for (let i = 0; i < count; ++i) {
    if (keep && !keep(i)) continue;
    const level = Math.min(track.level[i]!, counts.length - 1);
    const lane = lanes[level]!;
    const at = filled[level]!++;
    const end = track.start_ns[i]! + track.duration_ns[i]!;
    lane.index[at] = i;
    lane.end_ns[at] = at > 0 ? Math.max(end, lane.end_ns[at - 1]!) : end;
  }
  return lanes;
}

/** First place in the lane at which something ends after `time_ns`. */
export function firstEndingAfter(lane: Lane, time_ns: number): number {
  let low = 0;
  let high = lane.end_ns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.end_ns[middle]! > time_ns) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The same at or after `time_ns`, and not before place `from`: what is looked for is mostly near. */
function firstEndingFrom(lane: Lane, time_ns: number, from: number): number {
  let low = from;
  let stride = 1;
  while (low + stride < lane.end_ns.length && lane.end_ns[low + stride]! < time_ns) {
    low += stride;
    stride *= 2;
  }
  let high = Math.min(lane.end_ns.length, low + stride + 1);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.end_ns[middle]! >= time_ns) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** What is drawn: one event, or several too narrow to be told apart (`event` is the first of them, `count` how many). */
export type Emit = (x0: number, x1: number, event: number, count: number) => void;

/**
 * The events of a lane in view, in pixels from the left edge. Events narrower than a pixel that share one are merged with
 * their neighbours into one run; what lies wholly in a pixel already drawn is jumped over.
 * Cost: O(pixels × log events), whatever the number of events.
 */
export function visibleRuns(track: TrackEvents, lane: Lane, start_ns: number, ns_per_pixel: number, width: number, emit: Emit): void {
  const end_ns = start_ns + width * ns_per_pixel;
  let run_from = 0;
  let run_to = -1; // In whole pixels; the run covers [run_from, run_to).
  let run_event = -1;
  let run_count = 0;
  const flush = () => {
    if (run_count > 0) emit(run_from, run_to, run_event, run_count);
    run_count = 0;
  };
  let at = firstEndingAfter(lane, start_ns);
  while (at < lane.index.length) {
    const event = lane.index[at]!;
    const from_ns = track.start_ns[event]!;
    if (from_ns >= end_ns) break;
    const to_ns = from_ns + track.duration_ns[event]!;
    if (to_ns <= start_ns) {
      ++at; // Covered by a longer one before it.
      continue;
    }
    const x0 = (from_ns - start_ns) / ns_per_pixel;
    const x1 = (to_ns - start_ns) / ns_per_pixel;
    if (x1 - x0 >= 1) {
      flush();
      emit(x0, x1, event, 1);
      ++at;
      continue;
    }
    const first = Math.max(0, Math.floor(x0));
    const last = Math.max(first + 1, Math.min(width, Math.ceil(x1)));
    if (run_count > 0 && first <= run_to) {
      run_to = Math.max(run_to, last);
    } else {
      flush();
      run_from = first;
      run_to = last;
      run_event = event;
    }
    // All that ends before the pixel does adds nothing to it.
    const next = firstEndingFrom(lane, start_ns + (first + 1) * ns_per_pixel, at + 1);
    run_count += next - at;
    at = next;
  }
  flush();
}

/** The event of a lane at a time, or one within `slack_ns` of it; -1 when there is none. */
export function eventAt(track: TrackEvents, lane: Lane, time_ns: number, slack_ns: number): number {
  let best = -1;
  let distance = slack_ns;
  for (let at = firstEndingAfter(lane, time_ns - slack_ns); at < lane.index.length; ++at) {
    const event = lane.index[at]!;
    const from = track.start_ns[event]!;
    if (from > time_ns + slack_ns) break;
    const to = from + track.duration_ns[event]!;
    if (from <= time_ns && time_ns < to) return event;
    const away = from > time_ns ? from - time_ns : time_ns - to;
    if (away <= distance) {
      distance = away;
      best = event;
    }
  }
  return best;
}

/** The first event of a track, in order of start, that begins after `time_ns` (or the last before it, backwards). */
export function neighbour(track: TrackEvents, time_ns: number, forward: boolean, keep?: (event: number) => boolean): number {
  let low = 0;
  let high = track.start_ns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (forward ? track.start_ns[middle]! > time_ns : track.start_ns[middle]! >= time_ns) high = middle;
    else low = middle + 1;
  }
  if (forward) {
    for (let i = low; i < track.start_ns.length; ++i) if (!keep || keep(i)) return i;
  } else {
    for (let i = low - 1; i >= 0; --i) if (!keep || keep(i)) return i;
  }
  return -1;
}
