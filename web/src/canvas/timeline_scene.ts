import { CLASS_LABELS } from '../colors';
import type { ChosenCollective } from '../data/collective_of';
import { TIMELINE_CLASSES, type TimelineLevel, type TrackEvents } from '../data/types';
import { duration, percent } from '../numbers';
import { isEnd, type Arrow } from './arrows';
import { meanShares } from './lod';
import type { Line, Pin } from './timeline_layout';
import { tickText, type TimeWindow } from './window';

export interface EventRef {
  rank_index: number;
  track: number;
  event: number;
}

export const MAP_HEIGHT = 34;
export const RULER = 20;
/** Of the first line. */
export const TOP = MAP_HEIGHT + RULER + 4;
/** Lines are drawn from single events from this height on. */
export const DETAIL_FROM = 10;
/** Lines have a pin to be clicked on from this height on. */
export const PIN_FROM = 14;
export const PIN_WIDTH = 18;

/** What the timeline shows, and where: all that is painted, and said, comes from it. Places in CSS pixels. */
export interface Scene {
  levels: readonly TimelineLevel[];
  /** Classes that occur, and the part of a line's height that each has. */
  present: readonly boolean[];
  bands: readonly { from: number; to: number }[];
  /** The whole run in little. */
  map: Uint8Array;
  span_ns: number;
  window: TimeWindow;
  ns_per_pixel: number;
  width: number;
  /** The plot is right of it. */
  left: number;
  plot_width: number;
  plot_height: number;
  /** Height of all lines, and how much of it is scrolled away. */
  content: number;
  scroll: number;
  /** Pinned ones come first. */
  lines: readonly Line[];
  pinned_count: number;
  pinned_height: number;
  /** First line that is in view below the pinned ones. */
  first: number;
  rank_height: number;
  /** Whether lines are drawn from single events. */
  detailed: boolean;
  has_events: boolean;
  open: ReadonlySet<number>;
  pins: readonly Pin[];
  /** Where the cursor is. */
  row: number;
  cursor_track: number;
  tracksOf: (rank: number) => readonly TrackEvents[] | undefined;
  names: readonly string[];
  /** For a bar: short. */
  nameText: (name: number) => string;
  rankLabel: (rank: number) => string;
  matches: Uint8Array | null;
  selected: EventRef | null;
  arrows: readonly Arrow[];
  /** From or to the chosen event. */
  launches: readonly Arrow[];
  collective: ChosenCollective | null;
  marked: TimeWindow | null;
  /** What is being framed, from x to x. */
  frame: [number, number] | null;
}

export const xOf = (scene: Scene, time_ns: number) => scene.left + (time_ns - scene.window.start_ns) / scene.ns_per_pixel;
export const yOf = (scene: Scene, line: Line) => TOP + line.y - (line.pinned ? 0 : scene.scroll);

/** The chosen event, as arrows know theirs. */
export function chosenEvent({ selected, tracksOf }: Scene): { rank_index: number; start_ns: number; name: number } | null {
  const track = selected && tracksOf(selected.rank_index)?.[selected.track];
  return selected && track && selected.event < track.name.length
    ? { rank_index: selected.rank_index, start_ns: track.start_ns[selected.event]!, name: track.name[selected.event]! }
    : null;
}

export function describeEvent({ tracksOf, names, rankLabel, ns_per_pixel, span_ns }: Scene, ref: EventRef): string {
  const track = tracksOf(ref.rank_index)?.[ref.track];
  if (!track || ref.event >= track.name.length) return '';
  const kind = TIMELINE_CLASSES[track.class[ref.event]!];
  return `${names[track.name[ref.event]!] ?? '?'}: ${duration(track.duration_ns[ref.event])}${kind ? `, ${CLASS_LABELS[kind]}` : ''}; ` +
    `${rankLabel(ref.rank_index)}, ${track.label}, at ${tickText(track.start_ns[ref.event]!, Math.max(1, ns_per_pixel), span_ns)}`;
}

/** Whom the chosen event called, and who called it. */
function describeArrows(scene: Scene): string {
  const event = chosenEvent(scene);
  if (!event) return '';
  const named = (end: Arrow['caller']) => `${scene.names[end.name] ?? '?'} of ${scene.rankLabel(end.rank_index)}`;
  const callers = scene.arrows.filter(({ called }) => isEnd(called, event.rank_index, event.start_ns, event.name)).map(({ caller }) => named(caller));
  const called = scene.arrows.filter(({ caller }) => isEnd(caller, event.rank_index, event.start_ns, event.name)).map((arrow) => named(arrow.called));
  return (callers.length > 0 ? `; called by ${callers.join(', ')}` : '') +
    (called.length > 0 ? `; calls ${called.slice(0, 3).join(', ')}${called.length > 3 ? ` and ${called.length - 3} more` : ''}` : '');
}

function describeLaunches({ launches, selected, tracksOf, nameText }: Scene): string {
  const [first] = launches;
  if (!first || !selected) return '';
  const after = duration(Math.max(0, first.called.start_ns - first.caller.start_ns));
  return tracksOf(selected.rank_index)?.[selected.track]?.launch
    ? `; launched ${after} before by ${nameText(first.caller.name)}`
    : `; launches ${nameText(first.called.name)} ${after} later${launches.length > 1 ? ` and ${launches.length - 1} more` : ''}`;
}

function describeCollective({ collective, rankLabel }: Scene): string {
  if (!collective) return '';
  const { instance, members } = collective;
  const waits = members.filter((member) => member.wait_ns !== null).sort((a, b) => b.wait_ns! - a.wait_ns!);
  return `; ${instance.name} of ${members.length} ranks` +
    (instance.last_rank_index === null ? '' : `, ${rankLabel(instance.last_rank_index)} came last`) +
    (waits[0] && waits[0].wait_ns! > 0 ? `, ${rankLabel(waits[0].rank_index)} waited ${duration(waits[0].wait_ns)}` : '');
}

export function describeShares({ levels, present, rankLabel }: Scene, rank: number, start_ns: number, end_ns: number): string {
  const shares = meanShares(levels, rank, start_ns, end_ns);
  const parts = TIMELINE_CLASSES.flatMap((name, k) => (present[k] ? [`${CLASS_LABELS[name]} ${percent(shares[k])}`] : []));
  return `${rankLabel(rank)}: busy with ${parts.join(', ') || 'nothing'}`;
}

/** The chosen event, else the line that the cursor is on. */
export function describe(scene: Scene): string {
  const { selected, row, cursor_track, window } = scene;
  if (selected) return describeEvent(scene, selected) + describeArrows(scene) + describeLaunches(scene) + describeCollective(scene);
  const track = scene.tracksOf(row)?.[cursor_track];
  if (cursor_track >= 0 && track) return `${scene.rankLabel(row)}, ${track.label}: ${track.name.length} events`;
  return `${describeShares(scene, row, window.start_ns, window.end_ns)} in view`;
}
