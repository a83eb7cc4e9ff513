import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useBlock } from '../app/blocks';
import { begin } from '../app/pending';
import { href, useParam, ViewContext } from '../app/route';
import type { AnalyzeData, DeclaredTable, PageSource } from '../data/types';
import { count, plural } from '../numbers';
import { Note, Waiting } from '../parts/controls';
import { DataTable, type Column } from '../parts/data_table';
import { PageDatabase, type SqlProgram } from '../sql/database';
import type { SqlAnswer, SqlCell } from '../sql/messages';
import { pageTables, type SqlTable } from '../sql/page_tables';
import type { View, ViewProps } from '../view';
import { unmarked } from './tables';

const MOST_ROWS = 10_000;

interface Example {
  title: string;
  /** Tables that it asks. */
  needs: readonly string[];
  sql: string;
}

/** Each for pages that have its tables; the first is what stands there at first. */
const EXAMPLES: readonly Example[] = [
  {
    title: 'the slowest step of each rank',
    needs: ['steps'],
    sql: `SELECT rank, step, format_ns(max(span_ns)) AS span, format_ns(compute_ns) AS compute,
       format_ns(exposed_communication_ns) AS exposed, format_ns(idle_ns) AS idle
FROM steps
GROUP BY rank`,
  },
  {
    title: 'who was last, and how long others waited',
    needs: ['collectives'],
    sql: `SELECT last_rank, count(DISTINCT instance) AS times, format_ns(sum(wait_ns)) AS waited, format_ns(max(wait_ns)) AS longest
FROM collectives
WHERE rank <> last_rank
GROUP BY last_rank
ORDER BY sum(wait_ns) DESC`,
  },
  {
    title: 'kernels, rank by rank',
    needs: ['kernels'],
    sql: `SELECT short_name(name, 60) AS kernel, rank, count(*) AS calls, format_ns(sum(duration_ns)) AS total, format_ns(median(duration_ns)) AS median
FROM kernels
GROUP BY name, rank
ORDER BY sum(duration_ns) DESC
LIMIT 100`,
  },
  {
    title: 'the longest gaps on device streams',
    needs: ['kernels'],
    sql: `SELECT rank, stream, step, format_ns(gap_ns) AS gap, short_name(name, 60) AS then_ran
FROM (SELECT *, start_ns - lag(end_ns) OVER (PARTITION BY track ORDER BY id) AS gap_ns FROM kernels)
ORDER BY gap_ns DESC
LIMIT 50`,
  },
  {
    title: 'longest events of the host',
    needs: ['events'],
    sql: `SELECT rank, lane, name, format_ns(duration_ns) AS duration, step
FROM events
WHERE lane IN ('operators', 'runtime', 'python')
ORDER BY duration_ns DESC
LIMIT 100`,
  },
  { title: 'every column of every table', needs: ['catalog'], sql: 'SELECT * FROM catalog' },
];

interface ResultRow {
  key: string;
  cells: readonly SqlCell[];
}

/** Columns by place: a statement may have two of one name. */
export function resultColumns({ columns, rows }: SqlAnswer): Column<ResultRow>[] {
  return columns.map((name, at) => ({
    key: columns.indexOf(name) === at ? name : `${name} (${at + 1})`,
    title: name,
    numeric: rows.length > 0 && rows.every((row) => row[at] === null || typeof row[at] === 'number'),
    value: (row) => row.cells[at]!,
    text: (row) => String(row.cells[at] ?? 'NULL'),
    width: 60,
  }));
}

function TableList({ tables }: { tables: readonly SqlTable[] }) {
  return (
    <section class="sql-tables screen-only" aria-labelledby="sql-tables">
      <h3 id="sql-tables">Tables</h3>
      <p class="muted">As <code>lockstep query</code> has them, over what is in the page. Instants count from the start of the run.</p>
      {tables.map((table) => (
        <details key={table.name} class="sql-table">
          <summary>
            <code>{table.name}</code> <span class="muted">
              {unmarked(table.sentence)}
              {table.row_count !== null && table.held_count !== null && (table.held_count < table.row_count
                ? `: the first ${count(table.held_count)} of ${plural(table.row_count, 'row')}` : `: ${plural(table.row_count, 'row')}`)}
            </span>
          </summary>
          <dl>
            {table.columns.map((column) => (
              <div key={column.name}>
                <dt><code>{column.name}</code> <span class="muted">{column.type}{column.unit && `, ${column.unit}`}</span></dt>
                <dd>{unmarked(column.meaning)}</dd>
              </div>
            ))}
          </dl>
        </details>
      ))}
    </section>
  );
}

type State =
  | { kind: 'idle' }
  | { kind: 'asking'; done: number; all: number }
  | { kind: 'failed'; message: string }
  | { kind: 'answered'; answer: SqlAnswer; taken_ms: number };

