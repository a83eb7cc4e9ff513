import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useParam } from '../app/route';
import { DataTable, type Column } from './data_table';
import { csvText, saveCsv, savePng } from './save';

export interface FigureProps<Row> {
  /** Unique in the view; name of its files. */
  id: string;
  title: string;
  /** What a reader sees in the picture, in one or two sentences with numbers. Shown below the title. */
  summary: string;
  /** The same content as a table. */
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  sort?: string;
  search?: readonly string[];
  /** Choices of this picture, beside its title. */
  controls?: ComponentChildren;
  /** The picture: <svg> and <canvas>, drawn at their place. */
  children: ComponentChildren;
}

/** A number and its unit stay on one line. */
function keepUnits(text: string): string {
  return text.replace(/(\d) (?=(?:%|ns|us|ms|s|min|h|d|B|[KMGTP]i?B|[kMGT]?B\/s)\b|%)/g, '$1\u00a0');
}

/** A picture with its summary, the table that says the same, and the buttons Table, PNG and CSV. */
export function Figure<Row>(props: FigureProps<Row>) {
  const { id, title } = props;
  const [mode, setMode] = useParam(`${id}.as`, 'picture');
  const box = useRef<HTMLDivElement>(null);
  const table = mode === 'table';
  const name = `lockstep-${id}`;
  return (
    <section class="figure" aria-labelledby={`${id}-title`}>
      <div class="figure-bar">
        <h3 id={`${id}-title`}>{title}</h3>
        <span class="tools">
          {props.controls}
          <button type="button" class="tool" aria-pressed={table} aria-label={`Show as table: ${title}`} onClick={() => setMode(table ? 'picture' : 'table')}>
            Table
          </button>
          {!table && (
            <button type="button" class="tool" aria-label={`Save as PNG: ${title}`} onClick={() => box.current && void savePng(name, box.current, title)}>
              PNG
            </button>
          )}
          {!table && (
            <button
              type="button"
              class="tool"
              aria-label={`Save as CSV: ${title}`}
              onClick={() =>
                saveCsv(name, csvText(props.columns.map((c) => c.key), props.rows.map((row) => props.columns.map((c) => c.value(row)))))
              }
            >
              CSV
            </button>
          )}
        </span>
      </div>
      <p class="figure-summary" id={`${id}-summary`}>{keepUnits(props.summary)}</p>
      {table ? (
        <DataTable id={`${id}-table`} caption={title} columns={props.columns} rows={props.rows} rowKey={props.rowKey} sort={props.sort} search={props.search} />
      ) : (
        <div class="picture" ref={box} aria-describedby={`${id}-summary`}>{props.children}</div>
      )}
    </section>
  );
}
