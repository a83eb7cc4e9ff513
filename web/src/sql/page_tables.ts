/**
 * The tables that SQL finds in the page: named, and with columns named, as in `lockstep query` (docs/query.md), over what the page has. Instants count
 * from the start of the run, as everywhere on the page: they are exact in JavaScript's numbers.
 */
import { TIMELINE_CLASSES, type AnalyzeData, type DeclaredCell, type DeclaredTable, type PageSource, type TrackEvents } from '../data/types';
import type { ColumnData, SqlCell } from './messages';

export interface SqlColumn {
  name: string;
  type: 'integer' | 'real' | 'text' | 'boolean' | 'json';
  unit: string;
  meaning: string;
}

export interface SqlTable {
  name: string;
  sentence: string;
  columns: SqlColumn[];
  /** Of the run; null: not known before it is filled. */
  row_count: number | null;
  /** That the page has; less where it was left out of it. */
  held_count: number | null;
}

export interface Chunk {
  table: string;
  columns: ColumnData[];
  row_count: number;
}

/** What is filled at once: tables, and views of them. */
export interface SqlSource {
  tables: SqlTable[];
  /** Makes them, empty. */
  make: string[];
  /** How many steps filling takes, and what it fills them with. */
  step_count: number;
  chunks: () => AsyncGenerator<Chunk[]>;
}

type Declared = DeclaredTable['columns'][number];

const AFFINITY: Record<SqlColumn['type'], string> = { integer: 'INTEGER', real: 'REAL', text: 'TEXT', boolean: 'INTEGER', json: 'TEXT' };
const INSTANT = 'ns, aligned clock';
const FROM_START = 'ns after the start of the run';

const makeTable = (name: string, columns: readonly SqlColumn[]) => `CREATE TABLE ${name} (${columns.map((column) => `${column.name} ${AFFINITY[column.type]}`).join(', ')})`;
const column = (name: string, type: SqlColumn['type'], meaning: string, unit = ''): SqlColumn => ({ name, type, unit, meaning });
const cells = (all: readonly SqlCell[]): ColumnData => ({ kind: 'cells', cells: all });
const same = (cell: SqlCell): ColumnData => ({ kind: 'same', cell });
const numbers = (all: ArrayLike<number>): ColumnData => ({ kind: 'numbers', numbers: all });

/** From which instant a row's rank counts. */
function originOf(data: AnalyzeData, columns: readonly Declared[]): (row: readonly DeclaredCell[]) => bigint {
  const job = BigInt(data.job.origin_ns);
  const [rank_at, window_at] = ['rank', 'window'].map((name) => columns.findIndex((each) => each.in_sql && each.name === name));
  if (rank_at! < 0) return () => job;
  const origins = new Map(data.ranks.map((rank) => [`${rank.rank} ${rank.window}`, BigInt(rank.origin_ns)]));
  return (row) => origins.get(`${row[rank_at!]} ${window_at! < 0 ? 0 : row[window_at!]}`) ?? job;
}

function cellOf(cell: DeclaredCell): SqlCell {
  if (typeof cell === 'boolean') return cell ? 1 : 0;
  return typeof cell === 'object' && cell !== null ? JSON.stringify(cell) : cell;
}

function declaredSource(data: AnalyzeData, table: DeclaredTable): SqlSource | null {
  const facts = data.tables.find((each) => each.name === table.name);
  if (!facts || facts.sql_name === null) return null;
  const name = facts.sql_name;
  const places = table.columns.flatMap((each, at) => (each.in_sql ? [at] : []));
  const columns = places.map((at): SqlColumn => {
    const { name: own, type, is_list, unit, meaning } = table.columns[at]!;
    return { name: own, type: is_list || type === 'object' ? 'json' : type, unit: unit === INSTANT ? FROM_START : unit, meaning };
  });
  return {
    tables: [{ name, sentence: facts.sentence, columns, row_count: facts.row_count, held_count: table.rows.length }],
    make: [makeTable(name, columns)],
    step_count: 1,
    async *chunks() {
      const origin = originOf(data, table.columns);
      yield [{
        table: name,
        row_count: table.rows.length,
        columns: places.map((at) => cells(table.rows.map((row) => {
          const cell = cellOf(row[at]!);
          return cell !== null && table.columns[at]!.unit === INSTANT ? Number(BigInt(cell) - origin(row)) : cell;
        }))),
      }];
    },
  };
}

const RANK_COLUMNS = [
  column('rank', 'integer', 'Global rank of the process.'),
  column('window', 'integer', '0 for the first trace of this rank in time, and so on.'),
];
const DEVICE_COLUMNS = [column('device', 'integer', 'Device ordinal.'), column('stream', 'integer', 'Stream.')];

