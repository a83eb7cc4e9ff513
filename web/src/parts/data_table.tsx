import type { ComponentChildren } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useParam, ViewContext } from '../app/route';
import { ABSENT, count, NOT_MEASURED } from '../numbers';
import { csvText, saveCsv } from './save';

export type Value = string | number | null | undefined;

export interface Column<Row> {
  /** Also the heading in CSV files: in base units, such as "total_ns". */
  key: string;
  title: string;
  /** The raw value: what is sorted by and exported. null = not measured, sorted last either way. */
  value: (row: Row) => Value;
  /** What is shown; the raw value when absent. */
  text?: (row: Row) => string;
  /** Shown instead of text; `text` still tells what is searched. */
  render?: (row: Row) => ComponentChildren;
  /** Numbers stand to the right. */
  numeric?: boolean;
  /** A sentence for the heading's tooltip. */
  help?: string;
  /** Columns grow with their text up to here, in ch. */
  width?: number;
}

export interface DataTableProps<Row> {
  /** Prefix of its choices in the address, and name of its file. Unique in the view. */
  id: string;
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** Column key, with "-" in front for descending. */
  sort?: string;
  /** Of these columns; without, there is no search field. */
  search?: readonly string[];
  /** Makes rows selectable: by mouse, and by a button in the first cell. */
  onSelect?: (row: Row | null) => void;
  selected?: string | null;
  empty?: string;
}

const ROW_HEIGHT = 30;
const VIRTUAL_FROM = 120;
const WINDOW_ROWS = 18;
const PRINT_ROWS = 40;

export function sortRows<Row>(rows: readonly Row[], column: Column<Row> | undefined, descending: boolean): Row[] {
  const sorted = [...rows];
  if (!column) return sorted;
  const sign = descending ? -1 : 1;
  return sorted
    .map((row, at) => ({ row, at, value: column.value(row) }))
    .sort((a, b) => {
      const x = a.value ?? null;
      const y = b.value ?? null;
      if (x === null || y === null) return x === y ? a.at - b.at : x === null ? 1 : -1;
      if (typeof x === 'number' && typeof y === 'number') return sign * (x - y) || a.at - b.at;
      return sign * String(x).localeCompare(String(y), 'en', { numeric: true }) || a.at - b.at;
    })
    .map(({ row }) => row);
}

function shown<Row>(column: Column<Row>, row: Row): string {
  if (column.text) return column.text(row);
  const value = column.value(row);
  if (value === null || value === undefined) return ABSENT;
  return typeof value === 'number' ? count(value) : value;
}

