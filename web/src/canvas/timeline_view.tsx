import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { CLASS_LABELS } from '../colors';
import { TIMELINE_CLASSES, type PageSource, type TimelineLevel, type TrackEvents } from '../data/types';
import { duration, percent, shortName } from '../numbers';
import { useWidth } from '../parts/measure';
import { Tooltip } from '../parts/tooltip';
import type { ChosenCollective } from '../data/collective_of';
import { isEnd, launchArrows, paintArrows, type Arrow } from './arrows';
import { Drawing, fitText, SMALL_FONT, type Pointer } from './drawing';
import { eventAt, neighbour } from './events';
import { chooseLevel, classesPresent, meanShares, overviewLine } from './lod';
import type { Palette } from './palette';
import { useRankEvents } from './rank_events';
import { classBands, firstLineAt, labelledLines, layoutLines, LEVEL_HEIGHT, RANK_HEIGHT, type Line } from './timeline_layout';
import { lanesOf, paintShares, paintSummary, paintTrack, summaryTracks, TimelineInk } from './timeline_paint';
import { panWindow, tickText, timeTicks, zoomWindow, clampWindow, type TimeWindow } from './window';

export interface EventRef {
  rank_index: number;
  track: number;
  event: number;
}

export interface TimelineViewProps {
  source: PageSource;
  levels: readonly TimelineLevel[];
  span_ns: number;
  /** In the order they are drawn. */
  ranks: readonly number[];
  rankLabel: (rank: number) => string;
  has_events: boolean;
  names: readonly string[];
  window: TimeWindow;
  onWindow: (window: TimeWindow) => void;
  open: ReadonlySet<number>;
  onOpen: (rank: number) => void;
  /** The rank that the cursor is on. */
  row: number;
  onRow: (rank: number) => void;
  matches: Uint8Array | null;
  /** Drawn where they touch an open rank. */
  arrows: readonly Arrow[];
  tall: boolean;
  /** What the chosen event is, where it is a collective: drawn from rank to rank. */
  collective: ChosenCollective | null;
  /** A span of time that the reader has marked; how it is marked and let go. */
  marked: TimeWindow | null;
  onMark: (span: TimeWindow | null) => void;
  selected: EventRef | null;
  onSelect: (event: EventRef | null) => void;
  /** Tracks of the cursor's rank, as soon as they are unpacked. */
  onTracks: (rank: number, tracks: readonly TrackEvents[] | null) => void;
  label: string;
}

const MAP_HEIGHT = 34;
const RULER = 20;
const TOP = MAP_HEIGHT + RULER + 4;
const MOST_HEIGHT = 540;
/** So many ranks at most are drawn from single events at a time; more are too low to see any. */
const MOST_DETAILED = 48;
const DETAIL_FROM = 10;

