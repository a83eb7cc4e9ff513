import { bytes, count, duration, percent, rate } from '../numbers';
import type { AnalyzeData } from '../data/types';
import { rankLabel } from '../views/ranks';
import type { Column } from './data_table';

/** Columns that many tables have: a field of the row under its own key, in the words of its quantity. */
type Of<K extends string> = Column<Record<K, number | null>>;
function quantity(words: (value: number | null) => string) {
  return <K extends string>(key: K, title: string, help?: string): Of<K> => ({
    key, title, numeric: true, value: (row) => row[key], text: (row) => words(row[key]), ...(help === undefined ? {} : { help }),
  });
}
export const timeColumn = quantity(duration);
export const shareColumn = quantity(percent);
export const bytesColumn = quantity(bytes);
export const rateColumn = quantity(rate);
export const countColumn = quantity(count);
/** Numbers that name something, such as steps: without commas. */
export const numberColumn = quantity((value) => (value === null ? '–' : String(value)));

export function rankColumn(data: AnalyzeData): Column<{ rank_index: number }> {
  return { key: 'rank', title: 'Rank', value: (row) => rankLabel(data, row.rank_index) };
}
export function hostColumn(data: AnalyzeData): Column<{ rank_index: number }> {
  return { key: 'host', title: 'Host', value: (row) => data.ranks[row.rank_index]?.host ?? null };
}
export function textColumn<K extends string>(key: K, title: string, width?: number): Column<Record<K, string | null>> {
  return { key, title, value: (row) => row[key], ...(width === undefined ? {} : { width }) };
}