/** What tables of instances and of members have alike. */
const COLLECTIVE_COLUMNS = [
  column('instance', 'integer', 'Number of the collective, in order of first arrival; both tables share it.'),
  column('group_name', 'text', 'Process group.'),
  column('sequence', 'integer', 'Sequence number in the group.'),
  column('name', 'text', 'all_reduce, all_gather, ...'),
  column('bytes', 'integer', 'Size of the whole buffer.', 'bytes'),
];

const MEMBER_COLUMNS = [
  ...COLLECTIVE_COLUMNS,
  ...RANK_COLUMNS,
  column('arrival_ns', 'integer', "Start of this rank's kernel or range.", FROM_START),
  column('end_ns', 'integer', 'End of it.', FROM_START),
  column('wait_ns', 'integer', 'How long it waited for the last to arrive.', 'ns'),
  column('last_rank', 'integer', 'The rank that arrived last.'),
];

const INSTANCE_COLUMNS = [
  ...COLLECTIVE_COLUMNS,
  column('step', 'integer', 'Step in which it was.'),
  column('rank_count', 'integer', 'Ranks that have it.', 'count'),
  column('first_arrival_ns', 'integer', 'Earliest arrival.', FROM_START),
  column('last_arrival_ns', 'integer', 'Latest arrival.', FROM_START),
  column('last_rank', 'integer', 'The rank that arrived last.'),
  column('wait_ns', 'integer', 'Waiting of all members together.', 'ns'),
  column('transfer_ns', 'integer', 'Time of the collective itself after all have arrived.', 'ns'),
  column('busbw_bytes_per_s', 'real', "Bus bandwidth, by nccl-tests' factors.", 'bytes/s'),
];

const MEMBERS_AT_ONCE = 20_000;

function collectiveSource(data: AnalyzeData, source: PageSource): SqlSource {
  const rankOf = (rank_index: number | null) => (rank_index === null ? null : data.ranks[rank_index]!.rank);
  return {
    tables: [
      { name: 'collective_instances', sentence: 'One row per collective, over all ranks', columns: INSTANCE_COLUMNS, row_count: data.collective_count, held_count: null },
      { name: 'collectives', sentence: 'One row per collective and rank that took part', columns: MEMBER_COLUMNS, row_count: null, held_count: null },
    ],
    make: [makeTable('collective_instances', INSTANCE_COLUMNS), makeTable('collectives', MEMBER_COLUMNS)],
    step_count: Math.max(1, data.collective_count),
    async *chunks() {
      const table = await source.collectives();
      if (!table) return;
      let instances: SqlCell[][] = INSTANCE_COLUMNS.map(() => []);
      let members: SqlCell[][] = MEMBER_COLUMNS.map(() => []);
      const take = (): Chunk[] => {
        const chunks = [
          { table: 'collective_instances', columns: instances.map(cells), row_count: instances[0]!.length },
          { table: 'collectives', columns: members.map(cells), row_count: members[0]!.length },
        ];
        instances = INSTANCE_COLUMNS.map(() => []);
        members = MEMBER_COLUMNS.map(() => []);
        return chunks;
      };
      for (let index = 0; index < table.count; ++index) {
        const one = table.instance(index);
        const of = table.members(index);
        const last_rank = rankOf(one.last_rank_index);
        const common: SqlCell[] = [index, one.group, one.sequence, one.name, one.bytes];
        [...common, one.step_number, of.length, one.first_arrival_ns, one.last_arrival_ns, last_rank, one.total_wait_ns, one.transfer_ns, one.busbw_bytes_per_s]
          .forEach((cell, at) => instances[at]!.push(cell));
        for (const member of of) {
          const { rank, window } = data.ranks[member.rank_index]!;
          [...common, rank, window, member.arrival_ns, member.end_ns, member.wait_ns, last_rank].forEach((cell, at) => members[at]!.push(cell));
        }
        if (members[0]!.length >= MEMBERS_AT_ONCE) yield take();
      }
      yield take();
    },
  };
}

const TRACK_COLUMNS = [
  ...RANK_COLUMNS,
  column('track', 'integer', 'Number of the track: what events.track and kernels.track mean.'),
  column('lane', 'text', 'What it holds: operators, python, runtime, device, device_annotation, other.'),
  column('process_id', 'integer', 'pid of the file; the ordinal on devices.'),
  column('thread_id', 'integer', 'tid of the file; the stream on devices.'),
  column('label', 'text', 'As the timeline calls it.'),
  ...DEVICE_COLUMNS,
  column('event_count', 'integer', 'Events on it that the page has.', 'count'),
];

