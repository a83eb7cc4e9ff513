import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ChosenCollective } from '../data/collective_of';
import type { PageSource, TimelineLevel, TrackEvents } from '../data/types';
import { shortName } from '../numbers';
import { useWidth } from '../parts/measure';
import { Tooltip } from '../parts/tooltip';
import { launchArrows, type Arrow } from './arrows';
import { Drawing, type Pointer } from './drawing';
import { eventAt, neighbour } from './events';
import { classesPresent, overviewLine } from './lod';
import { useRankEvents } from './rank_events';
import { classBands, firstLineAt, layoutLines, LEVEL_HEIGHT, RANK_HEIGHT, togglePin, type Line, type Pin } from './timeline_layout';
import { lanesOf, summaryTracks } from './timeline_paint';
import { TimelinePainter } from './timeline_painter';
import { describe, describeEvent, describeShares, DETAIL_FROM, MAP_HEIGHT, PIN_FROM, PIN_WIDTH, TOP, yOf, type EventRef, type Scene } from './timeline_scene';
import { panWindow, tickText, zoomWindow, clampWindow, type TimeWindow } from './window';

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
  /** Lines that stay at the top. */
  pins: readonly Pin[];
  onPins: (pins: readonly Pin[]) => void;
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

const MOST_HEIGHT = 540;
/** So many ranks at most are drawn from single events at a time; more are too low to see any. */
const MOST_DETAILED = 48;

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
  const pinned_ranks = useMemo(() => props.pins.map((pin) => pin.rank_index), [props.pins]);
  const wanted = props.has_events ? [...new Set([...open, props.row, ...pinned_ranks, ...(detailed ? in_view.current : [])])].filter((rank) => ranks.includes(rank) || pinned_ranks.includes(rank)) : [];
  const tracksOf = useRankEvents(props.source, wanted);
  const known = [...open, ...pinned_ranks].map((rank) => (tracksOf(rank) ? rank : -1)).join(',');
  const { lines, height: content, pinned_count, pinned_height } = useMemo(
    () => layoutLines(ranks, open, tracksOf, rank_height, props.pins), [ranks, open, known, rank_height, props.pins],
  );
  const plot_height = Math.round(Math.max(Math.min(ranks.length * rank_height, 60), Math.min(MOST_HEIGHT, content)));
  const scroll = Math.max(0, Math.min(scroll_wanted, content - plot_height));
  const first = firstLineAt(lines, scroll + pinned_height);
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
    if (line && !line.pinned && (line.y < scroll + pinned_height || line.y + Math.min(line.height + 60, plot_height) > scroll + plot_height)) {
      setScroll(Math.max(0, line.y - pinned_height - plot_height * 0.15));
    }
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
  const painter = useMemo(() => new TimelinePainter(), []);
  const texts = useRef(new Map<number, string>());
  const nameText = (name: number) => {
    let text = texts.current.get(name);
    if (text === undefined) texts.current.set(name, (text = shortName(props.names[name] ?? '')));
    return text;
  };

  const scene: Scene = {
    levels, present, bands, map, span_ns, window, ns_per_pixel, width, left, plot_width, plot_height, content, scroll, lines, pinned_count, pinned_height, first, rank_height, detailed,
    has_events: props.has_events, open, pins: props.pins, row: props.row, cursor_track, tracksOf, names: props.names, nameText, rankLabel: props.rankLabel, matches: props.matches,
    selected: props.selected, arrows: props.arrows, launches, collective: props.collective, marked: marking ?? props.marked, frame,
  };

  const lineAt = (y: number): Line | null => {
    if (y < TOP || y >= TOP + plot_height) return null;
    return lines[firstLineAt(lines, y < TOP + pinned_height ? y - TOP : y - TOP + scroll)] ?? null;
  };
  const eventUnder = (at: Pointer): EventRef | null => {
    const line = lineAt(at.y);
    const tracks = line && tracksOf(line.rank_index);
    if (!line || !tracks || at.x < left) return null;
    const time = window.start_ns + (at.x - left) * ns_per_pixel;
    if (line.kind === 'track') {
      const track = tracks[line.track]!;
      const level = Math.floor((at.y - yOf(scene, line) - 2) / LEVEL_HEIGHT);
      const lane = lanesOf(track)[level];
      const event = lane ? eventAt(track, lane, time, 2 * ns_per_pixel) : -1;
      return event < 0 ? null : { rank_index: line.rank_index, track: line.track, event };
    }
    if (!detailed || !tracks.some((track) => track.lane === 'device')) return null;
    const part = (at.y - yOf(scene, line)) / line.height;
    const kind = bands.findIndex((band) => band.from <= part && part < band.to);
    for (const track of summaryTracks(tracks)) {
      for (const lane of lanesOf(track)) {
        const event = eventAt(track, lane, time, ns_per_pixel);
        if (event >= 0 && track.class[event] === kind) return { rank_index: line.rank_index, track: tracks.indexOf(track), event };
      }
    }
    return null;
  };
  const show = (next: TimeWindow) => props.onWindow(clampWindow(next, span_ns));
  const showLine = (line: Line) => {
    if (line.pinned) return;
    if (line.y < scroll + pinned_height) setScroll(line.y - pinned_height);
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
    else if (key === 'p') props.onPins(togglePin(props.pins, { rank_index: props.row, track: cursor_track }));
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
    const text = ref ? describeEvent(scene, ref)
      : line.kind === 'rank' ? `${describeShares(scene, line.rank_index, time - ns_per_pixel, time + ns_per_pixel)} at ${tickText(time, ns_per_pixel, span_ns)}`
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
        keys={`W and S or + and − zoom, A and D or ← and → move in time, ↑ and ↓ from line to line, 0 shows the whole run${props.has_events ? ', Enter opens a rank, . and , go to the next and last event, F fills the view with it, N goes to the next match' : ''}, M marks ${props.has_events ? 'the chosen event, or ' : ''}what is in view, P pins a line to the top, Escape lets go. Mouse: drag to move, along the ruler to mark a span, Shift and drag or Ctrl and wheel to zoom.`}
        status={hover?.text ?? describe(scene)}
        paint={(draw, palette, ratio) => painter.paint(scene, draw, palette, ratio)}
        pointer="grab"
        onKey={onKey}
        onHover={onHover}
        onClick={(at) => {
          if (at.y < MAP_HEIGHT) return moveMap(at.x);
          const line = lineAt(at.y);
          if (!line) return undefined;
          setCursorTrack(line.track);
          props.onRow(line.rank_index);
          if (at.x < left && at.x >= left - PIN_WIDTH && line.height >= PIN_FROM && (line.pinned || (line.rank_index === props.row && line.track === cursor_track))) {
            props.onPins(togglePin(props.pins, { rank_index: line.rank_index, track: line.track }));
          } else if (at.x < left && line.kind === 'rank' && props.has_events) props.onOpen(line.rank_index);
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
