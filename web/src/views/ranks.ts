import type { AnalyzeData, BreakdownRow } from '../data/types';
import type { Part } from '../charts/stacked_rows';

/** "rank 3"; with several traces of a rank also which: "rank 3, trace 2". */
export function rankLabel(data: AnalyzeData, index: number): string {
  const facts = data.ranks[index];
  if (!facts) return `rank ?${index}`;
  const several = data.ranks.some((other) => other.window > 0);
  return several ? `rank ${facts.rank}, trace ${facts.window + 1}` : `rank ${facts.rank}`;
}

/** What a rank's times are divided by, and how that is called: its steps, or nothing when none is marked. */
export function perStep(data: AnalyzeData): { divide: (index: number) => number; words: string } {
  const steps = data.job.step_count > 0;
  return {
    divide: (index) => (steps ? Math.max(1, data.ranks[index]?.step_count ?? 1) : 1),
    words: steps ? 'a step' : 'in the whole window',
  };
}

/** Rows without any events have no times. */
export function measured(row: BreakdownRow): boolean {
  return row.basis !== 'none' && row.span_ns !== null;
}

/** The four parts that add up to the time: what runs, by what it costs. */
export function timeParts(row: Pick<BreakdownRow, 'compute_ns' | 'exposed_communication_ns' | 'exposed_memory_ns' | 'idle_ns'>, divide = 1): Part[] {
  return [
    { mark: 'compute', label: 'compute', value: row.compute_ns / divide },
    { mark: 'communication', label: 'exposed communication', value: row.exposed_communication_ns / divide },
    { mark: 'memory', label: 'exposed copies', value: row.exposed_memory_ns / divide },
    { mark: 'idle', label: 'idle', value: row.idle_ns / divide },
  ];
}

export const TIME_LEGEND = [
  { mark: 'compute', label: 'compute' },
  { mark: 'communication', label: 'exposed communication (nothing else runs)' },
  { mark: 'memory', label: 'exposed copies' },
  { mark: 'idle', label: 'idle' },
];

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length === 0 ? NaN : sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
