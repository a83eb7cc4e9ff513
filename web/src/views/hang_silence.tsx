import { useMemo } from 'preact/hooks';
import { useChoice } from '../app/route';
import { SilenceView, type SilenceRow } from '../canvas/silence_view';
import { groupLabel, type HangData } from '../data/hang';
import { capital, duration, plural, rankList } from '../numbers';
import { Choice, Legend } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';

const SPANS = ['all', 'last calls'] as const;
const SORTS = ['silent first', 'rank'] as const;

/** The collection, or the latest instant that is known where its time is not. */
export function lastInstant(data: HangData): number | null {
  if (data.job.collected_unix_ns !== null) return data.job.collected_unix_ns;
  let last: number | null = null;
  const see = (value: number | null) => {
    if (value !== null && (last === null || value > last)) last = value;
  };
  for (const rank of data.ranks) see(rank.silent_since_unix_ns);
  for (const group of data.groups) for (const at of group.ranks) see(at.open_since_unix_ns);
  return last;
}

export function silenceRows(data: HangData): SilenceRow[] {
  const end = lastInstant(data);
  const open = new Map<number, { text: string; since_ns: number }[]>();
  for (const group of data.groups) {
    for (const at of group.ranks) {
      if (!at.open_operation || at.open_since_unix_ns === null || end === null) continue;
      if (!open.has(at.rank)) open.set(at.rank, []);
      open.get(at.rank)!.push({ text: `${at.open_operation} in ${groupLabel(group)}`, since_ns: end - at.open_since_unix_ns });
    }
  }
  return data.ranks.map((rank) => {
    const silent_ns = rank.silent_since_unix_ns === null || end === null ? null : Math.max(0, end - rank.silent_since_unix_ns);
    const opened = (open.get(rank.rank) ?? []).sort((a, b) => b.since_ns - a.since_ns);
    return {
      rank: rank.rank, label: `rank ${rank.rank}`, role: rank.role, silent_ns, open: opened,
      words: `Rank ${rank.rank} (${rank.role}): ` + (silent_ns === null ? 'when it last issued something is not known' : `silent for ${duration(silent_ns)}`) +
        opened.map((each) => `; ${each.text} open for ${duration(each.since_ns)}`).join('') + (rank.doing ? `; ${rank.doing}` : ''),
    };
  });
}

function Silence({ data }: ViewProps<HangData>) {
  const [span, setSpan] = useChoice('span', SPANS, 'all');
  const [sort, setSort] = useChoice('sort', SORTS, 'silent first');
  const known = useMemo(() => silenceRows(data), [data]);
  const rows = useMemo(() => {
    const order = [...known];
    if (sort === 'silent first') order.sort((a, b) => (b.silent_ns ?? Infinity) - (a.silent_ns ?? Infinity) || a.rank - b.rank);
    return order;
  }, [known, sort]);
  const silent = known.flatMap((row) => (row.silent_ns === null ? [] : [row.silent_ns]));
  const starts = [...silent, ...known.flatMap((row) => row.open.map((open) => open.since_ns))];
  const first = Math.max(1, ...starts);
  const last = silent.length > 0 ? Math.min(...silent) : 0;
  const wide = Math.max(...silent, last) - last;
  const collected = data.job.collected_unix_ns !== null;
  const part = (span === 'last calls' || !collected) && silent.length > 1 && wide > 0;
  const from_ns = part ? Math.max(...silent) : first * 1.04;
  const to_ns = part ? last - wide * 0.25 : 0;
  const longest = silent.length > 0 ? known.filter((row) => row.silent_ns === Math.max(...silent)) : [];
  const unknown = known.filter((row) => row.silent_ns === null);
  const summary = (silent.length === 0 ? 'No rank’s last call is known.' :
    `${capital(rankList(longest.map((row) => row.rank)))} fell silent first${collected ? `, ${duration(longest[0]!.silent_ns)} before the collection` : ''}${wide > 0 ? `; the last rank ${duration(wide)} later` : ''}.${collected ? '' : ' When the evidence was collected is not known.'}`) +
    (unknown.length > 0 && silent.length > 0 ? ` Not known for ${rankList(unknown.map((row) => row.rank))}.` : '');
  const openText = (row: SilenceRow) => row.open.map((open) => open.text).join(', ');
  return (
    <Figure
      id="silence"
      title="From the last call to the collection"
      summary={summary}
      controls={
        <>
          {wide > 0 && collected && <Choice name="silence-span" label="Time" value={span} onChange={setSpan} options={SPANS.map((value) => ({ value, label: value }))} />}
          <Choice name="silence-sort" label="Sort" value={sort} onChange={setSort} options={SORTS.map((value) => ({ value, label: value }))} />
        </>
      }
      columns={[
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank, text: (row) => String(row.rank) },
        { key: 'role', title: 'Role', value: (row) => row.role },
        { key: 'silent_ns', title: 'Silent for', numeric: true, value: (row) => row.silent_ns, text: (row) => duration(row.silent_ns) },
        { key: 'open_ns', title: 'Oldest open for', numeric: true, value: (row) => row.open[0]?.since_ns ?? null, text: (row) => duration(row.open[0]?.since_ns ?? null) },
        { key: 'open', title: 'Open', value: (row) => openText(row) || null, width: 60 },
      ]}
      rows={rows}
      rowKey={(row) => String(row.rank)}
      sort="-silent_ns"
      search={['rank', 'role', 'open']}
    >
      <Legend items={[
        { mark: 'critical', label: 'culprit' }, { mark: 'compute', label: 'victim' }, { mark: 'muted', label: 'others' },
        ...(unknown.some((row) => row.open.length === 0) ? [{ mark: 'absent', label: 'not known' }] : []),
      ]} />
      <SilenceView id="silence-lines" label={`Timeline to silence. ${summary}`} rows={rows} from_ns={from_ns} to_ns={to_ns} />
      <p class="drawing-keys">Dot: the rank’s last call. Bar: an operation that is open since then. {plural(rows.length, 'rank')}; clocks of hosts as they are.</p>
    </Figure>
  );
}

export const silenceView: View<HangData> = {
  id: 'silence',
  title: 'Timeline to silence',
  shows: 'Who stopped first: when each rank last issued an operation, and what it has open since when.',
  group: 'Evidence',
  missing: (data) => (lastInstant(data) === null ? 'Nothing that was read has times.' : null),
  component: Silence,
};