function Ask({ data, source, program, declared }: { data: AnalyzeData; source: PageSource; program: SqlProgram; declared: readonly DeclaredTable[] }) {
  const database = useMemo(() => new PageDatabase(program, pageTables(data, source, declared)), [data, source, program, declared]);
  useEffect(() => () => database.stop(), [database]);
  const tables = useMemo(() => database.sources.flatMap((each) => each.tables), [database]);
  const examples = useMemo(() => EXAMPLES.filter((each) => each.needs.every((name) => tables.some((table) => table.name === name))), [tables]);
  const [kept, keep] = useParam('q', '');
  const [text, setText] = useState(kept || examples[0]!.sql);
  const [state, setState] = useState<State>({ kind: 'idle' });
  const field = useRef<HTMLTextAreaElement>(null);

  const ask = async (sql: string) => {
    const ended = begin();
    const began = performance.now();
    keep(sql);
    setState({ kind: 'asking', done: 0, all: 0 });
    try {
      const answer = await database.ask(sql, MOST_ROWS, (done, all) => setState({ kind: 'asking', done, all }));
      setState({ kind: 'answered', answer, taken_ms: performance.now() - began });
    } catch (error) {
      setState({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
    }
    ended();
  };
  // A link with a question shows its answer.
  useEffect(() => {
    if (kept) void ask(kept);
  }, [database]);

  const asking = state.kind === 'asking';
  const columns = useMemo(() => (state.kind === 'answered' ? resultColumns(state.answer) : []), [state]);
  const rows = useMemo<ResultRow[]>(() => (state.kind === 'answered' ? state.answer.rows.map((cells, at) => ({ key: String(at), cells })) : []), [state]);
  return (
    <>
      <form
        class="sql screen-only"
        onSubmit={(event) => {
          event.preventDefault();
          if (!asking) void ask(text);
        }}
      >
        <label for="sql-text">One statement of SQLite's SQL; Ctrl and Enter asks</label>
        <textarea
          id="sql-text" ref={field} rows={Math.min(14, Math.max(5, text.split('\n').length))} spellcheck={false} autocapitalize="off" value={text}
          onInput={(event) => setText((event.target as HTMLTextAreaElement).value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            if (!asking) void ask(text);
          }}
        />
        <p class="choices">
          <button class="tool" type="submit" disabled={asking}>Ask</button>
          {asking && <button class="tool" type="button" onClick={() => database.stop()}>Stop</button>}
          <label class="select">
            <span>Examples</span>
            <select
              value="" onChange={(event) => {
                const example = examples[Number((event.target as HTMLSelectElement).value)];
                if (!example) return;
                setText(example.sql);
                (event.target as HTMLSelectElement).value = '';
                field.current?.focus();
              }}
            >
              <option value="">choose one</option>
              {examples.map((example, at) => <option key={example.title} value={at}>{example.title}</option>)}
            </select>
          </label>
        </p>
      </form>
      <div role="status" class="sql-status">
        {asking && <p class="muted">{state.all > 0 && state.done < state.all ? `Filling tables: ${count(state.done)} of ${count(state.all)} …` : 'Asking …'}</p>}
        {state.kind === 'answered' && (
          <p class="muted">
            {state.answer.has_more ? `The first ${count(MOST_ROWS)} rows; LIMIT, or lockstep query, has others` : plural(rows.length, 'row')}, {count(state.taken_ms)} ms.
          </p>
        )}
      </div>
      {state.kind === 'failed' && <div role="alert"><Note kind="warning">{state.message}</Note></div>}
      {state.kind === 'answered' && columns.length > 0 && (
        <DataTable key={columns.map((column) => column.key).join()} id="answer" caption="Answer" columns={columns} rows={rows} rowKey={(row) => row.key} empty="No rows." />
      )}
      <TableList tables={tables} />
    </>
  );
}

function Sql(props: ViewProps) {
  const { stacked } = useContext(ViewContext);
  // On paper, and among all the others, nobody asks: SQLite stays packed.
  return stacked ? <p><a href={href('sql')}>On a page of its own</a> any question about what is in this page is answered.</p> : <Unpacked {...props} />;
}

function Unpacked({ data, source }: ViewProps) {
  const program = useBlock(source, 'sql', () => source.sqlProgram());
  const declared = useBlock(source, 'tables', () => source.tables());
  if (program.state === 'failed') return <Note kind="warning">{program.message}</Note>;
  if (declared.state === 'failed') return <Note kind="warning">{declared.message}</Note>;
  if (program.state === 'loading' || declared.state === 'loading') return <Waiting what="SQLite" />;
  if (!program.value) return <Note>This page is too small for SQLite: <code>lockstep query</code> asks the traces themselves.</Note>;
  return <Ask data={data} source={source} program={program.value} declared={declared.value} />;
}

export const sqlView: View = {
  id: 'sql',
  title: 'Ask with SQL',
  shows: 'Any question about what is in the page, in SQL, answered in the browser.',
  group: 'Data',
  missing: (data) => (data.tables.length > 0 ? null : 'No analysis left a table.'),
  component: Sql,
};
