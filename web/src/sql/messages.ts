/** What the view of SQL and the worker that has the database say to each other. */

export type SqlCell = string | number | null;

/** Cells of one column of a chunk of rows. */
export type ColumnData =
  | { kind: 'cells'; cells: readonly SqlCell[] }
  /** NaN is NULL. */
  | { kind: 'numbers'; numbers: ArrayLike<number> }
  /** Of every row the same. */
  | { kind: 'same'; cell: SqlCell };

export type Request =
  /** SQLite's WebAssembly, once, before all else. */
  | { kind: 'open'; engine: Uint8Array }
  /** Statements that make tables and views. */
  | { kind: 'make'; sql: string }
  | { kind: 'fill'; table: string; columns: ColumnData[]; row_count: number }
  | { kind: 'ask'; sql: string; most_rows: number };

export interface SqlAnswer {
  columns: string[];
  /** Integers beyond 2^53 are texts. */
  rows: SqlCell[][];
  /** There were more than were asked for. */
  has_more: boolean;
}

export type Reply = { id: number; answer: SqlAnswer | null } | { id: number; error: string };