const EVENT_COLUMNS = [
  column('id', 'integer', 'Number of the event in the page; events and kernels share it.'),
  ...RANK_COLUMNS,
  column('track', 'integer', 'Thread or stream it is on: tracks.track.'),
  column('lane', 'text', 'What the track holds.'),
  column('class', 'text', 'compute, communication, memory or host, as the timeline has it.'),
  column('name', 'text', 'As in the trace, whole.'),
  column('start_ns', 'integer', 'Start.', FROM_START),
  column('end_ns', 'integer', 'End.', FROM_START),
  column('duration_ns', 'integer', 'Duration.', 'ns'),
  ...DEVICE_COLUMNS,
  column('depth', 'integer', 'How many events of the track it lies in.', 'count'),
  column('step', 'integer', 'Step in whose window it starts.'),
];

const KERNEL_COLUMNS = [
  ...EVENT_COLUMNS.filter(({ name }) => ['id', 'rank', 'window', 'track', 'device', 'stream', 'name'].includes(name)),
  column('kind', 'text', 'compute, communication, memcpy or memset.'),
  ...EVENT_COLUMNS.filter(({ name }) => ['start_ns', 'end_ns', 'duration_ns', 'step'].includes(name)),
  column('launch_start_ns', 'integer', 'Start of the call that launched it.', FROM_START),
  column('launch_end_ns', 'integer', 'End of that call.', FROM_START),
];

/** Names are kept once, and what all events of a track share with the track. */
const MAKE_EVENTS = [
  makeTable('tracks', TRACK_COLUMNS),
  'CREATE TABLE event_names (name_id INTEGER PRIMARY KEY, name TEXT)',
  'CREATE TABLE event_rows (id INTEGER PRIMARY KEY, track INTEGER, name_id INTEGER, class TEXT, start_ns INTEGER, duration_ns INTEGER, depth INTEGER, step INTEGER, launch INTEGER)',
  'CREATE INDEX track_number ON tracks (track)',
  `CREATE VIEW events AS
   SELECT e.id, t.rank, t.window, e.track, t.lane, e.class, n.name, e.start_ns, e.start_ns + e.duration_ns AS end_ns, e.duration_ns, t.device, t.stream, e.depth, e.step
   FROM event_rows AS e JOIN tracks AS t ON t.track = e.track JOIN event_names AS n ON n.name_id = e.name_id`,
  `CREATE VIEW kernels AS
   SELECT e.id, t.rank, t.window, e.track, t.device, t.stream, n.name,
          CASE WHEN e.class = 'memory' THEN iif(n.name LIKE 'memset%', 'memset', 'memcpy') ELSE e.class END AS kind,
          e.start_ns, e.start_ns + e.duration_ns AS end_ns, e.duration_ns, e.step, l.start_ns AS launch_start_ns, l.start_ns + l.duration_ns AS launch_end_ns
   FROM event_rows AS e JOIN tracks AS t ON t.track = e.track JOIN event_names AS n ON n.name_id = e.name_id LEFT JOIN event_rows AS l ON l.id = e.launch
   WHERE t.lane = 'device'`,
];

interface StepWindow {
  step: number;
  start_ns: number;
  end_ns: number;
}

/** Windows of a rank's steps, by start; none where the page has not the whole table. */
function stepsByRank(data: AnalyzeData, tables: readonly DeclaredTable[]): Map<string, StepWindow[]> {
  const windows = new Map<string, StepWindow[]>();
  const table = tables.find((each) => each.name === 'steps');
  if (!table || table.rows.length < (data.tables.find((each) => each.name === 'steps')?.row_count ?? 0)) return windows;
  const at = (name: string) => table.columns.findIndex((each) => each.in_sql && each.name === name);
  const [rank, window, step, start, end] = [at('rank'), at('window'), at('step'), at('start_ns'), at('end_ns')];
  const origin = originOf(data, table.columns);
  const instant = (row: readonly DeclaredCell[], place: number) => Number(BigInt(row[place] as string | number) - origin(row));
  for (const row of table.rows) {
    const key = `${row[rank]} ${row[window]}`;
    const own = windows.get(key) ?? [];
    own.push({ step: row[step] as number, start_ns: instant(row, start), end_ns: instant(row, end) });
    windows.set(key, own);
  }
  for (const own of windows.values()) own.sort((a, b) => a.start_ns - b.start_ns);
  return windows;
}

/** The step in which each event of a track starts; NaN: in none. Both are sorted by start. */
export function stepsOf(starts: ArrayLike<number>, steps: readonly StepWindow[]): Float64Array {
  const found = new Float64Array(starts.length).fill(NaN);
  let at = 0;
  for (let event = 0; event < starts.length; ++event) {
    while (at + 1 < steps.length && steps[at + 1]!.start_ns <= starts[event]!) ++at;
    const step = steps[at];
    if (step && step.start_ns <= starts[event]! && starts[event]! < step.end_ns) found[event] = step.step;
  }
  return found;
}