/** All ranks over time: a small picture of the whole run, a ruler, and a line per rank that opens into its tracks. */
export function TimelineView(props: TimelineViewProps) {
  const { levels, span_ns, ranks, window, open } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const [scroll_wanted, setScroll] = useState(0);
  const [cursor_track, setCursorTrack] = useState(-1);
  const [hover, setHover] = useState<{ x: number; y: number; text: string } | null>(null);
  const [frame, setFrame] = useState<[number, number] | null>(null);
  const [marking, setMarking] = useState<TimeWindow | null>(null);
  const left = Math.round(Math.min(170, width * 0.22));
  const plot_width = Math.max(60, width - left - 4);
  const ns_per_pixel = (window.end_ns - window.start_ns) / plot_width;
  const finest = levels[levels.length - 1];
  const rank_height = props.tall ? RANK_HEIGHT : Math.max(0.4, Math.min(RANK_HEIGHT, MOST_HEIGHT / Math.max(1, ranks.length)));
  const detailed = props.has_events && rank_height >= DETAIL_FROM && (!finest || ns_per_pixel < finest.bucket_ns);
  // The lines in view decide what is unpacked, and what is unpacked decides the lines: those of the frame before serve.
  const in_view = useRef<number[]>([]);
  const wanted = props.has_events ? [...new Set([...open, props.row, ...(detailed ? in_view.current : [])])].filter((rank) => ranks.includes(rank)) : [];
  const tracksOf = useRankEvents(props.source, wanted);
  const known = [...open].map((rank) => (tracksOf(rank) ? rank : -1)).join(',');
  const { lines, height: content } = useMemo(() => layoutLines(ranks, open, tracksOf, rank_height), [ranks, open, known, rank_height]);
  const plot_height = Math.round(Math.max(Math.min(ranks.length * rank_height, 60), Math.min(MOST_HEIGHT, content)));
  const scroll = Math.max(0, Math.min(scroll_wanted, content - plot_height));
  const first = firstLineAt(lines, scroll);
  const visible: number[] = [];
  for (let at = first; at < lines.length && lines[at]!.y < scroll + plot_height && visible.length < MOST_DETAILED; ++at) {
    if (lines[at]!.kind === 'rank') visible.push(lines[at]!.rank_index);
  }
  const [, again] = useState(0);
  useEffect(() => {
    if (detailed && visible.join(',') !== in_view.current.join(',')) {
      in_view.current = visible;
      again((n) => n + 1);
    }
  });
  // The cursor's rank is in view when the lines become others, such as from a link.
  useEffect(() => {
    const line = lines.find((each) => each.rank_index === props.row);
    if (line && (line.y < scroll || line.y + Math.min(line.height + 60, plot_height) > scroll + plot_height)) setScroll(Math.max(0, line.y - plot_height * 0.15));
  }, [known, ranks, rank_height]);
  const row_tracks = tracksOf(props.row);
  useEffect(() => props.onTracks(props.row, row_tracks ?? null), [props.row, row_tracks]);

  const chosen_tracks = props.selected && tracksOf(props.selected.rank_index);
  const launches = useMemo(
    () => (props.selected && chosen_tracks ? launchArrows(props.selected.rank_index, chosen_tracks, props.selected.track, props.selected.event) : []),
    [props.selected, chosen_tracks],
  );
  const present = useMemo(() => classesPresent(levels), [levels]);
  const bands = useMemo(() => classBands(present), [present]);
  const map = useMemo(() => overviewLine(levels, span_ns, plot_width, props.source ? levelRanks(levels) : 0), [levels, span_ns, plot_width]);
  const ink = useRef<{ palette: Palette; ink: TimelineInk } | null>(null);
  const map_image = useRef<{ map: Uint8Array; tones: TimelineInk; canvas: HTMLCanvasElement } | null>(null);
  const buffer = useRef<{ canvas: HTMLCanvasElement; data: ImageData; pixels: Uint32Array } | null>(null);
  const x_of = (time_ns: number) => left + (time_ns - window.start_ns) / ns_per_pixel;
  const texts = useRef(new Map<number, string>());
  const nameText = (name: number) => {
    let text = texts.current.get(name);
    if (text === undefined) texts.current.set(name, (text = shortName(props.names[name] ?? '')));
    return text;
  };

  const paint = (draw: CanvasRenderingContext2D, palette: Palette, ratio: number) => {
    if (ink.current?.palette !== palette) ink.current = { palette, ink: new TimelineInk(palette) };
    const tones = ink.current.ink;
    paintMap(draw, palette, tones);
    paintRuler(draw, palette);
    draw.save();
    draw.beginPath();
    draw.rect(0, TOP, width, plot_height);
    draw.clip();
    draw.fillStyle = palette.panel;
    draw.fillRect(left, TOP, plot_width, plot_height);
    // Without a device a rank's line says what its operators did for the job, which only the shares know.
    const single = (line: Line) => detailed && line.height >= DETAIL_FROM && (tracksOf(line.rank_index)?.some((track) => track.lane === 'device') ?? false);
    // Very many low lines are as well seen from half as many buckets, and are drawn in half the time.
    const level = chooseLevel(levels, rank_height < DETAIL_FROM / 2 ? ns_per_pixel * 2 : ns_per_pixel);
    if (level) {
      const scale = plot_width * plot_height * ratio * ratio > 1_500_000 ? 1 : ratio;
      const w = Math.max(1, Math.round(plot_width * scale));
      const h = Math.max(1, Math.round(plot_height * scale));
      let image = buffer.current;
      if (!image || image.canvas.width !== w || image.canvas.height !== h) {
        const canvas = document.createElement('canvas');
        canvas.width = w;
        canvas.height = h;
        const data = new ImageData(w, h);
        image = buffer.current = { canvas, data, pixels: new Uint32Array(data.data.buffer) };
      }
      image.pixels.fill(0);
      paintShares(image.pixels, w, h, scale, lines, first, scroll, level, window, bands, tones, (line) => !single(line));
      image.canvas.getContext('2d')!.putImageData(image.data, 0, 0);
      draw.imageSmoothingEnabled = false;
      draw.drawImage(image.canvas, left, TOP, plot_width, plot_height);
    }
    const style = { draw, palette, ink: tones, window, left, width: plot_width, matches: props.matches, nameText };
    const here_at = lines.findIndex((line) => line.rank_index === props.row && line.track === cursor_track);
    const labelled = labelledLines(lines, first, plot_height + scroll, here_at);
    for (let at = first; at < lines.length; ++at) {
      const line = lines[at]!;
      const y = TOP + line.y - scroll;
      if (y >= TOP + plot_height) break;
      const tracks = tracksOf(line.rank_index);
      const here = at === here_at;
      if (line.kind === 'track' && tracks) {
        draw.save();
        draw.beginPath();
        draw.rect(left, y, plot_width, line.height);
        draw.clip();
        paintTrack(style, tracks[line.track]!, y);
        draw.restore();
      } else if (single(line) && tracks) {
        draw.save();
        draw.beginPath();
        draw.rect(left, y, plot_width, line.height);
        draw.clip();
        paintSummary(style, tracks, bands, y, line.height);
        draw.restore();
      }
      if (line.height >= DETAIL_FROM) {
        draw.fillStyle = palette.grid;
        draw.fillRect(0, y + line.height - 0.5, width, 0.5);
      }
      if (here || (line.rank_index === props.row && line.kind === 'rank')) {
        draw.fillStyle = here ? palette.select : 'transparent';
        draw.fillRect(0, y, left - 2, Math.max(2, line.height));
        draw.fillStyle = palette.focus;
        draw.fillRect(0, y, 3, Math.max(2, line.height));
      }
      if (labelled.has(at)) {
        const middle = y + Math.min(line.height, line.kind === 'track' ? 20 : Infinity) / 2;
        draw.font = SMALL_FONT;
        draw.textAlign = 'left';
        draw.fillStyle = line.kind === 'rank' ? palette.text : palette.muted;
        if (line.kind === 'rank') {
          const mark = props.has_events ? (open.has(line.rank_index) ? '▾ ' : '▸ ') : '';
          draw.fillText(fitText(draw, mark + props.rankLabel(line.rank_index), left - 12), 8, Math.max(TOP + 6, middle));
        } else if (tracks) {
          draw.fillText(fitText(draw, tracks[line.track]!.label, left - 30), 24, middle);
        }
      }
    }
    const chosen_event = chosenEvent();
    draw.save();
    draw.beginPath();
    draw.rect(left, TOP, plot_width, plot_height);
    draw.clip();
    paintArrows({
      draw, palette, lines, open, tracksOf, start_ns: window.start_ns, end_ns: window.end_ns, xOf: x_of,
      yOf: (line) => TOP + line.y - scroll,
      chosen: (end) => chosen_event !== null && isEnd(end, chosen_event.rank_index, chosen_event.start_ns, chosen_event.name),
    }, launches.length > 0 ? [...props.arrows, ...launches] : props.arrows);
    paintCollective(draw, palette);
    draw.restore();
    paintSelected(draw, palette);
    draw.restore();
    paintMarked(draw, palette);
    if (content > plot_height) {
      draw.fillStyle = palette.line;
      draw.fillRect(width - 3, TOP + (scroll / content) * plot_height, 3, Math.max(12, (plot_height / content) * plot_height));
    }
    if (frame) {
      draw.fillStyle = palette.focus;
      draw.globalAlpha = 0.2;
      draw.fillRect(Math.min(...frame), TOP, Math.abs(frame[1] - frame[0]), plot_height);
      draw.globalAlpha = 1;
    }
  };

  const paintMap = (draw: CanvasRenderingContext2D, palette: Palette, tones: TimelineInk) => {
    draw.fillStyle = palette.panel;
    draw.fillRect(left, 0, plot_width, MAP_HEIGHT);
    if (map_image.current?.map !== map || map_image.current.tones !== tones) {
      const canvas = document.createElement('canvas');
      canvas.width = plot_width;
      canvas.height = MAP_HEIGHT;
      const data = new ImageData(plot_width, MAP_HEIGHT);
      const pixels = new Uint32Array(data.data.buffer);
      bands.forEach((band, k) => {
        const end = Math.round(band.to * (MAP_HEIGHT - 4)) + 2;
        for (let y = Math.round(band.from * (MAP_HEIGHT - 4)) + 2; y < end; ++y) {
          for (let x = 0; x < plot_width; ++x) pixels[y * plot_width + x] = tones.shares[k]![map[x * 4 + k] ?? 0]!;
        }
      });
      canvas.getContext('2d')!.putImageData(data, 0, 0);
      map_image.current = { map, tones, canvas };
    }
    draw.imageSmoothingEnabled = false;
    draw.drawImage(map_image.current.canvas, left, 0);
    const from = left + (window.start_ns / span_ns) * plot_width;
    const to = left + (window.end_ns / span_ns) * plot_width;
    draw.fillStyle = palette.background;
    draw.globalAlpha = 0.6;
    draw.fillRect(left, 0, from - left, MAP_HEIGHT);
    draw.fillRect(to, 0, left + plot_width - to, MAP_HEIGHT);
    draw.globalAlpha = 1;
    draw.strokeStyle = palette.focus;
    draw.lineWidth = 1.5;
    draw.strokeRect(from, 0.75, Math.max(2, to - from), MAP_HEIGHT - 1.5);
    draw.font = SMALL_FONT;
    draw.fillStyle = palette.muted;
    draw.textAlign = 'left';
    draw.fillText('whole run', 8, MAP_HEIGHT / 2);
  };
  const paintRuler = (draw: CanvasRenderingContext2D, palette: Palette) => {
    const ticks = timeTicks(window, plot_width);
    draw.font = SMALL_FONT;
    draw.textAlign = 'left';
    draw.fillStyle = palette.muted;
    draw.fillText(`${duration(window.end_ns - window.start_ns)} in view`, 8, MAP_HEIGHT + RULER / 2 + 2);
    for (const value of ticks.values) {
      const x = x_of(value);
      draw.fillStyle = palette.line;
      draw.fillRect(x, MAP_HEIGHT + 4, 1, RULER - 4);
      draw.fillStyle = palette.muted;
      const text = tickText(value, ticks.step_ns, span_ns);
      if (x + 4 + text.length * 6.2 < width) draw.fillText(text, x + 4, MAP_HEIGHT + RULER / 2 + 2);
    }
  };
  /** On each member's line how long it waited, and an arrow from the last to arrive, which lets all go on. */
  const paintCollective = (draw: CanvasRenderingContext2D, palette: Palette) => {
    if (!props.collective) return;
    const { instance, members } = props.collective;
    const by_rank = new Map(lines.filter((line) => line.kind === 'rank').map((line) => [line.rank_index, line]));
    const y_of = (line: Line) => TOP + line.y - scroll + Math.min(line.height, RANK_HEIGHT) / 2;
    const x = x_of(instance.last_arrival_ns);
    draw.save();
    draw.strokeStyle = draw.fillStyle = palette.focus;
    const rows: number[] = [];
    for (const member of members) {
      const line = by_rank.get(member.rank_index);
      if (!line) continue;
      const y = y_of(line);
      rows.push(y);
      draw.lineWidth = 2;
      draw.beginPath();
      draw.moveTo(x_of(member.arrival_ns), y);
      draw.lineTo(x, y);
      draw.stroke();
      draw.beginPath();
      draw.arc(x_of(member.arrival_ns), y, member.rank_index === instance.last_rank_index ? 4.5 : 2.5, 0, 2 * Math.PI);
      draw.fill();
    }
    const last = instance.last_rank_index === null ? undefined : by_rank.get(instance.last_rank_index);
    draw.lineWidth = 1.5;
    for (const y of last ? [Math.min(...rows), Math.max(...rows)] : []) {
      const from = y_of(last!);
      if (y === from) continue;
      const side = y > from ? -1 : 1;
      draw.beginPath();
      draw.moveTo(x, from);
      draw.lineTo(x, y);
      draw.moveTo(x - 4, y + side * 7);
      draw.lineTo(x, y);
      draw.lineTo(x + 4, y + side * 7);
      draw.stroke();
    }
    draw.restore();
  };
  /** Its edges run through all lines; its length stands on the ruler, where it is dragged. */
  const paintMarked = (draw: CanvasRenderingContext2D, palette: Palette) => {
    const span = marking ?? props.marked;
    if (!span) return;
    const from = Math.max(left, Math.min(left + plot_width, x_of(span.start_ns)));
    const to = Math.max(left, Math.min(left + plot_width, x_of(span.end_ns)));
    draw.fillStyle = palette.focus;
    draw.globalAlpha = 0.12;
    draw.fillRect(from, TOP, to - from, plot_height);
    draw.globalAlpha = 1;
    draw.fillRect(from, MAP_HEIGHT + RULER, Math.max(1, to - from), 3);
    for (const [x, time] of [[from, span.start_ns], [to, span.end_ns]] as const) {
      if (time >= window.start_ns && time <= window.end_ns) draw.fillRect(x - 0.5, MAP_HEIGHT + 4, 1.5, RULER + plot_height);
    }
    const text = duration(span.end_ns - span.start_ns);
    draw.font = SMALL_FONT;
    const wide = draw.measureText(text).width + 10;
    if (span.end_ns < window.start_ns || span.start_ns > window.end_ns) return;
    const middle = Math.max(left + wide / 2, Math.min(left + plot_width - wide / 2, (from + to) / 2));
    draw.fillStyle = palette.background;
    draw.fillRect(middle - wide / 2, MAP_HEIGHT + 4, wide, RULER - 5);
    draw.fillStyle = palette.focus;
    draw.textAlign = 'center';
    draw.fillText(text, middle, MAP_HEIGHT + RULER / 2 + 2);
  };
  const paintSelected = (draw: CanvasRenderingContext2D, palette: Palette) => {
    const chosen = props.selected;
    const track = chosen && tracksOf(chosen.rank_index)?.[chosen.track];
    if (!chosen || !track) return;
    const line = lines.find((each) => each.rank_index === chosen.rank_index && each.track === (open.has(chosen.rank_index) ? chosen.track : -1));
    if (!line) return;
    const from = Math.max(left - 4, x_of(track.start_ns[chosen.event]!));
    const to = Math.min(width + 4, x_of(track.start_ns[chosen.event]! + track.duration_ns[chosen.event]!));
    const y = TOP + line.y - scroll + (line.kind === 'track' ? 2 + Math.min(track.level[chosen.event]!, track.level_count - 1) * LEVEL_HEIGHT : 1);
    draw.save();
    draw.beginPath();
    draw.rect(left - 2, TOP, plot_width + 4, plot_height);
    draw.clip();
    draw.strokeStyle = palette.text;
    draw.lineWidth = 2;
    draw.strokeRect(from, y, Math.max(3, to - from), line.kind === 'track' ? LEVEL_HEIGHT - 1 : line.height - 2);
    draw.restore();
  };

  const lineAt = (y: number): Line | null => {
    if (y < TOP || y >= TOP + plot_height) return null;
    return lines[firstLineAt(lines, y - TOP + scroll)] ?? null;
  };
  const eventUnder = (at: Pointer): EventRef | null => {
    const line = lineAt(at.y);
    const tracks = line && tracksOf(line.rank_index);
    if (!line || !tracks || at.x < left) return null;
    const time = window.start_ns + (at.x - left) * ns_per_pixel;
    if (line.kind === 'track') {
      const track = tracks[line.track]!;
      const level = Math.floor((at.y - TOP + scroll - line.y - 2) / LEVEL_HEIGHT);
      const lane = lanesOf(track)[level];
      const event = lane ? eventAt(track, lane, time, 2 * ns_per_pixel) : -1;
      return event < 0 ? null : { rank_index: line.rank_index, track: line.track, event };
    }
    if (!detailed || !tracks.some((track) => track.lane === 'device')) return null;
    const part = (at.y - TOP + scroll - line.y) / line.height;
    const kind = bands.findIndex((band) => band.from <= part && part < band.to);
    for (const track of summaryTracks(tracks)) {
      for (const lane of lanesOf(track)) {
        const event = eventAt(track, lane, time, ns_per_pixel);
        if (event >= 0 && track.class[event] === kind) return { rank_index: line.rank_index, track: tracks.indexOf(track), event };
      }
    }
    return null;
  };
  const describeEvent = (ref: EventRef): string => {
    const track = tracksOf(ref.rank_index)?.[ref.track];
    if (!track || ref.event >= track.name.length) return '';
    const kind = TIMELINE_CLASSES[track.class[ref.event]!];
    return `${props.names[track.name[ref.event]!] ?? '?'}: ${duration(track.duration_ns[ref.event])}${kind ? `, ${CLASS_LABELS[kind]}` : ''}; ` +
      `${props.rankLabel(ref.rank_index)}, ${track.label}, at ${tickText(track.start_ns[ref.event]!, Math.max(1, ns_per_pixel), span_ns)}`;
  };
  const chosenEvent = () => {
    const chosen = props.selected;
    const track = chosen && tracksOf(chosen.rank_index)?.[chosen.track];
    return chosen && track && chosen.event < track.name.length
      ? { rank_index: chosen.rank_index, start_ns: track.start_ns[chosen.event]!, name: track.name[chosen.event]! }
      : null;
  };
  /** Whom the chosen event called, and who called it. */
  const describeArrows = (): string => {
    const event = chosenEvent();
    if (!event) return '';
    const named = (end: Arrow['caller']) => `${props.names[end.name] ?? '?'} of ${props.rankLabel(end.rank_index)}`;
    const callers = props.arrows.filter(({ called }) => isEnd(called, event.rank_index, event.start_ns, event.name)).map(({ caller }) => named(caller));
    const called = props.arrows.filter(({ caller }) => isEnd(caller, event.rank_index, event.start_ns, event.name)).map((arrow) => named(arrow.called));
    return (callers.length > 0 ? `; called by ${callers.join(', ')}` : '') +
      (called.length > 0 ? `; calls ${called.slice(0, 3).join(', ')}${called.length > 3 ? ` and ${called.length - 3} more` : ''}` : '');
  };
  const describeLaunches = (): string => {
    const [first] = launches;
    if (!first || !props.selected || !chosen_tracks) return '';
    const after = duration(Math.max(0, first.called.start_ns - first.caller.start_ns));
    return chosen_tracks[props.selected.track]?.launch
      ? `; launched ${after} before by ${nameText(first.caller.name)}`
      : `; launches ${nameText(first.called.name)} ${after} later${launches.length > 1 ? ` and ${launches.length - 1} more` : ''}`;
  };
  const describeCollective = (): string => {
    if (!props.collective) return '';
    const { instance, members } = props.collective;
    const waits = members.filter((member) => member.wait_ns !== null).sort((a, b) => b.wait_ns! - a.wait_ns!);
    return `; ${instance.name} of ${members.length} ranks` +
      (instance.last_rank_index === null ? '' : `, ${props.rankLabel(instance.last_rank_index)} came last`) +
      (waits[0] && waits[0].wait_ns! > 0 ? `, ${props.rankLabel(waits[0].rank_index)} waited ${duration(waits[0].wait_ns)}` : '');
  };
  const describeShares = (rank: number, start_ns: number, end_ns: number): string => {
    const shares = meanShares(levels, rank, start_ns, end_ns);
    const parts = TIMELINE_CLASSES.flatMap((name, k) => (present[k] ? [`${CLASS_LABELS[name]} ${percent(shares[k])}`] : []));
    return `${props.rankLabel(rank)}: busy with ${parts.join(', ') || 'nothing'}`;
  };
  const describeLine = (): string => {
    const track = tracksOf(props.row)?.[cursor_track];
    if (cursor_track >= 0 && track) return `${props.rankLabel(props.row)}, ${track.label}: ${track.name.length} events`;
    return `${describeShares(props.row, window.start_ns, window.end_ns)} in view`;
  };

  const show = (next: TimeWindow) => props.onWindow(clampWindow(next, span_ns));
  const showLine = (line: Line) => {
    if (line.y < scroll) setScroll(line.y);
    else if (line.y + line.height > scroll + plot_height) setScroll(line.y + line.height - plot_height);
  };
  const moveLine = (by: number) => {
    const now = lines.findIndex((line) => line.rank_index === props.row && line.track === cursor_track);
    const line = lines[Math.max(0, Math.min(lines.length - 1, now + by))];
    if (!line) return;
    setCursorTrack(line.track);
    props.onRow(line.rank_index);
    props.onSelect(null);
    showLine(line);
  };
  const selectEvent = (ref: EventRef, fill = false) => {
    const track = tracksOf(ref.rank_index)![ref.track]!;
    props.onSelect(ref);
    const from = track.start_ns[ref.event]!;
    const long = track.duration_ns[ref.event]!;
    const span = window.end_ns - window.start_ns;
    if (fill) show({ start_ns: from - long * 0.5 - 20, end_ns: from + long * 1.5 + 20 });
    else if (from < window.start_ns || from + Math.min(long, span) > window.end_ns) show({ start_ns: from + long / 2 - span / 2, end_ns: from + long / 2 + span / 2 });
  };
  const stepEvent = (forward: boolean, only_matches: boolean) => {
    const tracks = tracksOf(props.row);
    if (!tracks) return;
    const keep = only_matches && props.matches ? props.matches : null;
    const chosen = props.selected?.rank_index === props.row ? props.selected : null;
    const now = chosen ? tracks[chosen.track]!.start_ns[chosen.event]! : forward ? window.start_ns - 1 : window.end_ns;
    const summary = summaryTracks(tracks);
    let best: EventRef | null = null;
    let best_ns = 0;
    tracks.forEach((track, at) => {
      if (cursor_track >= 0 ? at !== cursor_track : !keep && !summary.includes(track)) return;
      let event = neighbour(track, now, forward, keep ? (i) => keep[track.name[i]!] === 1 : undefined);
      // Several of one start: those beside the chosen one are stepped through, too.
      if (chosen && chosen.track === at) {
        const beside = chosen.event + (forward ? 1 : -1);
        if (track.start_ns[beside] === now && (!keep || keep[track.name[beside]!] === 1)) event = beside;
      }
      if (event < 0) return;
      const start = track.start_ns[event]!;
      if (!best || (forward ? start < best_ns : start > best_ns)) {
        best = { rank_index: props.row, track: at, event };
        best_ns = start;
      }
    });
    if (best) selectEvent(best);
  };
  const middle = (): number => {
    const track = props.selected && tracksOf(props.selected.rank_index)?.[props.selected.track];
    const time = track ? track.start_ns[props.selected!.event]! + track.duration_ns[props.selected!.event]! / 2 : NaN;
    return time >= window.start_ns && time <= window.end_ns ? (time - window.start_ns) / (window.end_ns - window.start_ns) : 0.5;
  };
  const spanOfEvent = (): TimeWindow | null => {
    const track = props.selected && tracksOf(props.selected.rank_index)?.[props.selected.track];
    if (!track) return null;
    const start_ns = track.start_ns[props.selected!.event]!;
    return { start_ns, end_ns: start_ns + Math.max(1, track.duration_ns[props.selected!.event]!) };
  };
  const onKey = (key: string, event: KeyboardEvent): boolean => {
    if (key === 'ArrowUp' || key === 'ArrowDown') moveLine((key === 'ArrowDown' ? 1 : -1) * (event.shiftKey ? 10 : 1));
    else if (key === 'ArrowLeft' || key === 'a') props.onWindow(panWindow(window, span_ns, event.shiftKey ? -0.8 : -0.2));
    else if (key === 'ArrowRight' || key === 'd') props.onWindow(panWindow(window, span_ns, event.shiftKey ? 0.8 : 0.2));
    else if (key === '+' || key === '=' || key === 'w') props.onWindow(zoomWindow(window, span_ns, 0.6, middle()));
    else if (key === '-' || key === '_' || key === 's') props.onWindow(zoomWindow(window, span_ns, 1 / 0.6, middle()));
    else if (key === '0' || key === 'Home') show({ start_ns: 0, end_ns: span_ns });
    else if (key === 'Enter' && props.has_events) {
      props.onOpen(props.row);
      setCursorTrack(-1);
    } else if (key === '.' || key === ',') stepEvent(key === '.', false);
    else if ((key === 'n' || key === 'N') && props.matches) stepEvent(key === 'n', true);
    else if (key === 'f' && props.selected && tracksOf(props.selected.rank_index)) selectEvent(props.selected, true);
    else if (key === 'm') props.onMark(spanOfEvent() ?? window);
    else if (key === 'Escape' && props.selected) props.onSelect(null);
    else if (key === 'Escape' && props.marked) props.onMark(null);
    else return false;
    return true;
  };
  const moveMap = (x: number) => {
    const at = ((x - left) / plot_width) * span_ns;
    const half = (window.end_ns - window.start_ns) / 2;
    show({ start_ns: at - half, end_ns: at + half });
  };
  const onHover = (at: Pointer | null) => {
    const line = at && lineAt(at.y);
    if (!at || !line || at.x < left) return setHover(null);
    const ref = eventUnder(at);
    const time = window.start_ns + (at.x - left) * ns_per_pixel;
    const text = ref ? describeEvent(ref)
      : line.kind === 'rank' ? `${describeShares(line.rank_index, time - ns_per_pixel, time + ns_per_pixel)} at ${tickText(time, ns_per_pixel, span_ns)}`
      : `${tracksOf(line.rank_index)?.[line.track]?.label ?? ''}, ${tickText(time, ns_per_pixel, span_ns)}`;
    setHover({ x: at.x, y: at.y + 12, text });
  };
  return (
    <div ref={box} class="chart">
      <Drawing
        id="timeline-canvas"
        width={width}
        height={TOP + plot_height + 2}
        label={props.label}
        keys={`W and S or + and − zoom, A and D or ← and → move in time, ↑ and ↓ from line to line, 0 shows the whole run${props.has_events ? ', Enter opens a rank, . and , go to the next and last event, F fills the view with it, N goes to the next match' : ''}, M marks ${props.has_events ? 'the chosen event, or ' : ''}what is in view, Escape lets go. Mouse: drag to move, along the ruler to mark a span, Shift and drag or Ctrl and wheel to zoom.`}
        status={hover?.text ?? (props.selected ? describeEvent(props.selected) + describeArrows() + describeLaunches() + describeCollective() : describeLine())}
        paint={paint}
        pointer="grab"
        onKey={onKey}
        onHover={onHover}
        onClick={(at) => {
          if (at.y < MAP_HEIGHT) return moveMap(at.x);
          const line = lineAt(at.y);
          if (!line) return undefined;
          setCursorTrack(line.track);
          props.onRow(line.rank_index);
          if (at.x < left && line.kind === 'rank' && props.has_events) props.onOpen(line.rank_index);
          else props.onSelect(eventUnder(at));
          return undefined;
        }}
        onDouble={(at) => {
          const ref = eventUnder(at);
          if (ref) selectEvent(ref, true);
          else if (at.x >= left) props.onWindow(zoomWindow(window, span_ns, 0.4, (at.x - left) / plot_width));
        }}
        onDrag={(dx, dy, from, now, done) => {
          setHover(null);
          if (from.y < MAP_HEIGHT) return moveMap(now.x);
          const time = (x: number) => window.start_ns + (Math.max(left, Math.min(left + plot_width, x)) - left) * ns_per_pixel;
          if (from.y < TOP) {
            const span = { start_ns: time(Math.min(from.x, now.x)), end_ns: time(Math.max(from.x, now.x)) };
            setMarking(done ? null : span);
            return done ? props.onMark(span.end_ns > span.start_ns ? span : null) : undefined;
          }
          if (from.shift) {
            if (!done) return setFrame([from.x, now.x]);
            setFrame(null);
            return show({ start_ns: time(Math.min(from.x, now.x)), end_ns: time(Math.max(from.x, now.x)) });
          }
          if (dx !== 0) props.onWindow(panWindow(window, span_ns, -dx / plot_width));
          if (dy !== 0) setScroll(Math.max(0, scroll - dy));
          return undefined;
        }}
        onWheel={(at, dx, dy) => {
          if (at.control) {
            props.onWindow(zoomWindow(window, span_ns, Math.exp(Math.max(-1.5, Math.min(1.5, dy / 240))), Math.min(1, Math.max(0, (at.x - left) / plot_width))));
            return true;
          }
          const sideways = at.shift ? dy || dx : dx;
          if (Math.abs(sideways) > Math.abs(at.shift ? 0 : dy)) {
            props.onWindow(panWindow(window, span_ns, sideways / plot_width));
            return true;
          }
          const next = Math.max(0, Math.min(content - plot_height, scroll + dy));
          if (next === scroll) return false; // At the end the page scrolls on.
          setScroll(next);
          return true;
        }}
      />
      {hover && <Tooltip width={width} tip={{ x: hover.x, y: hover.y, content: hover.text }} />}
    </div>
  );
}

/** How many ranks the levels have. */
function levelRanks(levels: readonly TimelineLevel[]): number {
  const level = levels[0];
  return level ? Math.round(level.shares.length / 4 / Math.max(1, level.bucket_count)) : 0;
}
