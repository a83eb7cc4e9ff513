import { useMemo } from 'preact/hooks';
import { href, useChoice, useParam } from '../app/route';
import { encode, quantiles } from '../canvas/grid';
import { GridView } from '../canvas/grid_view';
import { CODE_NONE } from '../canvas/palette';
import { groupCells, groupLabel, groupShort, type GroupCell, type HangData, type Standing } from '../data/hang';
import { ABSENT, capital, count, duration, plural, rankList } from '../numbers';
import { Choice, Legend } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';

type Maybe = number | null;

/** By how much they matter: where cells share a pixel, the later one shows. */
const STANDINGS: readonly { name: Standing; color: string; mark: string; label: string }[] = [
  { name: 'in_step', color: '--idle', mark: 'idle', label: 'in step, nothing open' },
  { name: 'waiting', color: '--compute', mark: 'compute', label: 'called it, waits' },
  { name: 'device_behind', color: '--memory', mark: 'memory', label: 'called it; others have completed it' },
  { name: 'no_record', color: '--text', mark: 'text', label: 'member without a record' },
  { name: 'behind', color: '--critical', mark: 'critical', label: 'has not called it' },
];
const SHOWN = ['standing', 'enqueued', 'started', 'completed'] as const;
const SORTS = ['trouble', 'name'] as const;

function text(value: Maybe): string {
  return value === null ? ABSENT : String(value);
}

/** "118 · 118 · 117": enqueued, started, completed. */
function counters(cell: GroupCell): string {
  return cell.at === null ? ABSENT : `${text(cell.at.last_enqueued)} · ${text(cell.at.last_started)} · ${text(cell.at.last_completed)}`;
}

function standingWords(cell: GroupCell): string {
  const open = cell.at?.open_operation ?? '';
  switch (cell.standing) {
    case 'no_record': return 'a member without a record';
    case 'behind': return `has not called the last ${plural(cell.behind_enqueued ?? 0, 'operation')} that others called${open ? `, is in ${open}` : ''}`;
    case 'device_behind': return `called ${open}, which others have completed`;
    case 'waiting': return `waits in ${open}`;
    default: return 'in step';
  }
}

function describe(cell: GroupCell, collected_ns: Maybe): string {
  const head = `Rank ${cell.rank} in ${groupLabel(cell.group)}: ${standingWords(cell)}`;
  if (cell.at === null) return head;
  const since = cell.at.open_since_unix_ns !== null && collected_ns !== null ? `; open for ${duration(collected_ns - cell.at.open_since_unix_ns)}` : '';
  const waits = cell.at.waits_for.length > 0 ? `; waits for ${rankList(cell.at.waits_for)}` : '';
  const ring = cell.at.oldest_retained !== null && cell.at.oldest_retained > 1 ? `; its record begins at #${cell.at.oldest_retained}` : '';
  return `${head}. Last enqueued ${text(cell.at.last_enqueued)}, started ${text(cell.at.last_started)}, completed ${text(cell.at.last_completed)}${since}${waits}${ring}`;
}

function Details({ cell, data }: { cell: GroupCell; data: HangData }) {
  const rank = data.ranks.find((each) => each.rank === cell.rank);
  return (
    <section class="details" aria-label={`Rank ${cell.rank} in ${groupLabel(cell.group)}`}>
      <h3>Rank {cell.rank}{rank?.host ? ` on ${rank.host}` : ''} in {groupLabel(cell.group)}</h3>
      <p>{describe(cell, data.job.collected_unix_ns)}.</p>
      {rank?.doing && <p>Now: {rank.doing}.</p>}
      {data.stacks.some((stack) => stack.ranks.includes(cell.rank)) && <p><a href={href('stacks', { rank: cell.rank })}>Its stack beside another’s</a></p>}
    </section>
  );
}

