/** What the page of `lockstep stages` is made from: the answer (`data` of `lockstep.stages/1`, docs/json.md) and lines of memory. */
import type { StepWindow } from '../parts/stage_windows';

type Maybe = number | null;

export interface StageRow {
  stage: string;
  frontier_ns: number;
  imbalance_ns: number;
  /** By place in `ranks`. */
  rank_ns: number[];
  leader_ns: number[];
  cost_ns: number[];
}

export interface MemoryUse {
  peak_bytes: number;
  last_bytes: number;
  third_bytes: number[] | null;
}

export interface MemoryRank {
  rank: number;
  resident: MemoryUse | null;
  allocated: MemoryUse | null;
  reserved: MemoryUse | null;
  peak_allocated_bytes: Maybe;
  device_bytes: Maybe;
  host_bytes: Maybe;
  allocation_retry_count: Maybe;
}

export interface StagesAnswer {
  verdict: { answer: string; rank: Maybe; stage: string | null; group: string | null; cost_ns: number; cost_ratio: number; step_count: number; sentence: string };
  job: { world_size: number; workload: Record<string, string>; exit_status: Maybe };
  step_count: number;
  left_out_step_count: number;
  total_ns: number;
  ranks: { rank: number; host: string | null; process_id: number; step_count: number; lost_record_count: number; ended_in_order: boolean; device_times: boolean }[];
  stages: StageRow[];
  groups: { name: string; pairwise: boolean; ranks: number[]; wait_ns: number[]; round_count: number; total_ns: number; cost_ns: number; rank: Maybe; stage: string | null }[];
  steps: { step: number; ns: number; cost_ns: number; rank: Maybe; stage: string | null }[];
  windows: (StepWindow & { median_step_ns: number; largest_stage: string; rank_cost_ns: number[] })[];
  changes: { sentence: string }[];
  memory: { ranks: MemoryRank[]; findings: { kind: string; signal: string; rank: Maybe; host: string | null; sentence: string }[] };
}

export type Signal = 'resident' | 'allocated' | 'reserved';

export interface StagesData {
  answer: StagesAnswer;
  why: string;
  next: string;
  /** Times from the first sample of all on. */
  memory_lines: { rank: number; signal: Signal; time_ns: number[]; bytes: number[] }[];
}

/** The lower middle one, as lockstep has it. */
export function lowerMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

/** A stage of a step, over ranks; times a step. */
export interface StageOfStep {
  stage: string;
  median_ns: number;
  slowest_ns: number;
  slowest_rank: number;
  /** Of the job's time. */
  ratio: number;
  imbalance_ratio: number;
  cost_rank: Maybe;
  cost_ratio: Maybe;
}

/** Stages that any rank was in, in the order of a step. */
export function stagesOfStep({ stages, ranks, step_count, total_ns }: StagesAnswer): StageOfStep[] {
  if (step_count === 0 || total_ns === 0) return [];
  return stages.flatMap((row) => {
    const slowest = row.rank_ns.reduce((most, ns, at) => (ns > row.rank_ns[most]! ? at : most), 0);
    if (!row.rank_ns[slowest]) return [];
    const dearest = row.cost_ns.reduce((most, ns, at) => (ns > row.cost_ns[most]! ? at : most), 0);
    const costs = (row.cost_ns[dearest] ?? 0) > 0;
    return [{
      stage: row.stage, median_ns: lowerMedian(row.rank_ns) / step_count, slowest_ns: row.rank_ns[slowest]! / step_count, slowest_rank: ranks[slowest]!.rank,
      ratio: row.frontier_ns / total_ns, imbalance_ratio: row.imbalance_ns / total_ns,
      cost_rank: costs ? ranks[dearest]!.rank : null, cost_ratio: costs ? row.cost_ns[dearest]! / total_ns : null,
    }];
  });
}
