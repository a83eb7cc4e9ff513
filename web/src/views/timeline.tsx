import { useEffect, useMemo, useState } from 'preact/hooks';
import { useBlock } from '../app/blocks';
import { useChoice, useParam } from '../app/route';
import { arrowsOf } from '../canvas/arrows';
import { useSettledParam } from '../canvas/drawing';
import { classesPresent, meanShares } from '../canvas/lod';
import { parsePins, parseRankList, pinText } from '../canvas/timeline_layout';
import type { EventRef } from '../canvas/timeline_scene';
import { TimelineView } from '../canvas/timeline_view';
import { clampWindow, parseSpan, parseWindow, windowText } from '../canvas/window';
import { CLASS_LABELS } from '../colors';
import { collectiveOf, type ChosenCollective } from '../data/collective_of';
import { TIMELINE_CLASSES, type AnalyzeData, type PageSource, type TimelineLevel, type TrackEvents } from '../data/types';
import { capital, count, duration, percent, plural } from '../numbers';
import { Choice, Legend, Note, Waiting } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';
import { SpanSums } from './timeline_sums';

const TABLE_ROWS = 200;
const MOST_OPEN = 8;

interface RankRow {
  rank_index: number;
  shares: number[];
}

interface EventRow {
  ref: EventRef;
  name: string;
  track: string;
  kind: string;
  start_ns: number;
  duration_ns: number;
}

function classText(kind: number): string {
  const name = TIMELINE_CLASSES[kind];
  return name ? CLASS_LABELS[name] : 'none';
}

/** The longest events of the tracks that overlap the window, longest first. */
export function longestEvents(tracks: readonly TrackEvents[], start_ns: number, end_ns: number, most: number): { track: number; event: number }[] {
  const found: { track: number; event: number; length: number }[] = [];
  let least = -1;
  tracks.forEach((track, at) => {
    for (let event = 0; event < track.name.length; ++event) {
      const from = track.start_ns[event]!;
      if (from >= end_ns) break;
      const length = track.duration_ns[event]!;
      if (from + length <= start_ns || length <= least) continue;
      found.push({ track: at, event, length });
      if (found.length >= most * 4) {
        found.sort((a, b) => b.length - a.length).length = most;
        least = found[most - 1]!.length;
      }
    }
  });
  return found.sort((a, b) => b.length - a.length || a.track - b.track || a.event - b.event).slice(0, most);
}

const COMMUNICATION = TIMELINE_CLASSES.indexOf('communication');

/** The collective that the chosen event is; its table is unpacked when one is first chosen. */
function useCollective(data: AnalyzeData, source: PageSource, selected: EventRef | null, tracks: readonly TrackEvents[] | null): ChosenCollective | null {
  const [found, setFound] = useState<{ ref: EventRef; collective: ChosenCollective | null } | null>(null);
  const track = selected && tracks?.[selected.track];
  const is_one = track?.class[selected!.event] === COMMUNICATION && data.collective_count > 0;
  useEffect(() => {
    if (!is_one || !selected || !track) return undefined;
    let left = false;
    source.collectives().then((table) => {
      if (!left && table) setFound({ ref: selected, collective: collectiveOf(table, selected.rank_index, track.start_ns[selected.event]!) });
    }, () => undefined); // The waterfall says what is wrong with the table.
    return () => {
      left = true;
    };
  }, [source, selected, is_one]);
  return is_one && found && found.ref === selected ? found.collective : null;
}

