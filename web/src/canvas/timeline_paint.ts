import { inkOn, type Rgb } from '../colors';
import type { TimelineLevel, TrackEvents } from '../data/types';
import { fitText, SMALL_FONT } from './drawing';
import { laneIndex, visibleRuns, type Lane } from './events';
import { addShares, CLASS_COUNT, pixelBuckets } from './lod';
import { mix, pixel, type Palette } from './palette';
import { LEVEL_HEIGHT, type Line } from './timeline_layout';
import type { TimeWindow } from './window';

/** Below this height in pixels a rank's line has one colour: of what it did most. */
const BANDS_FROM = 7;
const NO_CLASS = CLASS_COUNT;
const SHADES = 4;

/** Colours of shares and of events in one theme. */
export class TimelineInk {
  /** share (0..255) -> pixel, by class. */
  readonly shares: Uint32Array[];
  private readonly fills: { fill: string; ink: string }[][];

  constructor(palette: Palette) {
    this.shares = palette.class_rgb.map((color) => Uint32Array.from({ length: 256 }, (_, share) =>
      share === 0 ? 0 : pixel(mix(palette.background_rgb, color, 0.18 + (0.82 * share) / 255))));
    this.fills = palette.class_rgb.map((color) => Array.from({ length: SHADES }, (_, shade) => {
      const tone: Rgb = mix(color, palette.background_rgb, shade * 0.08);
      return { fill: `rgb(${tone.join(',')})`, ink: inkOn(tone) };
    }));
  }

  /** Events of one name have one shade of their class's colour everywhere. */
  event(kind: number, name: number): { fill: string; ink: string } {
    return this.fills[kind < CLASS_COUNT ? kind : NO_CLASS]![Math.imul(name + 1, 0x9e3779b1) >>> 30]!;
  }
}

/**
 * Fills `out` (width × height pixels) with the shares of the rank lines that `wanted` names: from the top band to the
 * lowest the classes, the fuller the busier. Ranks that share a line of pixels show the busiest of them.
 */
export function paintShares(
  out: Uint32Array, width: number, height: number, scale: number, lines: readonly Line[], first: number, scroll: number,
  level: TimelineLevel, window: TimeWindow, bands: readonly { from: number; to: number }[], ink: TimelineInk, wanted: (line: Line) => boolean,
): void {
  const ns_per_pixel = (window.end_ns - window.start_ns) / width;
  const spans = pixelBuckets(level, window.start_ns, ns_per_pixel, width);
  const shares = new Uint8Array(width * CLASS_COUNT);
  const row = new Uint32Array(width);
  let pending_from = -1;
  let pending_to = -1;
  const flush = () => {
    if (pending_from < 0) return;
    const from = Math.max(0, pending_from);
    const to = Math.min(height, pending_to);
    if (pending_to - pending_from < BANDS_FROM) {
      for (let x = 0, at = 0; x < width; ++x, at += CLASS_COUNT) {
        let most = 0;
        for (let k = 1; k < CLASS_COUNT; ++k) if (shares[at + k]! > shares[at + most]!) most = k;
        row[x] = ink.shares[most]![shares[at + most]!]!;
      }
      for (let y = from; y < to; ++y) out.set(row, y * width);
    } else {
      const pad = 1;
      const inner = pending_to - pending_from - 2 * pad;
      bands.forEach((band, k) => {
        const begin = pending_from + pad + Math.round(band.from * inner);
        const end = pending_from + pad + Math.round(band.to * inner);
        if (end <= begin) return;
        const colors = ink.shares[k]!;
        for (let x = 0, at = k; x < width; ++x, at += CLASS_COUNT) row[x] = colors[shares[at]!]!;
        for (let y = Math.max(0, begin); y < Math.min(height, end); ++y) out.set(row, y * width);
      });
    }
    pending_from = -1;
    shares.fill(0);
  };
  for (let at = first; at < lines.length; ++at) {
    const line = lines[at]!;
    const from = Math.floor((line.y - scroll) * scale);
    if (from >= height) break;
    if (line.kind !== 'rank' || !wanted(line)) continue;
    const to = Math.max(from + 1, Math.floor((line.y + line.height - scroll) * scale));
    if (from !== pending_from || to !== pending_to) flush();
    pending_from = from;
    pending_to = to;
    addShares(level, line.rank_index, spans, shares);
  }
  flush();
}

const lanes_of = new WeakMap<TrackEvents, Lane[]>();

export function lanesOf(track: TrackEvents): Lane[] {
  let lanes = lanes_of.get(track);
  if (!lanes) lanes_of.set(track, (lanes = laneIndex(track)));
  return lanes;
}

const matches_of = new WeakMap<TrackEvents, { names: Uint8Array; lanes: Lane[] }>();

