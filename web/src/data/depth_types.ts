/**
 * What a page knows of why a step takes its time (`src/present/page/depth_tables.h`): the critical path, first causes of waiting, what
 * changes would gain, how the job is divided. Times, ranks and nulls as in types.ts.
 */
import type { FabricRow, FabricSource } from './fabric';

/** In the words of docs/metrics.md#critical-path. */
export type PathCategory = 'host' | 'data_loader' | 'compute' | 'copy' | 'transfer' | 'launch' | 'kernel_gap' | 'delay' | 'order' | 'sync' | 'join';

export type CategoryTimes = Partial<Record<PathCategory, number>>;

export interface PathStep {
  window: number;
  step: number;
  start_ns: number;
  step_ns: number;
  path_ns: number;
  rank_count: number;
  unmatched_count: number;
  category_ns: CategoryTimes;
  /** [rank_index, slack_ns]; null where the page has no room for that. */
  slack: [number, number][] | null;
}

export interface PathName {
  category: PathCategory;
  /** null: nobody's time, such as a gap. */
  name: string | null;
  path_ns: number;
  /** How much longer it could take, at its tightest, before a step ended later. */
  slack_ns: number | null;
}

export interface CriticalPathData {
  /** Sums over all steps of the run, also over those that `steps` does not have. */
  step_count: number;
  step_ns: number;
  path_ns: number;
  largest_error_ns: number;
  categories: { category: PathCategory; path_ns: number }[];
  ranks: { rank_index: number; path_ns: number; slack_ns: number | null; category_ns: CategoryTimes }[];
  names: PathName[];
  rest_name_count: number;
  rest_names_ns: number;
  steps: PathStep[];
  /** [place in steps, rank_index, place in kinds, place in texts, ns]: what each step's path is made of, longest first. */
  rows: [number, number, number, number, number][];
  /** Of each step, what its rows left out. */
  rest_ns: number[];
  rows_per_step: number | null;
  /** [place in steps, rank_index, place in kinds, place in texts, ns after the step's start, ns]: where the path ran. */
  pieces: [number, number, number, number, number, number][];
  pieces_per_step: number | null;
  texts: string[];
  kinds: PathCategory[];
}

export interface WaitHop {
  group: string;
  sequence: number;
  name: string;
  rank: number;
  late_rank: number;
  wait_ns: number;
}

export interface RootCause {
  cause: string;
  rank_index: number | null;
  rank_count: number;
  rank_indices: number[];
  name: string | null;
  own_ns: number;
  peers_ns: number;
  direct_wait_ns: number;
  propagated_wait_ns: number;
  wait_ratio: number;
  collective_count: number;
  delay_ns: number;
  pattern: 'chronic' | 'periodic' | 'one_off' | 'irregular';
  pattern_text: string;
  period_steps: number | null;
  step_count: number;
  late_step_count: number;
  steps: number[];
  text: string;
  chains: { rank_index: number; wait_ns: number; text: string; hops: WaitHop[] }[];
}

export interface WaitStatesData {
  wait_ns: number;
  /** Who is behind it, in sentences. */
  text: string;
  /** Who is named, most waiting first. */
  culprits: { rank_index: number | null; wait_ns: number; wait_ratio: number }[];
  states: { rank_index: number; kind: string; count: number; wait_ns: number }[];
  causes: RootCause[];
  cause_count: number;
  rest_causes_ns: number;
}

export interface Lever {
  id: string;
  title: string;
  /** Global ranks; empty = all. */
  ranks: number[];
  step_ns: number;
  gain_ns: number;
  gain_ratio: number;
}

export interface StudyShare {
  name: string;
  slowdown: number;
}

export interface Study {
  slowdown: number | null;
  launch_slowdown: number | null;
  slow_workers_ratio: number | null;
  last_stage_ratio: number | null;
  by_stage: StudyShare[];
  by_dp_rank: StudyShare[];
  by_operation: StudyShare[];
  no_delay_step_ns: number;
  ideal_step_ns: number;
  last_stage: number;
  slow_workers: number[];
}