function Groups({ data }: ViewProps<HangData>) {
  const [shown, setShown] = useChoice('show', SHOWN, 'standing');
  const [sort, setSort] = useChoice('sort', SORTS, 'trouble');
  const [open, setOpen] = useParam('open', '');
  const cells = useMemo(() => groupCells(data.groups), [data]);
  const ranks = useMemo(() => [...new Set([...data.ranks.map((each) => each.rank), ...cells.map((cell) => cell.rank)])].sort((a, b) => a - b), [data, cells]);
  const width = ranks.length;
  const table = useMemo(() => {
    const column = new Map(ranks.map((rank, at) => [rank, at]));
    const row = new Map(data.groups.map((group, at) => [group, at]));
    const out: (GroupCell | undefined)[] = new Array(width * data.groups.length);
    for (const cell of cells) out[row.get(cell.group)! * width + column.get(cell.rank)!] = cell;
    return out;
  }, [cells, ranks]);
  const rows = useMemo(() => {
    const order = Uint32Array.from(data.groups.keys());
    if (sort === 'name') return order.sort((a, b) => groupLabel(data.groups[a]!).localeCompare(groupLabel(data.groups[b]!), 'en', { numeric: true }) || a - b);
    const weight = (at: number) => {
      const group = data.groups[at]!;
      if (group.name === data.verdict.group && (data.verdict.group_description ?? '') === (group.description ?? '')) return Infinity;
      let sum = 0;
      for (let c = 0; c < width; ++c) sum += [0, 1, 1000, 100, 10_000][STANDINGS.findIndex((each) => each.name === table[at * width + c]?.standing)] ?? 0;
      return sum;
    };
    const weights = data.groups.map((_, at) => weight(at));
    return order.sort((a, b) => (weights[a] === weights[b] ? a - b : weights[b]! - weights[a]!));
  }, [table, sort]);
  const behind = (cell: GroupCell | undefined): number => {
    if (!cell || cell.at === null) return NaN;
    if (shown === 'started') {
      const most = Math.max(-Infinity, ...cell.group.ranks.map((each) => each.last_started ?? -Infinity));
      return cell.at.last_started === null ? NaN : most - cell.at.last_started;
    }
    return (shown === 'completed' ? cell.behind_completed : cell.behind_enqueued) ?? NaN;
  };
  const [codes, most] = useMemo(() => {
    if (shown === 'standing') {
      const out = new Uint8Array(table.length).fill(CODE_NONE);
      for (let i = 0; i < table.length; ++i) if (table[i]) out[i] = STANDINGS.findIndex((each) => each.name === table[i]!.standing);
      return [out, 0] as const;
    }
    const values = Float64Array.from(table, behind);
    const high = Math.max(1, quantiles(values, [1])[0] || 1);
    const out = encode(values, 0, high);
    for (let i = 0; i < table.length; ++i) if (!table[i]) out[i] = CODE_NONE;
    return [out, high] as const;
  }, [table, shown]);
  const marks = useMemo(() => {
    const culprits = data.verdict.culprit_ranks.map((rank) => ranks.indexOf(rank)).filter((at) => at >= 0);
    const at = data.groups.findIndex((group) => group.name === data.verdict.group && (data.verdict.group_description ?? '') === (group.description ?? ''));
    return at < 0 ? [] : culprits.filter((column) => table[at * width + column]).map((column) => ({ row: at, column }));
  }, [table]);
  const lag = cells.filter((cell) => cell.standing === 'behind');
  const silent = cells.filter((cell) => cell.standing === 'no_record');
  const waiting = cells.filter((cell) => cell.standing === 'waiting' || cell.standing === 'device_behind');
  const uniq = (list: readonly GroupCell[]) => [...new Set(list.map((cell) => cell.rank))];
  const summary = `${plural(data.groups.length, 'group')} × ${plural(width, 'rank')}. ` +
    (waiting.length > 0 ? `${capital(rankList(uniq(waiting)))} ${uniq(waiting).length === 1 ? 'waits' : 'wait'}; ` : 'No rank waits; ') +
    (lag.length > 0 ? `${rankList(uniq(lag))} ${uniq(lag).length === 1 ? 'is' : 'are'} behind in a group.` : 'no rank is behind.') +
    (silent.length > 0 ? ` No record of ${rankList(uniq(silent))}.` : '');
  const name = (group: GroupCell['group']) => groupLabel(group);
  const key = (cell: GroupCell) => `${data.groups.indexOf(cell.group)},${cell.rank}`;
  const chosen = cells.find((cell) => key(cell) === open);
  const number = (id: string, title: string, of: (cell: GroupCell) => Maybe) => ({
    key: id, title, numeric: true, value: of, text: (cell: GroupCell) => text(of(cell)),
  });
  return (
    <>
      <Figure
        id="matrix"
        title={shown === 'standing' ? 'Where each rank stands in each group' : `How many operations behind the foremost: ${shown}`}
        summary={summary}
        controls={
          <>
            <Choice name="groups-show" label="Show" value={shown} onChange={setShown} options={SHOWN.map((value) => ({ value, label: value === 'standing' ? 'standing' : `last ${value}` }))} />
            <Choice name="groups-sort" label="Sort" value={sort} onChange={setSort} options={[{ value: 'trouble', label: 'trouble first' }, { value: 'name', label: 'name' }]} />
          </>
        }
        columns={[
          { key: 'group', title: 'Group', value: (cell) => name(cell.group), width: 40 },
          { key: 'rank', title: 'Rank', numeric: true, value: (cell) => cell.rank, text: (cell) => String(cell.rank) },
          { key: 'standing', title: 'Standing', value: (cell) => cell.standing, text: standingWords, width: 60 },
          number('last_enqueued', 'Last enqueued', (cell) => cell.at?.last_enqueued ?? null),
          number('last_started', 'Started', (cell) => cell.at?.last_started ?? null),
          number('last_completed', 'Completed', (cell) => cell.at?.last_completed ?? null),
          number('oldest_retained', 'Record from', (cell) => cell.at?.oldest_retained ?? null),
          { key: 'open_operation', title: 'Open', value: (cell) => cell.at?.open_operation || null },
          { key: 'waits_for', title: 'Waits for', value: (cell) => (cell.at && cell.at.waits_for.length > 0 ? rankList(cell.at.waits_for) : null), width: 30 },
        ]}
        rows={cells}
        rowKey={key}
        search={['group', 'rank', 'standing', 'open_operation']}
      >
        {shown === 'standing' && <Legend items={STANDINGS.filter(({ name: standing }) => cells.some((cell) => cell.standing === standing)).map(({ mark, label }) => ({ mark, label }))} />}
        <GridView
          id="groups-grid"
          label={`Groups by ranks. ${summary}`}
          codes={codes}
          row_count={data.groups.length}
          column_count={width}
          rows={rows}
          columns={null}
          rowLabel={(row) => groupShort(data.groups[row]!)}
          columnLabel={(column) => String(ranks[column])}
          row_title=""
          column_title="rank"
          valueText={(row, column) => {
            const cell = table[row * width + column];
            return !cell ? '' : shown === 'standing' ? counters(cell) : text(cell.at === null ? null : { enqueued: cell.at.last_enqueued, started: cell.at.last_started, completed: cell.at.last_completed }[shown]);
          }}
          describe={(row, column) => {
            const cell = table[row * width + column];
            return cell ? describe(cell, data.job.collected_unix_ns) : `Rank ${ranks[column]} is not in ${name(data.groups[row]!)}`;
          }}
          onOpen={(row, column) => {
            const cell = table[row * width + column];
            setOpen(cell && key(cell) !== open ? key(cell) : '');
          }}
          open_words="says more below"
          scale={['0 behind', `${count(most)} behind`, 'not a member']}
          classes={shown === 'standing' ? STANDINGS.map((each) => each.color) : undefined}
          marks={marks}
        />
        {shown === 'standing' && <p class="drawing-keys">In a cell: last enqueued · started · completed. Framed: where the verdict points to. Blank: not a member.</p>}
      </Figure>
      {chosen && <Details cell={chosen} data={data} />}
    </>
  );
}

export const groupsView: View<HangData> = {
  id: 'groups',
  title: 'Groups × ranks',
  shows: 'Who has called what: the last operation of every rank in every process group, enqueued, started and completed.',
  group: 'Evidence',
  missing: (data) => (data.groups.length > 0 ? null : 'No flight record tells of a process group.'),
  component: Groups,
};
