import { ColumnBlock } from './columns';
import { TIMELINE_CLASSES } from './types';
import type { TimelineLevel, TrackEvents } from './types';

/** Levels of detail, coarsest first. */
export function readTimeline(bytes: Uint8Array): TimelineLevel[] {
  const block = new ColumnBlock<{ rank_count: number; levels: { bucket_count: number; bucket_ns: number }[] }>(bytes);
  return block.header.levels.map((level, i) => {
    const shares = block.bytes(`level-${i}`);
    if (shares.length !== block.header.rank_count * level.bucket_count * TIMELINE_CLASSES.length) {
      throw new Error('The timeline of this page is damaged.');
    }
    return { ...level, shares };
  });
}

/** Texts by number. */
export function readNames(bytes: Uint8Array): string[] {
  const block = new ColumnBlock<unknown>(bytes);
  const text = block.bytes('text');
  const decoder = new TextDecoder();
  const names: string[] = [];
  let at = 0;
  for (const length of block.whole('length')) {
    names.push(decoder.decode(text.subarray(at, at + length)));
    at += length;
  }
  return names;
}

interface EventsHeader {
  unit_ns: number;
  shortest_event_ns: number;
  tracks: { lane: TrackEvents['lane']; label: string; process_id: number; thread_id: number; count: number; level_count: number; sequential: boolean }[];
}

const ESCAPE = 0xffffffff;

/** Places of the calls that launched device events; -1: none. */
function readLaunches(packed: Uint32Array): Int32Array {
  const places = new Int32Array(packed.length);
  let place = 0;
  packed.forEach((value, at) => {
    if (value === 0) {
      places[at] = -1;
      return;
    }
    const zigzag = value - 1;
    place += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
    places[at] = place;
  });
  return places;
}

/** The tracks of one rank. */
export function readEvents(bytes: Uint8Array): TrackEvents[] {
  const block = new ColumnBlock<EventsHeader>(bytes);
  const gap = block.whole('start');
  const long_gap = block.floats('long_start');
  const length = block.whole('duration');
  const long_length = block.floats('long_duration');
  const name = block.whole('name');
  const kind = block.bytes('class').slice();
  const level = block.bytes('level').slice();
  const launch = readLaunches(block.whole('launch'));
  const unit_ns = block.header.unit_ns;
  const tracks: TrackEvents[] = [];
  let first = 0;
  let next_gap = 0;
  let next_length = 0;
  let next_launch = 0;
  for (const track of block.header.tracks) {
    const end = first + track.count;
    const start_ns = new Float64Array(track.count);
    const wide = new Float64Array(track.count);
    let longest = 0;
    let now = 0;
    for (let i = first; i < end; ++i) {
      now += gap[i] === ESCAPE ? long_gap[next_gap++]! : gap[i]!;
      const units = length[i] === ESCAPE ? long_length[next_length++]! : length[i]!;
      start_ns[i - first] = now * unit_ns;
      wide[i - first] = units * unit_ns;
      longest = Math.max(longest, units * unit_ns);
      if (track.sequential) now += units;
    }
    const launches = track.lane === 'device' ? launch.slice(next_launch, next_launch + track.count) : null;
    if (launches) next_launch += track.count;
    const duration_ns = longest <= ESCAPE ? Uint32Array.from(wide) : wide;
    tracks.push({
      lane: track.lane, label: track.label, process_id: track.process_id, thread_id: track.thread_id, level_count: track.level_count, start_ns, duration_ns,
      name: name.subarray(first, end), class: kind.subarray(first, end), level: level.subarray(first, end), launch: launches, first,
    });
    first = end;
  }
  return tracks;
}

/** Bytes that the tracks take when decoded. */
export function eventsBytes(tracks: TrackEvents[]): number {
  return tracks.reduce((sum, track) => sum + track.start_ns.byteLength + track.duration_ns.byteLength + 6 * track.name.length + (track.launch?.byteLength ?? 0), 0);
}