function Timeline({ data, source, levels, names }: { data: AnalyzeData; source: PageSource; levels: readonly TimelineLevel[]; names: readonly string[] }) {
  const timeline = data.timeline!;
  const span_ns = Math.max(1, timeline.span_ns);
  const [range, setRange] = useSettledParam('t', '');
  const [still] = useParam('t', ''); // What the range has come to rest at: tables follow this.
  const [span_text, setSpan] = useParam('span', '');
  const [open_text, setOpen] = useParam('open', '');
  const [pin_text, setPins] = useParam('pin', '');
  const [row_text, setRow] = useSettledParam('row', '');
  const [only, setOnly] = useParam('ranks', '');
  const [find, setFind] = useParam('find', '');
  const [rows, setRows] = useChoice('rows', ['fit', 'tall'] as const, 'fit');
  const [selected, setSelected] = useState<EventRef | null>(null);
  const [tracks, setTracks] = useState<{ rank: number; tracks: readonly TrackEvents[] | null }>({ rank: -1, tracks: null });
  const window_ = useMemo(() => parseWindow(range, span_ns), [range, span_ns]);
  const rested = useMemo(() => parseWindow(still, span_ns), [still, span_ns]);
  const pins = useMemo(() => parsePins(pin_text).filter((pin) => data.ranks[pin.rank_index]), [pin_text, data]);
  const marked = useMemo(() => parseSpan(span_text, span_ns), [span_text, span_ns]);
  const ranks = useMemo(() => {
    const wanted = parseRankList(only);
    const all = data.ranks.map((_, index) => index);
    const kept = wanted ? all.filter((index) => wanted(data.ranks[index]!.rank)) : all;
    return kept.length > 0 ? kept : all;
  }, [data, only]);
  const open = useMemo(
    () => new Set(timeline.has_events ? open_text.split(',').filter((part) => /^\d{1,7}$/.test(part)).map(Number).filter((rank) => ranks.includes(rank)).slice(-MOST_OPEN) : []),
    [open_text, ranks],
  );
  const row = ranks.includes(Number(row_text)) && row_text !== '' ? Number(row_text) : ranks[0]!;
  const present = useMemo(() => classesPresent(levels), [levels]);
  const classes = TIMELINE_CLASSES.flatMap((name, k) => (present[k] ? [{ name, k }] : []));
  const [matches, match_count] = useMemo(() => {
    const word = find.trim().toLowerCase();
    if (word === '') return [null, 0] as const;
    const marks = new Uint8Array(names.length);
    let found = 0;
    names.forEach((name, at) => {
      if (name.toLowerCase().includes(word)) {
        marks[at] = 1;
        ++found;
      }
    });
    return [marks, found] as const;
  }, [find, names]);
  const collective = useCollective(data, source, selected, selected && tracks.rank === selected.rank_index ? tracks.tracks : null);
  const arrows = useMemo(() => arrowsOf(data.span_links, names), [data, names]);
  const table = useMemo<RankRow[]>(
    () => ranks.map((rank_index) => ({ rank_index, shares: meanShares(levels, rank_index, rested.start_ns, rested.end_ns) })),
    [ranks, levels, rested],
  );
  const busiest = (k: number) => table.reduce<RankRow | null>((best, each) => (best === null || each.shares[k]! > best.shares[k]! ? each : best), null);
  const main = classes[0];
  const most = main ? busiest(main.k) : null;
  const least = main ? table.reduce<RankRow | null>((best, each) => (best === null || each.shares[main.k]! < best.shares[main.k]! ? each : best), null) : null;
  const whole = rested.end_ns - rested.start_ns >= span_ns;
  const summary = `${plural(ranks.length, 'rank')}, ${whole ? `the whole run of ${duration(span_ns)}` : `${duration(rested.end_ns - rested.start_ns)} from ${duration(rested.start_ns)} on`}. ` +
    (main && most && least
      ? percent(most.shares[main.k]) === percent(least.shares[main.k])
        ? `${capital(CLASS_LABELS[main.name])}: ${percent(most.shares[main.k])} of the time${ranks.length > 1 ? ' on every rank' : ''}.`
        : `Most ${CLASS_LABELS[main.name]}: ${rankLabel(data, most.rank_index)}, ${percent(most.shares[main.k])} of the time; least: ${rankLabel(data, least.rank_index)}, ${percent(least.shares[main.k])}.`
      : 'No work of devices or operators was recorded in it.');
  const longest = useMemo<EventRow[]>(() => {
    const of = tracks.rank === row ? tracks.tracks : null;
    if (!of) return [];
    return longestEvents(of, rested.start_ns, rested.end_ns, TABLE_ROWS).map(({ track, event }) => ({
      ref: { rank_index: row, track, event },
      name: names[of[track]!.name[event]!] ?? '?', track: of[track]!.label,
      kind: classText(of[track]!.class[event]!),
      start_ns: of[track]!.start_ns[event]!, duration_ns: of[track]!.duration_ns[event]!,
    }));
  }, [tracks, row, rested, names]);
  const key = (ref: EventRef) => `${ref.rank_index}.${ref.track}.${ref.event}`;
  return (
    <>
      {!timeline.has_events && <Note>Single events were left out of this page to keep it small, so it shows only how busy each rank was. `lockstep serve` on the same traces shows every event.</Note>}
      <Figure
        id="timeline"
        title="All ranks over time"
        summary={summary}
        controls={
          <>
            <label class="select">
              <span>Ranks</span>
              <input type="search" class="short" placeholder="such as 0-3,8" value={only} onChange={(event) => setOnly((event.target as HTMLInputElement).value.trim())} />
            </label>
            {timeline.has_events && (
              <label class="select">
                <span>Find</span>
                <input type="search" placeholder="name of a kernel" value={find} onInput={(event) => setFind((event.target as HTMLInputElement).value)} />
              </label>
            )}
            <Choice name="timeline-rows" label="Lines" value={rows} onChange={setRows} options={[{ value: 'fit', label: 'all' }, { value: 'tall', label: 'tall' }]} />
          </>
        }
        columns={[
          { key: 'rank', title: 'Rank', value: (each: RankRow) => rankLabel(data, each.rank_index) },
          { key: 'host', title: 'Host', value: (each) => data.ranks[each.rank_index]?.host ?? null },
          ...classes.map(({ name, k }) => ({
            key: `${name}_ratio`, title: `${CLASS_LABELS[name][0]!.toUpperCase()}${CLASS_LABELS[name].slice(1)}`, numeric: true,
            value: (each: RankRow) => each.shares[k]!, text: (each: RankRow) => percent(each.shares[k]), help: 'Share of the time in view that a rank was busy with it',
          })),
        ]}
        rows={table}
        rowKey={(each) => String(each.rank_index)}
        search={['rank', 'host']}
      >
        <Legend items={classes.map(({ name }) => ({ mark: name, label: CLASS_LABELS[name] }))} />
        {arrows.length > 0 && timeline.has_events && <p class="muted">{`${plural(arrows.length, 'arrow')} from spans to those that they called; open a rank to see its own.`}</p>}
        {matches && <p class="muted" role="status">{match_count === 0 ? 'No name contains this.' : `${plural(match_count, 'name')} ${match_count === 1 ? 'contains' : 'contain'} this; N in the picture goes to the next.`}</p>}
        <TimelineView
          source={source}
          levels={levels}
          span_ns={span_ns}
          ranks={ranks}
          rankLabel={(rank) => rankLabel(data, rank) + (data.ranks[rank]?.host ? ` · ${data.ranks[rank]!.host}` : '')}
          has_events={timeline.has_events}
          names={names}
          window={window_}
          onWindow={(next) => setRange(windowText(clampWindow(next, span_ns), span_ns))}
          open={open}
          onOpen={(rank) => {
            const next = new Set(open);
            if (!next.delete(rank)) next.add(rank);
            setOpen([...next].slice(-MOST_OPEN).join(','));
          }}
          row={row}
          onRow={(rank) => setRow(String(rank))}
          matches={matches}
          arrows={arrows}
          tall={rows === 'tall'}
          pins={pins}
          onPins={(next) => setPins(pinText(next))}
          collective={collective}
          marked={marked}
          onMark={(span) => setSpan(span ? `${Math.round(span.start_ns)}-${Math.round(Math.max(span.start_ns + 1, span.end_ns))}` : '')}
          selected={selected}
          onSelect={setSelected}
          onTracks={(rank, of) => setTracks({ rank, tracks: of })}
          label={`Timeline. ${summary}`}
        />
      </Figure>
      <SpanSums data={data} source={source} levels={levels} names={names} ranks={ranks} row={row} span={marked ?? rested} marked={marked !== null} has_events={timeline.has_events} />
      {timeline.has_events && (
        <DataTable
          id="longest"
          caption={`Longest events in view, ${rankLabel(data, row)}`}
          columns={[
            { key: 'name', title: 'Name', value: (each: EventRow) => each.name, width: 60 },
            { key: 'class', title: 'Class', value: (each) => each.kind },
            { key: 'track', title: 'Track', value: (each) => each.track, width: 26 },
            { key: 'start_ns', title: 'Start', numeric: true, value: (each) => each.start_ns, text: (each) => duration(each.start_ns) },
            { key: 'duration_ns', title: 'Duration', numeric: true, value: (each) => each.duration_ns, text: (each) => duration(each.duration_ns), help: `The ${count(TABLE_ROWS)} longest` },
          ]}
          rows={longest}
          rowKey={(each) => key(each.ref)}
          sort="-duration_ns"
          search={['name', 'track']}
          selected={selected ? key(selected) : null}
          onSelect={(each) => {
            setSelected(each?.ref ?? null);
            if (each) setRange(windowText(clampWindow({ start_ns: each.start_ns - each.duration_ns * 0.5 - 20, end_ns: each.start_ns + each.duration_ns * 1.5 + 20 }, span_ns), span_ns));
          }}
          empty={tracks.rank === row && tracks.tracks ? 'No event of this rank is in view.' : 'Unpacking …'}
        />
      )}
    </>
  );
}

function TimelineBlocks({ data, source }: ViewProps) {
  const levels = useBlock(source, 'timeline', () => source.timeline());
  const names = useBlock(source, 'names', () => source.names());
  if (levels.state === 'failed') return <Note kind="warning">The timeline could not be read: {levels.message}</Note>;
  if (names.state === 'failed') return <Note kind="warning">The names could not be read: {names.message}</Note>;
  if (levels.state === 'loading' || names.state === 'loading') return <Waiting what="the timeline" />;
  if (levels.value.length === 0) return <Note>The timeline was left out of this page to keep it small.</Note>;
  return <Timeline data={data} source={source} levels={levels.value} names={names.value} />;
}

export const timelineView: View = {
  id: 'timeline',
  title: 'Timeline',
  shows: 'What every rank does at every moment, from the whole run down to single kernels.',
  group: 'Time',
  missing: (data) => (data.timeline === null || data.ranks.length === 0 ? 'This page has no timeline: it was left out to keep the page small, or nothing was recorded.' : null),
  component: TimelineBlocks,
};
