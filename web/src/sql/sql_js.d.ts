/** What the worker uses of sql.js, whose package has no types; its README has what they do. */
declare module 'sql.js' {
  export type Value = number | string | Uint8Array | bigint | null;

  export interface Statement {
    run(values: readonly Value[]): void;
    step(): boolean;
    get(parameters: null, options: { useBigInt: boolean }): Value[];
    getColumnNames(): string[];
    free(): void;
  }

  export interface StatementIterator {
    next(): { done: true } | { done: false; value: Statement };
    getRemainingSQL(): string;
  }

  export interface Database {
    run(sql: string): void;
    prepare(sql: string): Statement;
    iterateStatements(sql: string): StatementIterator;
    /** SQLite takes the number of arguments from `length`. */
    create_function(name: string, call: (...values: never[]) => Value): void;
    /** So here; the state is the first argument, and does not count. */
    create_aggregate<State>(name: string, of: { init: () => State; step: (state: State, ...values: never[]) => State; finalize: (state: State) => Value }): void;
  }

  export default function initSqlJs(options: { wasmBinary: ArrayBuffer }): Promise<{ Database: new () => Database }>;
}
