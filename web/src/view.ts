import type { ComponentType } from 'preact';
import type { AnalyzeData, PageSource } from './data/types';

export interface ViewProps<Data = AnalyzeData> {
  source: PageSource;
  /** `source.document.data`, as the kind of page has it. */
  data: Data;
}

/**
 * A view of the page: one file in views/, one entry in the list of its kind of page (views/analyze.ts, compare.ts,
 * scaling.ts, hang.ts). The shell draws heading and `shows`; the component draws the rest and
 * - keeps every choice in the address (useParam, useChoice in app/route.ts),
 * - puts each picture into a <Figure> (parts/figure.tsx), which asks for a text summary and a table with the same
 *   content and gives the buttons Table, PNG and CSV,
 * - shows null as "not measured", never as 0, and sorts worst first.
 */
export interface View<Data = AnalyzeData> {
  /** Name in the address, kebab-case. */
  id: string;
  title: string;
  /** One line: what it shows, which question it answers. */
  shows: string;
  group: string;
  /** Why there is nothing to show, or null when there is. Such a view stays in the list, dimmed, and says why. */
  missing?: (data: Data) => string | null;
  component: ComponentType<ViewProps<Data>>;
}