/** Only the events whose name is marked in `names`. */
export function matchesOf(track: TrackEvents, names: Uint8Array): Lane[] {
  let found = matches_of.get(track);
  if (found?.names !== names) {
    matches_of.set(track, (found = { names, lanes: laneIndex(track, (event) => names[track.name[event]!] === 1) }));
  }
  return found!.lanes;
}

export interface EventStyle {
  draw: CanvasRenderingContext2D;
  palette: Palette;
  ink: TimelineInk;
  window: TimeWindow;
  left: number;
  width: number;
  /** Marked names stand out, others step back; null: no search. */
  matches: Uint8Array | null;
  nameText: (name: number) => string;
}

function paintLane(style: EventStyle, track: TrackEvents, lane: Lane, y: number, height: number, texts: boolean, marked: boolean): void {
  const { draw, window, left, width } = style;
  visibleRuns(track, lane, window.start_ns, (window.end_ns - window.start_ns) / width, width, (x0, x1, event, count) => {
    const from = Math.max(0, x0);
    const to = Math.min(width, x1);
    const tone = style.ink.event(track.class[event]!, track.name[event]!);
    draw.fillStyle = tone.fill;
    // A hair between neighbours, where there is room for it.
    draw.fillRect(left + from, y, Math.max(1, to - from - (to - from > 3 ? 0.75 : 0)), height);
    if (marked) {
      draw.strokeStyle = style.palette.text;
      draw.strokeRect(left + from + 0.5, y + 0.5, Math.max(1, to - from - 1.5), height - 1);
    }
    if (!texts || count > 1 || to - from < 30) return;
    const text = fitText(draw, style.nameText(track.name[event]!), to - from - 7);
    if (text === '') return;
    draw.fillStyle = tone.ink;
    draw.fillText(text, left + from + 4, y + height / 2 + 0.5);
  });
}

/** The events of a track, one row per level, from `y` down. */
export function paintTrack(style: EventStyle, track: TrackEvents, y: number): void {
  const { draw } = style;
  draw.font = SMALL_FONT;
  draw.textAlign = 'left';
  draw.lineWidth = 1;
  draw.globalAlpha = style.matches ? 0.28 : 1;
  lanesOf(track).forEach((lane, level) => paintLane(style, track, lane, y + 2 + level * LEVEL_HEIGHT, LEVEL_HEIGHT - 1, true, false));
  draw.globalAlpha = 1;
  if (style.matches) {
    matchesOf(track, style.matches).forEach((lane, level) => paintLane(style, track, lane, y + 2 + level * LEVEL_HEIGHT, LEVEL_HEIGHT - 1, true, true));
  }
}

/** The tracks that a rank's own line is made of: the device's, or the operators' where there is none. */
export function summaryTracks(tracks: readonly TrackEvents[]): readonly TrackEvents[] {
  const device = tracks.filter((track) => track.lane === 'device');
  return device.length > 0 ? device : tracks.filter((track) => track.lane === 'operators');
}

const by_class = new WeakMap<TrackEvents, (Lane | null)[]>();

/** Outermost events of a track by class, for the rank's own line. */
function classLanes(track: TrackEvents): (Lane | null)[] {
  let lanes = by_class.get(track);
  if (!lanes) {
    lanes = Array.from({ length: CLASS_COUNT }, (_, kind) => {
      // A device's streams may hold events side by side on several levels; of nested calls the outermost of a class counts.
      const all = laneIndex({ ...track, level_count: 1, level: new Uint8Array(track.level.length) }, (event) => track.class[event] === kind)[0]!;
      return all.index.length > 0 ? all : null;
    });
    by_class.set(track, lanes);
  }
  return lanes;
}

/** A rank's own line made of its events instead of shares. */
export function paintSummary(style: EventStyle, tracks: readonly TrackEvents[], bands: readonly { from: number; to: number }[], y: number, height: number): void {
  style.draw.font = SMALL_FONT;
  style.draw.textAlign = 'left';
  style.draw.globalAlpha = style.matches ? 0.28 : 1;
  for (const track of summaryTracks(tracks)) {
    classLanes(track).forEach((lane, kind) => {
      if (!lane) return;
      const begin = y + 1 + bands[kind]!.from * (height - 2);
      const tall = (bands[kind]!.to - bands[kind]!.from) * (height - 2);
      if (tall > 0) paintLane(style, track, lane, begin, Math.max(1, tall - 0.5), tall >= 11, false);
    });
  }
  style.draw.globalAlpha = 1;
  if (!style.matches) return;
  for (const track of summaryTracks(tracks)) {
    for (const lane of matchesOf(track, style.matches)) paintLane(style, track, lane, y + 2, height - 4, false, true);
  }
}
