/** The functions that `lockstep query` has beside SQLite's (src/present/query/functions.cc, aggregates.cc), for the page's SQLite. Pure. */
import { bytes, duration, rate, shortName } from '../numbers';
import type { SqlCell } from './messages';

export interface Scalar {
  name: string;
  argument_count: number;
  /** Not called with NULL: of NULL all are NULL. */
  of: (...values: (string | number)[]) => SqlCell;
}

const CUT = '…';

export const SCALARS: readonly Scalar[] = [
  { name: 'overlap_ns', argument_count: 4, of: (start1, end1, start2, end2) => Math.max(0, Math.min(Number(end1), Number(end2)) - Math.max(Number(start1), Number(start2))) },
  { name: 'format_ns', argument_count: 1, of: (ns) => duration(Math.trunc(Number(ns))) },
  { name: 'format_bytes', argument_count: 1, of: (value) => bytes(Math.trunc(Number(value))) },
  { name: 'format_rate', argument_count: 1, of: (value) => rate(Number(value)) },
  { name: 'short_name', argument_count: 1, of: (name) => shortName(String(name), Infinity) },
  {
    name: 'short_name',
    argument_count: 2,
    of: (name, most) => {
      const width = Math.max(1, Math.min(10000, Math.trunc(Number(most)) || 1));
      const text = shortName(String(name), width);
      return text.length > width ? text.slice(0, width - 1) + CUT : text;
    },
  },
];

/** The p-th percentile of the values, linear between two; p from 0 to 100. */
export function percentile(values: readonly number[], p: number): number | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const place = (p / 100) * (sorted.length - 1);
  const below = Math.floor(place);
  const rest = place - below;
  return rest > 0 ? sorted[below]! + rest * (sorted[below + 1]! - sorted[below]!) : sorted[below]!;
}

/** Sample standard deviation (n - 1); 0 for one value. */
export function deviation(values: readonly number[]): number | null {
  if (values.length < 2) return values.length === 0 ? null : 0;
  const mean = values.reduce((sum, value) => sum + value / values.length, 0);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}

export interface Interval {
  start: number;
  end: number;
  side: 0 | 1;
}

/** Length of the time in which intervals of both sides run; of one side: in which any runs. */
export function sharedLength(intervals: readonly Interval[], side_count: 1 | 2): number | null {
  if (intervals.length === 0) return null;
  const sorted = [...intervals].sort((a, b) => a.start - b.start);
  const ends = [-Infinity, -Infinity];
  let length = 0;
  sorted.forEach(({ start, end, side }, at) => {
    const own = side_count === 1 ? 0 : side;
    ends[own] = Math.max(ends[own]!, end);
    const until = Math.min(sorted[at + 1]?.start ?? Infinity, side_count === 1 ? ends[0]! : Math.min(ends[0]!, ends[1]!));
    if (until > start) length += until - start;
  });
  return length;
}

export interface Aggregate {
  name: string;
  argument_count: number;
  /** Of one group of rows. */
  begin: () => { add: (values: readonly SqlCell[]) => void; end: () => SqlCell };
}

function ofNumbers(name: string, argument_count: number, of: (values: readonly number[], p: number) => SqlCell): Aggregate {
  return {
    name,
    argument_count,
    begin: () => {
      const values: number[] = [];
      let percent = 50;
      return {
        add: ([value, p]) => {
          if (p !== undefined) percent = Number(p);
          if (!(percent >= 0 && percent <= 100)) throw new Error('percentile(x, p): p must be from 0 to 100');
          if (value !== null && value !== '' && Number.isFinite(Number(value))) values.push(Number(value));
        },
        end: () => of(values, percent),
      };
    },
  };
}

function ofIntervals(name: string, side_count: 1 | 2): Aggregate {
  return {
    name,
    argument_count: side_count + 1,
    begin: () => {
      const intervals: Interval[] = [];
      return {
        add: (values) => {
          if (values.includes(null)) return;
          const [start, end, side = 0] = values.map(Number);
          intervals.push({ start: start!, end: end!, side: side !== 0 ? 1 : 0 });
        },
        end: () => sharedLength(intervals, side_count),
      };
    },
  };
}

export const AGGREGATES: readonly Aggregate[] = [
  ofNumbers('percentile', 2, percentile),
  ofNumbers('median', 1, percentile),
  ofNumbers('stddev', 1, deviation),
  ofIntervals('union_ns', 1),
  ofIntervals('intersect_ns', 2),
];