export interface WhatIfData {
  observed_step_ns: number;
  simulated_step_ns: number;
  error_ratio: number | null;
  replayed_step_ns: number | null;
  levers: Lever[];
  lever_count: number;
  step_count: number;
  steps: { step: number; observed_ns: number; simulated_ns: number; ideal_ns: number | null }[];
  study: Study | null;
}

export interface BubblesData {
  steps: {
    step: number; dp_rank: number; stage_count: number; micro_batch_count: number; iteration_ns: number; bubble_ratio: number;
    ideal_bubble_ratio: number; warm_up: boolean;
  }[];
  stages: { step: number; dp_rank: number; stage: number; window_ns: number; busy_ns: number; bubble_ratio: number; memory_bytes: number | null }[];
}

export interface GroupRow {
  group_number: number;
  window: number;
  name: string;
  description: string | null;
  backend: string | null;
  kind: string;
  basis: string;
  confidence: string;
  evidence: string;
  size: number | null;
  is_world: boolean;
  ranks: number[];
  trace_count: number;
  call_count: number;
  calls_per_step: number | null;
  bytes: number | null;
  communication_ns: number;
  exposed_ns: number;
  communication_ratio: number | null;
  exposed_ratio: number | null;
}

export interface GroupOperationRow {
  group_number: number;
  name: string;
  call_count: number;
  backward_count: number;
  bytes: number | null;
  duration_ns: number;
  exposed_ns: number;
}

export interface DdpBucketRow {
  group_number: number;
  bucket: number;
  call_count: number;
  bytes: number | null;
  mean_duration_ns: number;
  issue_ratio: number;
  mean_overlapped_ns: number | null;
  mean_exposed_ns: number;
}

export interface DdpRow {
  rank_index: number;
  group_number: number;
  pass_count: number;
  buckets_per_pass: number;
  bytes_per_pass: number | null;
  communication_ns: number;
  exposed_ns: number;
  tail_ns: number | null;
}

export interface FsdpRow {
  rank_index: number;
  group_number: number;
  step_count: number;
  gather_count: number;
  gather_backward_count: number;
  gather_bytes: number | null;
  gather_ns: number;
  gather_exposed_ns: number;
  prefetched_count: number;
  scatter_count: number;
  scatter_bytes: number | null;
  scatter_ns: number;
  scatter_exposed_ns: number;
  resharding: 'after_forward' | 'kept' | 'unknown';
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
}

export interface PipelineRow {
  rank_index: number;
  group_number: number;
  stage: number;
  stage_count: number;
  send_count: number;
  receive_count: number;
  bytes: number | null;
  microbatches_per_step: number | null;
  in_flight_count: number | null;
  schedule: string;
  communication_ns: number;
  bubble_ns: number;
  bubble_ratio: number | null;
}

export interface FlopsRow {
  rank_index: number;
  device: string | null;
  call_count: number;
  unknown_count: number;
  flops: number;
  time_ns: number;
  span_ns: number;
  precision: string;
  flops_per_s: number | null;
  peak_flops_per_s: number | null;
  peak_source: string | null;
  mfu: number | null;
}

export interface OperatorFlopsRow {
  rank_index: number;
  name: string;
  dims: string;
  dtype: string | null;
  precision: string;
  call_count: number;
  timed_count: number;
  flops: number;
  bytes: number;
  intensity: number;
  time_ns: number;
  mean_flops_per_s: number | null;
  median_flops_per_s: number | null;
  mean_bytes_per_s: number | null;
  compute_bound: boolean | null;
  roof_ratio: number | null;
}

export interface DevicePeak {
  device: string;
  bandwidth_bytes_per_s: number;
  source: string;
  flops_per_s: Record<string, number>;
}

/** Ranges of one name that the program of a rank marks. */
export interface RegionRow {
  rank_index: number;
  name: string;
  count: number;
  total_ns: number;
  min_ns: number;
  median_ns: number;
  p95_ns: number;
  max_ns: number;
  own_ns: number | null;
  pace_ns: number | null;
  device_event_count: number;
  device_ns: number | null;
  device_communication_ns: number | null;
  projected_ns: number | null;
}