/**
 * A table that can be searched, sorted and saved. Draws only the rows in view, so 100,000 rows are no burden.
 * Keyboard: headings are buttons; in a table with selectable rows arrow keys, Home and End move from row to row.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { id, caption, columns, rows, rowKey, onSelect, selected } = props;
  const { stacked } = useContext(ViewContext);
  const [query, setQuery] = useParam(`${id}.find`, '');
  const [order, setOrder] = useParam(`${id}.sort`, props.sort ?? '');
  const [top, setTop] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const focusRow = useRef<number | null>(null);

  const descending = order.startsWith('-');
  const sortKey = order.replace(/^-/, '');
  const sorted = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const searched = columns.filter((column) => props.search?.includes(column.key));
    const kept =
      words.length === 0
        ? rows
        : rows.filter((row) => {
            const text = searched.map((column) => `${column.value(row) ?? ''} ${shown(column, row)}`).join(' ').toLowerCase();
            return words.every((word) => text.includes(word));
          });
    return sortRows(kept, columns.find((column) => column.key === sortKey), descending);
  }, [rows, columns, query, sortKey, descending]);

  const virtual = !stacked && sorted.length > VIRTUAL_FROM;
  const first = virtual ? Math.max(0, Math.min(Math.floor(top / ROW_HEIGHT) - 6, sorted.length - WINDOW_ROWS - 12)) : 0;
  const last = virtual ? Math.min(sorted.length, first + WINDOW_ROWS + 12) : stacked ? Math.min(sorted.length, PRINT_ROWS) : sorted.length;

  useEffect(() => {
    if (focusRow.current === null) return;
    const button = box.current?.querySelector<HTMLElement>(`[data-row="${focusRow.current}"] button`);
    if (button) {
      focusRow.current = null;
      button.focus();
    }
  });

  const moveTo = (index: number) => {
    const next = Math.max(0, Math.min(sorted.length - 1, index));
    focusRow.current = next;
    const scroller = box.current;
    if (virtual && scroller) {
      const at = next * ROW_HEIGHT;
      if (at < scroller.scrollTop || at > scroller.scrollTop + scroller.clientHeight - 3 * ROW_HEIGHT) {
        scroller.scrollTop = Math.max(0, at - 4 * ROW_HEIGHT);
      }
      setTop(scroller.scrollTop);
    }
    scroller?.querySelector<HTMLElement>(`[data-row="${next}"] button`)?.focus();
  };
  const onKey = (event: KeyboardEvent, index: number) => {
    const step: Record<string, number> = {
      ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: sorted.length - 1, PageDown: index + 15, PageUp: index - 15,
    };
    const next = step[event.key];
    if (next === undefined) return;
    event.preventDefault();
    moveTo(next);
  };
  const sortBy = (column: Column<Row>) => {
    // Numbers begin with the largest, texts with the first.
    const start = column.numeric ? `-${column.key}` : column.key;
    const other = column.numeric ? column.key : `-${column.key}`;
    setOrder(order === start ? other : start);
  };
  const saveRows = () =>
    saveCsv(`lockstep-${id}`, csvText(columns.map((column) => column.key), sorted.map((row) => columns.map((column) => column.value(row)))));

  return (
    <div class="table">
      <div class="table-bar">
        <span class="table-caption" id={`${id}-caption`}>
          {caption}
          <span class="muted" role="status">
            {' '}
            {sorted.length === rows.length ? count(rows.length) : `${count(sorted.length)} of ${count(rows.length)}`}
          </span>
        </span>
        <span class="tools">
          {props.search && (
            <input
              type="search"
              placeholder="Search"
              aria-label={`Search: ${caption}`}
              value={query}
              onInput={(event) => setQuery((event.target as HTMLInputElement).value)}
            />
          )}
          <button type="button" class="tool" onClick={saveRows} aria-label={`Save as CSV: ${caption}`}>
            CSV
          </button>
        </span>
      </div>
      <div
        class={!stacked && sorted.length > WINDOW_ROWS ? 'table-box long' : 'table-box'}
        ref={box}
        tabIndex={0}
        role="region"
        aria-labelledby={`${id}-caption`}
        onScroll={virtual ? (event) => setTop((event.currentTarget as HTMLElement).scrollTop) : undefined}
      >
        <table aria-labelledby={`${id}-caption`} aria-rowcount={sorted.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column) => (
                <th
                  key={column.key}
                  scope="col"
                  class={column.numeric ? 'numeric' : undefined}
                  aria-sort={sortKey === column.key ? (descending ? 'descending' : 'ascending') : undefined}
                >
                  <button type="button" onClick={() => sortBy(column)} title={column.help}>
                    {column.title}
                    <span class="sort-mark" aria-hidden="true">
                      {sortKey === column.key ? (descending ? '▼' : '▲') : ''}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {first > 0 && <tr class="spacer" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${first * ROW_HEIGHT}px` }} /></tr>}
            {sorted.slice(first, last).map((row, offset) => {
              const index = first + offset;
              const key = rowKey(row);
              const chosen = selected === key;
              return (
                <tr
                  key={key}
                  data-row={index}
                  aria-rowindex={index + 2}
                  class={chosen ? 'selected' : undefined}
                  onClick={onSelect ? () => onSelect(chosen ? null : row) : undefined}
                >
                  {columns.map((column, at) => {
                    const text = shown(column, row);
                    const content = column.render ? column.render(row) : text;
                    const absent = text === ABSENT;
                    const cut = (column.width ?? 0) > 0 || typeof content === 'string';
                    return (
                      <td
                        key={column.key}
                        class={column.numeric ? 'numeric' : undefined}
                        title={absent ? NOT_MEASURED : cut && text.length > 24 ? text : undefined}
                      >
                        {at === 0 && onSelect ? (
                          <button
                            type="button"
                            class="row-button"
                            aria-expanded={chosen}
                            tabIndex={index === 0 || chosen ? 0 : -1}
                            onKeyDown={(event) => onKey(event, index)}
                            style={column.width ? { [virtual ? 'width' : 'maxWidth']: `${column.width}ch` } : undefined}
                          >
                            {content}
                          </button>
                        ) : column.width ? (
                          <span class="cut" style={{ [virtual ? 'width' : 'maxWidth']: `${column.width}ch` }}>{content}</span>
                        ) : (
                          content
                        )}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
            {virtual && last < sorted.length && (
              <tr class="spacer" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${(sorted.length - last) * ROW_HEIGHT}px` }} /></tr>
            )}
          </tbody>
        </table>
        {sorted.length === 0 && <p class="empty">{rows.length === 0 ? (props.empty ?? 'Nothing was recorded.') : 'Nothing matches the search.'}</p>}
      </div>
      {stacked && sorted.length > last && <p class="muted">… and {count(sorted.length - last)} more; save the CSV for all.</p>}
    </div>
  );
}
