/** SQLite in a thread of its own: a long query leaves the page as it is, and ends with its worker. What it is asked: messages.ts. */
import initSqlJs, { type Database } from 'sql.js';
import { AGGREGATES, SCALARS } from './functions';
import type { ColumnData, Reply, Request, SqlAnswer, SqlCell } from './messages';

let database: Database | null = null;

function withLength<F extends (...values: never[]) => unknown>(length: number, call: F): F {
  return Object.defineProperty(call, 'length', { value: length });
}

function addFunctions(of: Database): void {
  for (const scalar of SCALARS) {
    of.create_function(scalar.name, withLength(scalar.argument_count, (...values: SqlCell[]) => (values.includes(null) ? null : scalar.of(...(values as (string | number)[])))));
  }
  for (const { name, argument_count, begin } of AGGREGATES) {
    of.create_aggregate(name, {
      init: begin,
      step: withLength(argument_count + 1, (group: ReturnType<typeof begin>, ...values: SqlCell[]) => {
        group.add(values);
        return group;
      }),
      finalize: (group) => group.end(),
    });
  }
}

async function open(engine: Uint8Array): Promise<void> {
  const sqlite = await initSqlJs({ wasmBinary: engine.buffer as ArrayBuffer });
  database = new sqlite.Database();
  addFunctions(database);
}

function cellOf(column: ColumnData, row: number): SqlCell {
  if (column.kind === 'same') return column.cell;
  if (column.kind === 'cells') return column.cells[row]!;
  const value = column.numbers[row]!;
  return Number.isNaN(value) ? null : value;
}

function fill(of: Database, table: string, columns: readonly ColumnData[], row_count: number): void {
  of.run('PRAGMA query_only = OFF; BEGIN');
  const insert = of.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => '?').join(', ')})`);
  try {
    for (let row = 0; row < row_count; ++row) insert.run(columns.map((column) => cellOf(column, row)));
  } finally {
    insert.free();
    of.run('COMMIT');
  }
}

/** A number where it is exact, else its digits. */
function plain(value: unknown): SqlCell {
  if (typeof value === 'bigint') return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value.toString();
  if (value instanceof Uint8Array) return Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return value as SqlCell;
}

function ask(of: Database, sql: string, most_rows: number): SqlAnswer {
  of.run('PRAGMA query_only = ON');
  const statements = of.iterateStatements(sql);
  const first = statements.next();
  if (first.done) throw new Error('There is no statement.');
  const statement = first.value;
  const rest = statements.getRemainingSQL().replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '').replaceAll(';', '').trim();
  if (rest !== '') throw new Error('One statement at a time.');
  const answer: SqlAnswer = { columns: statement.getColumnNames(), rows: [], has_more: false };
  while (statement.step()) {
    if (answer.rows.length === most_rows) {
      answer.has_more = true;
      break;
    }
    answer.rows.push(statement.get(null, { useBigInt: true }).map(plain));
  }
  statement.free();
  return answer;
}

async function done(request: Request): Promise<SqlAnswer | null> {
  if (request.kind === 'open') {
    await open(request.engine);
    return null;
  }
  if (!database) throw new Error('The database is not open.');
  if (request.kind === 'ask') return ask(database, request.sql, request.most_rows);
  if (request.kind === 'fill') fill(database, request.table, request.columns, request.row_count);
  else database.run(request.sql);
  return null;
}

self.onmessage = (event: MessageEvent<{ id: number; request: Request }>) => {
  const { id, request } = event.data;
  done(request).then(
    (answer) => self.postMessage({ id, answer } satisfies Reply),
    (error: unknown) => self.postMessage({ id, error: error instanceof Error ? error.message : String(error) } satisfies Reply),
  );
};
