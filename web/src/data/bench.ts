/** What the page of `lockstep bench` is made from (`src/present/page/fabric/fabric_page.cc`): what was measured, and an earlier run beside it. */
import type { FabricPoint } from './fabric';

export interface FabricPair {
  rank_a: number;
  rank_b: number;
  latency_ns: number;
  /** From a to b, and from b to a. */
  bytes_per_s: number;
  back_bytes_per_s: number;
  same_host: boolean;
  is_slow: boolean;
}

export interface MeasuredFabric {
  source: string;
  backend: string | null;
  rank_count: number;
  /** By rank. */
  hosts: string[];
  points: FabricPoint[];
  /** Of very many ranks the slow ones and the slowest. */
  pairs: FabricPair[];
  pair_count: number;
}

export interface BenchData {
  fabric: MeasuredFabric;
  earlier: MeasuredFabric | null;
}

export type Quantity = 'busbw' | 'time';

/** A point of a curve in one quantity; `low` and `high`: its slowest and its fastest rank. */
export interface CurvePoint {
  bytes: number;
  value: number;
  low: number | null;
  high: number | null;
}

export interface BenchCurve {
  operation: string;
  /** Colour and shape, the same for both runs. */
  at: number;
  earlier: boolean;
  points: CurvePoint[];
}

/** A point in a quantity; null where it was not measured, or is nothing that can be drawn. */
export function pointOf(point: FabricPoint, quantity: Quantity): CurvePoint | null {
  const value = quantity === 'busbw' ? point.busbw_bytes_per_s : point.mean_ns;
  if (value === null || !(value > 0) || value > 1e20 || value < 1e-6) return null;
  // Time goes with the inverse of bandwidth: the slowest rank's is the longest.
  const of = (rank: number | null) => (rank === null || !(rank > 0) ? null : quantity === 'busbw' ? rank : (value * point.busbw_bytes_per_s) / rank);
  return { bytes: point.bytes, value, low: of(point.slowest_busbw_bytes_per_s), high: of(point.fastest_busbw_bytes_per_s) };
}

/** Of both runs, the measured operations in the order of this one's. */
export function benchCurves({ fabric, earlier }: BenchData, quantity: Quantity): BenchCurve[] {
  const operations = [...new Set([...fabric.points, ...(earlier?.points ?? [])].map((point) => point.operation))];
  const curve = (of: MeasuredFabric, operation: string, at: number, is_earlier: boolean): BenchCurve => ({
    operation, at, earlier: is_earlier,
    points: of.points.filter((point) => point.operation === operation).flatMap((point) => pointOf(point, quantity) ?? []),
  });
  return operations
    .flatMap((operation, at) => [curve(fabric, operation, at, false), ...(earlier ? [curve(earlier, operation, at, true)] : [])])
    .filter((each) => each.points.length > 0);
}

/** A measured point with the earlier run's beside it. */
export interface BenchRow extends FabricPoint {
  earlier_busbw_bytes_per_s: number | null;
  change_ratio: number | null;
}

export function benchRows({ fabric, earlier }: BenchData): BenchRow[] {
  const before = new Map((earlier?.points ?? []).map((point) => [`${point.operation} ${point.bytes}`, point.busbw_bytes_per_s]));
  return fabric.points.map((point) => {
    const was = before.get(`${point.operation} ${point.bytes}`) ?? null;
    return { ...point, earlier_busbw_bytes_per_s: was, change_ratio: was === null || was === 0 ? null : point.busbw_bytes_per_s / was - 1 };
  });
}
