import { useMemo } from 'preact/hooks';
import { useBlock } from '../app/blocks';
import type { AnalyzeData, BreakdownRow, PageSource, StepMatrix, StepQuantity } from '../data/types';
import type { Part } from '../charts/stacked_rows';

/** "rank 3"; with several traces of a rank also which: "rank 3, trace 2". */
export function rankLabel(data: AnalyzeData, index: number): string {
  const facts = data.ranks[index];
  if (!facts) return `rank ?${index}`;
  const several = data.ranks.some((other) => other.window > 0);
  return several ? `rank ${facts.rank}, trace ${facts.window + 1}` : `rank ${facts.rank}`;
}

/** A rank in the address: "3", and "3.1" for its second trace. */
export function rankName(data: AnalyzeData, index: number): string {
  const facts = data.ranks[index];
  return !facts ? '' : facts.window === 0 ? String(facts.rank) : `${facts.rank}.${facts.window}`;
}

/** Rows without any events have no times. */
export function measured(row: RankTime): boolean {
  return row.basis !== 'none' && row.span_ns !== null;
}

/** The four parts that add up to the time: what runs, by what it costs. */
export function timeParts(row: Pick<BreakdownRow, 'compute_ns' | 'exposed_communication_ns' | 'exposed_memory_ns' | 'idle_ns'>): Part[] {
  return [
    { mark: 'compute', label: 'compute', value: row.compute_ns },
    { mark: 'communication', label: 'exposed communication', value: row.exposed_communication_ns },
    { mark: 'memory', label: 'exposed copies', value: row.exposed_memory_ns },
    { mark: 'idle', label: 'idle', value: row.idle_ns },
  ];
}

/** A rank's time, as a mean over its steps or for the whole window. */
export type RankTime = Pick<
  BreakdownRow,
  'rank_index' | 'basis' | 'span_ns' | 'compute_ns' | 'communication_ns' | 'exposed_communication_ns' | 'overlapped_communication_ns' | 'exposed_memory_ns' | 'idle_ns'
>;

export interface RankTimes {
  rows: RankTime[];
  /** "a step" or "in the whole window". */
  words: string;
  loading: boolean;
}

/** The same means as the text report: over the steps that a rank has. */
function stepMeans(matrix: StepMatrix, basis: (rank_index: number) => RankTime['basis']): RankTime[] {
  const { rank_indices } = matrix.shape;
  const average = (quantity: StepQuantity, row: number): number => matrix.rankMeans(quantity)[row]!;
  return rank_indices.map((rank_index, row) => {
    const span_ns = average('step_ns', row);
    const communication_ns = average('communication_ns', row);
    const exposed_communication_ns = average('exposed_communication_ns', row);
    return {
      rank_index, basis: Number.isFinite(span_ns) ? basis(rank_index) : 'none', span_ns, compute_ns: average('compute_ns', row), communication_ns,
      exposed_communication_ns, overlapped_communication_ns: communication_ns - exposed_communication_ns,
      exposed_memory_ns: average('exposed_memory_ns', row), idle_ns: average('idle_ns', row),
    };
  });
}

/** Where each rank's time goes: the mean of its steps where steps are known, else its whole window. */
export function useRankTimes(source: PageSource, data: AnalyzeData): RankTimes {
  const steps = useBlock(source, 'steps', () => source.steps());
  const matrix = steps.state === 'ready' ? steps.value : null;
  return useMemo(() => {
    const basis = new Map(data.breakdown.map((row) => [row.rank_index, row.basis]));
    return matrix
      ? { rows: stepMeans(matrix, (index) => basis.get(index) ?? 'none'), words: 'a step', loading: false }
      : { rows: data.breakdown, words: 'in the whole window', loading: steps.state === 'loading' };
  }, [data, matrix, steps.state]);
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
