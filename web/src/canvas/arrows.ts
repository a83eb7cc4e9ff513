import type { SpanLinks, TrackEvents } from '../data/types';
import type { Palette } from './palette';
import { LEVEL_HEIGHT, type Line } from './timeline_layout';

/** One end of an arrow: a span. */
export interface ArrowEnd {
  rank_index: number;
  start_ns: number;
  /** Place in the page's names; -1: no event of the page has it. */
  name: number;
  /** Where its event lies; operators where it is not said. */
  lane?: TrackEvents['lane'];
}

/** From who called to who was called. */
export interface Arrow {
  caller: ArrowEnd;
  called: ArrowEnd;
}

/** Times of events may be cut to so much. */
const CUT_NS = 100;
/** More in view than this are a thicket: only those of the chosen event are drawn. */
const MOST_DRAWN = 400;
const HEAD = 5;

export function arrowsOf(links: SpanLinks, names: readonly string[]): Arrow[] {
  const places = new Map(names.map((name, at) => [name, at]));
  const place = links.names.map((name) => places.get(name) ?? -1);
  return links.rows.map(([from, from_ns, from_name, to, to_ns, to_name]) => ({
    caller: { rank_index: from, start_ns: from_ns, name: place[from_name] ?? -1 },
    called: { rank_index: to, start_ns: to_ns, name: place[to_name] ?? -1 },
  }));
}

export const isEnd = (end: ArrowEnd, rank_index: number, start_ns: number, name: number): boolean =>
  end.rank_index === rank_index && end.name === name && Math.abs(end.start_ns - start_ns) < CUT_NS;

/** The event that an end is, among a rank's tracks; null where the page has left it out. */
export function eventOf(tracks: readonly TrackEvents[], end: ArrowEnd): { track: number; event: number } | null {
  for (let at = 0; at < tracks.length; ++at) {
    const track = tracks[at]!;
    if (track.lane !== (end.lane ?? 'operators')) continue;
    let low = 0;
    let high = track.start_ns.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track.start_ns[middle]! <= end.start_ns - CUT_NS) low = middle + 1;
      else high = middle;
    }
    for (let event = low; event < track.start_ns.length && track.start_ns[event]! < end.start_ns + CUT_NS; ++event) {
      if (track.name[event] === end.name) return { track: at, event };
    }
  }
  return null;
}

const endOf = (rank_index: number, track: TrackEvents, event: number): ArrowEnd => ({ rank_index, start_ns: track.start_ns[event]!, name: track.name[event]!, lane: track.lane });

/** From a call to the device events that it launched, or from the call that launched a device event, for the event chosen. */
export function launchArrows(rank_index: number, tracks: readonly TrackEvents[], track: number, event: number): Arrow[] {
  const chosen = tracks[track];
  if (!chosen || event >= chosen.name.length) return [];
  if (chosen.launch) {
    const place = chosen.launch[event]!;
    const from = place < 0 ? undefined : tracks.find((each) => each.first <= place && place < each.first + each.name.length);
    return from ? [{ caller: endOf(rank_index, from, place - from.first), called: endOf(rank_index, chosen, event) }] : [];
  }
  if (chosen.lane !== 'runtime') return [];
  const place = chosen.first + event;
  return tracks.flatMap((each) => {
    const arrows: Arrow[] = [];
    each.launch?.forEach((launch, at) => {
      if (launch === place) arrows.push({ caller: endOf(rank_index, chosen, event), called: endOf(rank_index, each, at) });
    });
    return arrows;
  });
}

export interface ArrowScene {
  draw: CanvasRenderingContext2D;
  palette: Palette;
  lines: readonly Line[];
  /** Ranks of which a track is drawn. */
  open: ReadonlySet<number>;
  tracksOf: (rank: number) => readonly TrackEvents[] | undefined;
  /** The time in view. */
  start_ns: number;
  end_ns: number;
  xOf: (time_ns: number) => number;
  /** Top of a line on the canvas. */
  yOf: (line: Line) => number;
  chosen: (end: ArrowEnd) => boolean;
}

/** Where an end is drawn: on its event's row where its track is there, else on the rank's own line. */
function placeOf(scene: ArrowScene, end: ArrowEnd): { y: number; until_ns: number } | null {
  const tracks = scene.open.has(end.rank_index) ? scene.tracksOf(end.rank_index) : undefined;
  const found = tracks && eventOf(tracks, end);
  const lineOf = (at: number) => scene.lines.find((each) => each.rank_index === end.rank_index && each.track === at);
  const own = found ? lineOf(found.track) : undefined;
  const line = own ?? lineOf(-1);
  if (!line) return null;
  if (!own || !found) return { y: scene.yOf(line) + line.height / 2, until_ns: end.start_ns };
  const track = tracks[found.track]!;
  const level = Math.min(track.level[found.event]!, track.level_count - 1);
  return { y: scene.yOf(line) + 2 + (level + 0.5) * LEVEL_HEIGHT, until_ns: track.start_ns[found.event]! + track.duration_ns[found.event]! };
}

/** The arrows in view that touch an open rank. A call leaves its caller when the called one begins, or as soon before as the caller was still there. */
export function arrowsInView(scene: ArrowScene, arrows: readonly Arrow[]): { arrow: Arrow; from: [number, number]; to: [number, number]; chosen: boolean }[] {
  const drawn: { arrow: Arrow; from: [number, number]; to: [number, number]; chosen: boolean }[] = [];
  for (const arrow of arrows) {
    const { caller, called } = arrow;
    if (called.start_ns < scene.start_ns || caller.start_ns > scene.end_ns) continue;
    if (!scene.open.has(caller.rank_index) && !scene.open.has(called.rank_index)) continue;
    const from = placeOf(scene, caller);
    const to = from && placeOf(scene, called);
    if (!from || !to) continue;
    const leaves_ns = Math.max(caller.start_ns, Math.min(called.start_ns, from.until_ns));
    drawn.push({ arrow, from: [scene.xOf(leaves_ns), from.y], to: [scene.xOf(called.start_ns), to.y], chosen: scene.chosen(caller) || scene.chosen(called) });
  }
  return drawn.length <= MOST_DRAWN ? drawn : drawn.filter((each) => each.chosen);
}

export function paintArrows(scene: ArrowScene, arrows: readonly Arrow[]): void {
  const { draw, palette } = scene;
  draw.save();
  for (const { from: [x0, y0], to: [x1, y1], chosen } of arrowsInView(scene, arrows)) {
    draw.strokeStyle = draw.fillStyle = chosen ? palette.focus : palette.text;
    draw.lineWidth = chosen ? 2 : 1;
    draw.globalAlpha = chosen ? 1 : 0.75;
    const bend = Math.max(8, Math.min(60, (x1 - x0) / 2));
    const straight = x1 - x0 < 2 * HEAD;
    draw.beginPath();
    draw.moveTo(x0, y0);
    if (straight) draw.lineTo(x1, y1);
    else draw.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - HEAD, y1);
    draw.stroke();
    // The head points along the line's end: down or up where it is straight, to the right where it bends.
    const side = y1 > y0 ? -HEAD : HEAD;
    draw.beginPath();
    draw.moveTo(x1, y1);
    if (straight) {
      draw.lineTo(x1 - HEAD * 0.7, y1 + side);
      draw.lineTo(x1 + HEAD * 0.7, y1 + side);
    } else {
      draw.lineTo(x1 - HEAD, y1 - HEAD * 0.7);
      draw.lineTo(x1 - HEAD, y1 + HEAD * 0.7);
    }
    draw.fill();
  }
  draw.restore();
}
