/**
 * What the page knows of bandwidths: points of the job's collectives, and with `--fabric` curves of what
 * `lockstep bench collectives` measured (`src/present/page/fabric_source.cc`). Pure: arranged here, drawn elsewhere.
 */
import { plural } from '../numbers';
import type { AnalyzeData, BandwidthRow } from './types';

/** As in docs/json.md: collectives of one operation, group size and message size beside the fabric. */
export interface FabricRow {
  name: string;
  group_size: number | null;
  bytes: number;
  count: number;
  transfer_ns: number;
  busbw_median_bytes_per_s: number;
  fabric_busbw_bytes_per_s: number;
  ratio: number;
}

export interface FabricPoint {
  operation: string;
  bytes: number;
  busbw_bytes_per_s: number;
  /** By the time of the rank that took longest, and shortest. */
  slowest_busbw_bytes_per_s: number | null;
  fastest_busbw_bytes_per_s: number | null;
  mean_ns: number | null;
}

export interface FabricSource {
  source: string;
  backend: string;
  rank_count: number;
  /** Of all rows, by time; null where none of the job's collectives was measured. */
  ratio: number | null;
  /** By operation and size. */
  points: FabricPoint[];
}

/** A point of the job, with what the fabric does at its size. */
export interface JobPoint extends BandwidthRow {
  fabric_busbw_bytes_per_s: number | null;
  ratio: number | null;
}

export interface Series {
  label: string;
  /** Colour and symbol; a curve of the fabric has those of the job's points that it is to be held against. */
  at: number;
  points: readonly JobPoint[];
}

export interface Curve {
  label: string;
  at: number;
  points: readonly FabricPoint[];
}

/** By what name the benchmark measures it. */
export function measuredName(name: string): string {
  return name === 'send' || name === 'recv' ? 'send_recv' : name;
}

const keyOf = (row: { name: string; group_size: number | null; bytes: number }) => `${row.name} ${row.group_size} ${row.bytes}`;

export function jobSeries(data: Pick<AnalyzeData, 'bandwidth' | 'fabric'>): Series[] {
  const beside = new Map((data.fabric ?? []).map((row) => [keyOf(row), row]));
  const found = new Map<string, JobPoint[]>();
  for (const row of data.bandwidth) {
    const label = row.group_size === null ? row.name : `${row.name}, ${plural(row.group_size, 'rank')}`;
    const fabric = beside.get(keyOf(row));
    const point = { ...row, fabric_busbw_bytes_per_s: fabric?.fabric_busbw_bytes_per_s ?? null, ratio: fabric?.ratio ?? null };
    found.set(label, [...(found.get(label) ?? []), point]);
  }
  return [...found].map(([label, list], at) => ({ label, at, points: [...list].sort((a, b) => a.bytes - b.bytes) }));
}

/** A curve for each operation that was measured; `used`: of those that the job uses, or of all where it uses none of them. */
export function fabricCurves(source: FabricSource | null, series: readonly Series[], used: boolean): Curve[] {
  if (!source) return [];
  const operations = [...new Set(source.points.map((point) => point.operation))];
  const of = (operation: string) => series.find((each) => measuredName(each.points[0]!.name) === operation);
  const matched = operations.filter((operation) => of(operation));
  let next = series.length;
  return (used && matched.length > 0 ? matched : operations).map((operation) => ({
    label: `fabric: ${operation}, ${plural(source.rank_count, 'rank')}`,
    at: of(operation)?.at ?? next++,
    points: source.points.filter((point) => point.operation === operation),
  }));
}

/** A line of the picture's table: a point of the job or of the fabric. */
export interface TableRow {
  of: 'job' | 'fabric';
  name: string;
  group_size: number | null;
  bytes: number;
  count: number | null;
  busbw_median_bytes_per_s: number;
  busbw_min_bytes_per_s: number | null;
  busbw_quartile_bytes_per_s: number | null;
  busbw_third_quartile_bytes_per_s: number | null;
  busbw_max_bytes_per_s: number | null;
  algbw_median_bytes_per_s: number | null;
  fabric_busbw_bytes_per_s: number | null;
  ratio: number | null;
}

export function tableRows(series: readonly Series[], curves: readonly Curve[], rank_count: number): TableRow[] {
  const job = series.flatMap((each) => each.points).map(({ busbw_bytes_per_s: [min, quartile, median, third, max], ...row }): TableRow => ({
    of: 'job', ...row, busbw_median_bytes_per_s: median, busbw_min_bytes_per_s: min, busbw_quartile_bytes_per_s: quartile,
    busbw_third_quartile_bytes_per_s: third, busbw_max_bytes_per_s: max,
  }));
  const fabric = curves.flatMap((curve) => curve.points).map((point): TableRow => ({
    of: 'fabric', name: point.operation, group_size: rank_count, bytes: point.bytes, count: null,
    busbw_median_bytes_per_s: point.busbw_bytes_per_s, busbw_min_bytes_per_s: point.slowest_busbw_bytes_per_s, busbw_quartile_bytes_per_s: null,
    busbw_third_quartile_bytes_per_s: null, busbw_max_bytes_per_s: point.fastest_busbw_bytes_per_s, algbw_median_bytes_per_s: null,
    fabric_busbw_bytes_per_s: null, ratio: null,
  }));
  return [...job, ...fabric];
}
