/** What views ask of the tables in depth_types.ts; pure, so that it is tested without a browser. */
import type {
  BubblesData, CategoryTimes, CriticalPathData, GroupRow, OperatorFlopsRow, PathCategory, PathName, PathStep, WaitStatesData, WhatIfData,
} from './depth_types';
import type { AnalyzeData } from './types';

export type * from './depth_types';

/** "data_loader" -> "data loader". */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

/** Colour of a category of the path: one of five looks, as everywhere on the page. */
export function categoryMark(category: string): string {
  switch (category) {
    case 'compute': return 'compute';
    case 'transfer': return 'communication';
    case 'copy': return 'memory';
    case 'host': return 'host';
    case 'data_loader': return 'series-5';
    default: return 'idle';
  }
}

/** One step of the path, or the mean of all. */
export interface PathSlice {
  /** null: the mean of all steps. */
  step: PathStep | null;
  /** What shares are of. */
  path_ns: number;
  categories: { category: PathCategory; path_ns: number }[];
  ranks: { rank_index: number; path_ns: number; slack_ns: number | null; category_ns: CategoryTimes }[];
  names: PathName[];
  /** Of the path, what `names` leaves out. */
  rest_ns: number;
}

/** The path of one step (`place` in path.steps), or per step over all of them (null). */
export function pathSlice(path: CriticalPathData, place: number | null): PathSlice {
  const step = place === null ? null : (path.steps[place] ?? null);
  if (step === null || place === null) {
    const mean = (ns: number) => ns / Math.max(1, path.step_count);
    return {
      step: null,
      path_ns: mean(path.path_ns),
      categories: path.categories.map((row) => ({ ...row, path_ns: mean(row.path_ns) })),
      ranks: path.ranks.map((row) => ({
        ...row, path_ns: mean(row.path_ns),
        category_ns: Object.fromEntries(Object.entries(row.category_ns).map(([category, ns]) => [category, mean(ns)])),
      })),
      names: path.names.map((row) => ({ ...row, path_ns: mean(row.path_ns) })),
      rest_ns: mean(path.rest_names_ns),
    };
  }
  const ranks = new Map<number, { ns: number; category_ns: CategoryTimes }>();
  const names = new Map<string, PathName>();
  const least = new Map(path.names.map((row) => [`${row.category} ${row.name ?? ''}`, row.slack_ns]));
  for (const [at, rank_index, kind, text, ns] of path.rows) {
    if (at !== place) continue;
    const category = path.kinds[kind]!;
    const rank = ranks.get(rank_index) ?? { ns: 0, category_ns: {} };
    rank.ns += ns;
    rank.category_ns[category] = (rank.category_ns[category] ?? 0) + ns;
    ranks.set(rank_index, rank);
    const name = path.texts[text] || null;
    const key = `${category} ${name ?? ''}`;
    const row = names.get(key) ?? { category, name, path_ns: 0, slack_ns: least.get(key) ?? null };
    row.path_ns += ns;
    names.set(key, row);
  }
  const slack = new Map(step.slack ?? []);
  for (const rank_index of slack.keys()) if (!ranks.has(rank_index)) ranks.set(rank_index, { ns: 0, category_ns: {} });
  return {
    step,
    path_ns: step.path_ns,
    categories: path.kinds
      .flatMap((category) => (step.category_ns[category] ? [{ category, path_ns: step.category_ns[category]! }] : []))
      .sort((a, b) => b.path_ns - a.path_ns),
    ranks: [...ranks]
      .map(([rank_index, { ns, category_ns }]) => ({ rank_index, path_ns: ns, slack_ns: slack.get(rank_index) ?? null, category_ns }))
      .sort((a, b) => b.path_ns - a.path_ns || (a.slack_ns ?? Infinity) - (b.slack_ns ?? Infinity) || a.rank_index - b.rank_index),
    names: [...names.values()].sort((a, b) => b.path_ns - a.path_ns),
    rest_ns: path.rest_ns[place] ?? 0,
  };
}

/** Place of the longest step; null where there is none. */
export function longestStep(path: CriticalPathData): number | null {
  let best: number | null = null;
  path.steps.forEach((step, at) => {
    if (best === null || step.step_ns > path.steps[best]!.step_ns) best = at;
  });
  return best;
}

/** Waiting of each rank by kind, most first. */
export function waitsByRank(waits: WaitStatesData): { rank_index: number; wait_ns: number; count: number; kinds: Map<string, number> }[] {
  const ranks = new Map<number, { rank_index: number; wait_ns: number; count: number; kinds: Map<string, number> }>();
  for (const { rank_index, kind, count, wait_ns } of waits.states) {
    const row = ranks.get(rank_index) ?? { rank_index, wait_ns: 0, count: 0, kinds: new Map<string, number>() };
    row.wait_ns += wait_ns;
    row.count += count;
    row.kinds.set(kind, (row.kinds.get(kind) ?? 0) + wait_ns);
    ranks.set(rank_index, row);
  }
  return [...ranks.values()].sort((a, b) => b.wait_ns - a.wait_ns || a.rank_index - b.rank_index);
}

export const WAIT_KINDS = ['wait_at_collective', 'late_sender', 'late_receiver'] as const;
export const WAIT_KIND_LABELS: Record<string, string> = {
  wait_at_collective: 'in a collective, for the last to arrive',
  late_sender: 'as a receiver, for a late sender',
  late_receiver: 'as a sender, for a late receiver',
};

/** What a simulation of this error can tell: gains below it are noise. */
export function simulationError(what_if: WhatIfData): number {
  return (what_if.error_ratio ?? 0) * what_if.observed_step_ns;
}

