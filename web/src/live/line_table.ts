import { agoText, type TimeSeries } from '../charts/time_lines';
import type { Column } from '../parts/data_table';
import type { LiveStore } from './store';

interface Place {
  at: number;
  ago_ns: number;
}

/** The table of a picture of lines over time: newest first. */
export function lineTable(store: LiveStore, series: readonly TimeSeries[], format: (value: number | null) => string, unit: string): { columns: Column<Place>[]; rows: Place[]; rowKey: (row: Place) => string } {
  const count = Math.max(0, ...series.map((each) => each.values.length));
  const { bucket_ns, last_number } = store.timeline;
  const rows = Array.from({ length: count }, (_, i) => ({ at: count - 1 - i, ago_ns: i * bucket_ns }));
  const columns: Column<Place>[] = [
    { key: 'time_unix_ns', title: 'Time', value: (row) => (last_number * bucket_ns) - row.ago_ns, text: (row) => agoText(row.ago_ns) },
    ...series.map((each): Column<Place> => ({ key: `${each.label.replace(/\W+/g, '_')}_${unit}`, title: each.label, numeric: true, value: (row) => each.values[row.at] ?? null, text: (row) => format(each.values[row.at] ?? null) })),
  ];
  return { columns, rows, rowKey: (row) => String(last_number - (count - 1 - row.at)) };
}