function eventSource(data: AnalyzeData, source: PageSource, tables: readonly DeclaredTable[]): SqlSource {
  const table = (name: string, sentence: string, columns: SqlColumn[]): SqlTable => ({ name, sentence, columns, row_count: null, held_count: null });
  return {
    tables: [
      table('events', 'Every event that the page has: operators, annotations, Python frames, runtime calls, device work', EVENT_COLUMNS),
      table('kernels', 'Every device event that the page has: kernels, copies and sets', KERNEL_COLUMNS),
      table('tracks', 'One row per CPU thread and device stream of a rank', TRACK_COLUMNS),
    ],
    make: MAKE_EVENTS,
    step_count: data.ranks.length,
    async *chunks() {
      const names = await source.names();
      yield [{ table: 'event_names', columns: [numbers(Float64Array.from(names.keys())), cells(names)], row_count: names.length }];
      const windows = stepsByRank(data, tables);
      let track_number = 0;
      let first_id = 0;
      for (let rank_index = 0; rank_index < data.ranks.length; ++rank_index) {
        const tracks = (await source.events(rank_index)) ?? [];
        const { rank, window } = data.ranks[rank_index]!;
        const steps = windows.get(`${rank} ${window}`) ?? [];
        const first_track = track_number;
        yield [
          { table: 'tracks', columns: trackColumns(rank, window, first_track, tracks), row_count: tracks.length },
          ...tracks.map((track) => ({ table: 'event_rows', columns: eventColumns(track, track_number++, first_id, steps), row_count: track.name.length })),
        ];
        first_id += tracks.reduce((sum, track) => sum + track.name.length, 0);
      }
    },
  };
}

const onDevice = (track: TrackEvents) => track.lane === 'device' || track.lane === 'device_annotation';

function trackColumns(rank: number, window: number, first: number, tracks: readonly TrackEvents[]): ColumnData[] {
  const device = (of: (track: TrackEvents) => number) => cells(tracks.map((track) => (onDevice(track) ? of(track) : null)));
  return [
    same(rank), same(window), numbers(tracks.map((_, at) => first + at)), cells(tracks.map((track) => track.lane)),
    numbers(tracks.map((track) => track.process_id)), numbers(tracks.map((track) => track.thread_id)), cells(tracks.map((track) => track.label)),
    device((track) => track.process_id), device((track) => track.thread_id), numbers(tracks.map((track) => track.name.length)),
  ];
}

function eventColumns(track: TrackEvents, number: number, first_id: number, steps: readonly StepWindow[]): ColumnData[] {
  const count = track.name.length;
  const ids = Float64Array.from({ length: count }, (_, at) => first_id + track.first + at);
  const launches = track.launch ? numbers(Float64Array.from(track.launch, (place) => (place < 0 ? NaN : first_id + place))) : same(null);
  return [
    numbers(ids), same(number), numbers(track.name), cells(Array.from(track.class, (kind) => TIMELINE_CLASSES[kind] ?? null)),
    numbers(track.start_ns), numbers(track.duration_ns), numbers(track.level), numbers(stepsOf(track.start_ns, steps)), launches,
  ];
}

const CATALOG_COLUMNS = [
  column('table_name', 'text', 'Table.'), column('column_name', 'text', 'Column.'), column('type', 'text', 'integer, real, text, boolean (0 or 1) or JSON text.'),
  column('unit', 'text', 'Unit.'), column('meaning', 'text', 'What it says.'),
];

function catalogSource(of: readonly SqlTable[]): SqlSource {
  const rows = of.flatMap((table) => table.columns.map((each): SqlCell[] => [table.name, each.name, each.type, each.unit === '' ? null : each.unit, each.meaning]));
  return {
    tables: [{ name: 'catalog', sentence: 'Every column of every table', columns: CATALOG_COLUMNS, row_count: rows.length, held_count: rows.length }],
    make: [makeTable('catalog', CATALOG_COLUMNS)],
    step_count: 1,
    async *chunks() {
      yield [{ table: 'catalog', columns: CATALOG_COLUMNS.map((_, at) => cells(rows.map((row) => row[at]!))), row_count: rows.length }];
    },
  };
}

/** Everything that SQL may ask of the page; `tables` is its block of that name. */
export function pageTables(data: AnalyzeData, source: PageSource, tables: readonly DeclaredTable[]): SqlSource[] {
  const sources = [
    ...(data.timeline?.has_events ? [eventSource(data, source, tables)] : []),
    ...(data.collective_count > 0 ? [collectiveSource(data, source)] : []),
    ...tables.flatMap((table) => declaredSource(data, table) ?? []),
  ];
  return [...sources, catalogSource(sources.flatMap((each) => each.tables))];
}

/** Those whose tables a statement may mean: it has their name as a word. */
export function sourcesIn(sql: string, sources: readonly SqlSource[]): SqlSource[] {
  const words = new Set(sql.toLowerCase().match(/[a-z_][a-z0-9_]*/g));
  return sources.filter((source) => source.tables.some((table) => words.has(table.name)));
}