/** Means of each stage's bubble over the steps that are no warm-up. */
export function bubblesByStage(bubbles: BubblesData): { stage: number; count: number; window_ns: number; busy_ns: number; bubble_ratio: number; memory_bytes: number | null }[] {
  const warm = new Set(bubbles.steps.filter((row) => row.warm_up).map((row) => row.step));
  const all = bubbles.stages.every((row) => warm.has(row.step));
  const stages = new Map<number, { stage: number; count: number; window_ns: number; busy_ns: number; bubble_ratio: number; memory_bytes: number | null }>();
  for (const row of bubbles.stages) {
    if (!all && warm.has(row.step)) continue;
    const sum = stages.get(row.stage) ?? { stage: row.stage, count: 0, window_ns: 0, busy_ns: 0, bubble_ratio: 0, memory_bytes: null };
    sum.count += 1;
    sum.window_ns += row.window_ns;
    sum.busy_ns += row.busy_ns;
    sum.bubble_ratio += row.bubble_ratio;
    if (row.memory_bytes !== null) sum.memory_bytes = Math.max(sum.memory_bytes ?? 0, row.memory_bytes);
    stages.set(row.stage, sum);
  }
  return [...stages.values()]
    .map((sum) => ({ ...sum, window_ns: sum.window_ns / sum.count, busy_ns: sum.busy_ns / sum.count, bubble_ratio: sum.bubble_ratio / sum.count }))
    .sort((a, b) => a.stage - b.stage);
}

/** Which kinds of groups a job has, largest communication first: "data (2), tensor (4)". */
export function groupKinds(groups: readonly GroupRow[]): { kind: string; count: number; communication_ns: number; exposed_ns: number }[] {
  const kinds = new Map<string, { kind: string; count: number; communication_ns: number; exposed_ns: number }>();
  for (const group of groups) {
    const sum = kinds.get(group.kind) ?? { kind: group.kind, count: 0, communication_ns: 0, exposed_ns: 0 };
    sum.count += 1;
    sum.communication_ns += group.communication_ns;
    sum.exposed_ns += group.exposed_ns;
    kinds.set(group.kind, sum);
  }
  return [...kinds.values()].sort((a, b) => b.communication_ns - a.communication_ns || a.kind.localeCompare(b.kind));
}

export interface RooflinePoint {
  row: OperatorFlopsRow;
  intensity: number;
  flops_per_s: number;
}

/** What can be drawn on a roofline: calls with work, bytes and a time. */
export function rooflinePoints(rows: readonly OperatorFlopsRow[]): RooflinePoint[] {
  return rows.flatMap((row) => (row.mean_flops_per_s !== null && row.mean_flops_per_s > 0 && row.intensity > 0
    ? [{ row, intensity: row.intensity, flops_per_s: row.mean_flops_per_s }] : []));
}

/** Powers of ten from the one at or below `low` to the one at or above `high`. */
export function decades(low: number, high: number): number[] {
  const from = Math.floor(Math.log10(low) + 1e-9);
  const to = Math.max(from + 1, Math.ceil(Math.log10(high) - 1e-9));
  return Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
}

/** Why a view has nothing; null when it has. */
export function causesMissing(data: AnalyzeData): string | null {
  if (data.wait_states === null) return 'The pass wait_states did not run; `lockstep analyze` without --pass runs it.';
  return data.wait_states.states.length === 0 ? 'No waiting between ranks is known: that needs collectives or messages that are complete in the traces of at least two ranks.' : null;
}
export function pathMissing(data: AnalyzeData): string | null {
  if (data.critical_path === null) return 'The pass critical_path did not run; `lockstep analyze` without --pass runs it.';
  return data.critical_path.path_ns <= 0 ? 'There is no path: the traces hold nothing that takes time.' : null;
}
export function whatIfMissing(data: AnalyzeData): string | null {
  return data.what_if === null && data.bubbles === null
    ? 'Nothing was simulated, because it takes some time and was not asked for. `lockstep analyze TRACES --what-if -o report.html` writes the page with it.' : null;
}
export function regionsMissing(data: AnalyzeData): string | null {
  if (data.regions === null) return 'The pass regions did not run; `lockstep analyze` without --pass runs it.';
  return data.regions.length === 0 ? 'The program marks no ranges. torch.profiler.record_function("name") and torch.cuda.nvtx.range("name") mark them.' : null;
}
export function measuredMissing(data: AnalyzeData): string | null {
  if (data.kernel_launches === null) return 'The pass measured_kernels did not run; `lockstep analyze` without --pass runs it.';
  return data.kernel_launches.length === 0 && (data.kernel_sums ?? []).length === 0
    ? 'No table of `ncu --csv` or `nsys stats` lay beside the traces: give them to `lockstep analyze` as well.' : null;
}
export function stagesMissing(data: AnalyzeData): string | null {
  if (data.stage_scopes === null) return 'The pass stages did not run; `lockstep analyze` without --pass runs it.';
  return data.stage_scopes.length === 0 ? 'No stages of steps lay beside the traces: `lockstep run --stages` records them.' : null;
}
export function groupsMissing(data: AnalyzeData): string | null {
  if (data.groups === null && data.flops === null) return 'The passes about groups did not run; `lockstep analyze` without --pass runs them.';
  return (data.groups ?? []).length === 0 && (data.flops ?? []).length === 0
    ? 'No collectives, messages or shapes of operators were recorded, so there are no process groups and no FLOPs to show.' : null;
}