/** One such name over the ranks of the first window. */
export interface RegionBalanceRow {
  name: string;
  rank_count: number;
  count: number;
  mean_total_ns: number;
  most_total_rank: number;
  total_imbalance: number;
  mean_own_ns: number | null;
  most_own_rank: number | null;
  own_imbalance: number | null;
  mean_device_ns: number | null;
  most_device_rank: number | null;
  device_imbalance: number | null;
}

/** A launch that Nsight Compute measured, of a table beside the traces. Times are under ncu. */
export interface KernelLaunchRow {
  file: string;
  rank: number | null;
  id: number;
  kernel: string;
  device: string | null;
  compute_capability: string | null;
  grid: string | null;
  block: string | null;
  duration_ns: number | null;
  bound: string;
  compute_ratio: number | null;
  memory_ratio: number | null;
  dram_ratio: number | null;
  occupancy_ratio: number | null;
  dram_bytes_per_s: number | null;
  dram_peak_bytes_per_s: number | null;
  measured_nothing: boolean;
}

/** Such a launch under the roofline of one kind of arithmetic. */
export interface KernelRooflineRow {
  file: string;
  rank: number | null;
  id: number;
  kernel: string;
  device: string | null;
  precision: string;
  flops_per_s: number;
  peak_flops_per_s: number;
  flops_per_byte: number;
  ridge_flops_per_byte: number;
  roof_flops_per_s: number;
  roof_ratio: number;
  approximate: boolean;
}

/** A name that `nsys stats` sums up, over all reports beside the traces. */
export interface KernelSumRow {
  kind: string;
  name: string;
  count: number;
  total_ns: number;
  min_ns: number;
  max_ns: number;
  report_count: number;
  imbalance: number | null;
  most_rank: number | null;
}

/** Some of the steps that stages were recorded of. */
export interface StageScopeRow {
  scope: string;
  step_count: number;
  first_step: number | null;
  last_step: number | null;
  total_ns: number;
  median_step_ns: number;
  answer: string;
  rank: number | null;
  stage: string | null;
  cost_ns: number;
  cost_ratio: number;
  confidence: number;
}

/** What a stage adds to a step. */
export interface StageShareRow {
  stage: string;
  job_ns: number;
  traced_ns: number | null;
  not_traced_ns: number | null;
  cost_rank: number | null;
  cost_ns: number;
}

/** A question that stages and traces answer. */
export interface StageAgreementRow {
  question: string;
  agrees: boolean | null;
  stages_ns: number | null;
  trace_ns: number | null;
  stages_rank: number | null;
  trace_rank: number | null;
  stages_stage: string | null;
  trace_stage: string | null;
  sentence: string;
}

/** Part of AnalyzeData; null = the pass did not run. */
export interface DepthData {
  critical_path: CriticalPathData | null;
  wait_states: WaitStatesData | null;
  what_if: WhatIfData | null;
  bubbles: BubblesData | null;
  groups: GroupRow[] | null;
  group_operations: GroupOperationRow[] | null;
  ddp: DdpRow[] | null;
  ddp_buckets: DdpBucketRow[] | null;
  fsdp: FsdpRow[] | null;
  pipeline: PipelineRow[] | null;
  flops: FlopsRow[] | null;
  flops_by_operator: OperatorFlopsRow[] | null;
  regions: RegionRow[] | null;
  region_balance: RegionBalanceRow[] | null;
  kernel_launches: KernelLaunchRow[] | null;
  kernel_rooflines: KernelRooflineRow[] | null;
  kernel_sums: KernelSumRow[] | null;
  stage_scopes: StageScopeRow[] | null;
  stage_shares: StageShareRow[] | null;
  stage_agreement: StageAgreementRow[] | null;
  fabric: FabricRow[] | null;
  fabric_source: FabricSource | null;
  device_peaks: DevicePeak[];
}
