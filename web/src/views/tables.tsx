import { useMemo } from 'preact/hooks';
import { useBlock } from '../app/blocks';
import { href, useParam } from '../app/route';
import { ABSENT, bytes, capital, count, duration, number, percent, plural, rate } from '../numbers';
import type { DeclaredCell, DeclaredTable } from '../data/types';
import { Note, Select, Waiting } from '../parts/controls';
import { DataTable, type Column } from '../parts/data_table';
import type { View, ViewProps } from '../view';

type DeclaredColumn = DeclaredTable['columns'][number];

interface Row {
  key: string;
  cells: readonly DeclaredCell[];
}

const TEXT_WIDTH = 40;
const WORDS: Record<string, (value: number) => string> = { ns: duration, bytes, count, '0..1': percent, 'bytes/s': rate };

/** A sentence of the documents, which mark names. */
export const unmarked = (sentence: string) => sentence.replaceAll('`', '');
const plain = (cell: DeclaredCell): string => (cell === null ? ABSENT : typeof cell === 'object' ? JSON.stringify(cell) : String(cell));

/** A number in the words of its unit; those that name something, such as ranks and steps, as they are. */
export function words(column: DeclaredColumn, cell: DeclaredCell): string {
  if (cell === null) return ABSENT;
  if (Array.isArray(cell)) return cell.length === 0 ? 'none' : cell.map((item) => words(column, item)).join(column.type === 'object' ? '; ' : ', ');
  if (typeof cell === 'object') return Object.entries(cell).map(([name, value]) => `${name} ${plain(value)}`).join(', ');
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  if (typeof cell === 'string') return cell;
  const say = WORDS[column.unit];
  if (say) return say(cell);
  return column.type === 'real' ? number(cell) : String(cell);
}

export function columnOf(column: DeclaredColumn, at: number): Column<Row> {
  const numeric = !column.is_list && (column.type === 'integer' || column.type === 'real');
  return {
    key: column.name,
    title: capital(column.name.replace(/_(ns|bytes|ratio)$/, '').replaceAll('_', ' ')),
    help: unmarked(column.meaning),
    numeric,
    ...(column.type === 'text' || column.type === 'object' || column.is_list ? { width: TEXT_WIDTH } : {}),
    // As --csv has it.
    value: (row) => {
      const cell = row.cells[at]!;
      return typeof cell === 'boolean' || (typeof cell === 'object' && cell !== null) ? JSON.stringify(cell) : cell;
    },
    text: (row) => words(column, row.cells[at]!),
  };
}

function Rows({ table, rowCount }: { table: DeclaredTable; rowCount: number }) {
  const shown = useMemo(() => table.columns.flatMap((column, at) => (column.in_json ? [{ column, at }] : [])), [table]);
  const columns = useMemo(() => shown.map(({ column, at }) => columnOf(column, at)), [shown]);
  const rows = useMemo(() => table.rows.map((cells, at) => ({ key: String(at), cells })), [table]);
  const texts = shown.filter(({ column }) => column.type === 'text').map(({ column }) => column.name);
  return (
    <>
      {rows.length < rowCount && <Note>The first {count(rows.length)} of {count(rowCount)} rows; --json and --csv have all.</Note>}
      <DataTable
        key={table.name}
        id={table.name}
        caption={table.name}
        columns={columns}
        rows={rows}
        rowKey={(row) => row.key}
        {...(texts.length > 0 ? { search: texts } : {})}
      />
    </>
  );
}

function Tables({ source, data }: ViewProps) {
  const [choice, choose] = useParam('table', data.tables[0]!.name);
  const facts = data.tables.find((table) => table.name === choice) ?? data.tables[0]!;
  const tables = useBlock(source, 'tables', () => source.tables());
  const table = tables.state === 'ready' ? tables.value.find((each) => each.name === facts.name) : undefined;
  return (
    <>
      <Select
        label="Table"
        value={facts.name}
        options={data.tables.map((each) => ({ value: each.name, label: `${each.name} (${plural(each.row_count, 'row')})` }))}
        onChange={choose}
      />
      <p>{unmarked(facts.sentence)}.{facts.sql_name !== null && <> <code>SELECT * FROM {facts.sql_name}</code> asks for more, <a href={href('sql', { q: `SELECT * FROM ${facts.sql_name} LIMIT 100` })}>here</a> or in <code>lockstep query</code>.</>}</p>
      {tables.state === 'failed' && <Note kind="warning">{tables.message}</Note>}
      {tables.state === 'loading' && <Waiting what="the tables" />}
      {table && <Rows table={table} rowCount={facts.row_count} />}
    </>
  );
}

export const tablesView: View = {
  id: 'tables',
  title: 'All tables',
  shows: 'Every table of the analyses as it is, to sort, search and save.',
  group: 'Data',
  missing: (data) => (data.tables.length > 0 ? null : 'No analysis left a table.'),
  component: Tables,
};
