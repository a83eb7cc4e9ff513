/**
 * What a page is made from. `docs/formats/page-data.md` says how it is laid out in bytes; `load.ts` reads it.
 * Times are integer nanoseconds unless a name says otherwise; instants are relative to `job.origin_ns`, the start of the
 * run on its common clock. `null` is "not measured", never 0. Ranks are named by index into `ranks`.
 */

import type { SqlProgram } from '../sql/database';
import type { DepthData } from './depth_types';

export type PageKind = 'analyze' | 'compare' | 'scaling' | 'hang' | 'stages' | 'stage-comparison' | 'nccl' | 'kernels' | 'fabric' | 'live';

export interface Reduction {
  /** What was left out, such as "events" or "collective_instances". */
  what: string;
  message: string;
}

export interface LedgerEntry {
  code: string;
  severity: 'info' | 'warning' | 'error';
  source: string | null;
  rank: number | null;
  byte_offset: number | null;
  count: number;
  message: string;
  advice: string | null;
}

export interface Evidence {
  name: string;
  value: number;
  text: string;
}

export interface Finding {
  id: string;
  severity: 'info' | 'warning' | 'critical';
  ranks: number[];
  title: string;
  evidence: Evidence[];
  advice: string[];
  gain_ns_per_step: number | null;
  /** Of the step that it was reckoned with. */
  gain_ratio: number | null;
}

export interface RankFacts {
  rank: number;
  window: number;
  host: string | null;
  device: string | null;
  source: string;
  /** What this rank's instants count from: job.origin_ns, unless nothing tells how its clock lies to the others'. */
  origin_ns: string;
  step_count: number;
  event_count: number;
  clock: { basis: string; offset_ns: number; drift_ppm: number; uncertainty_ns: number | null; sample_count: number };
}

/** Of one rank over its whole window; `mean_*` are not here: views divide by step_count. */
export interface BreakdownRow {
  rank_index: number;
  basis: 'device' | 'cpu' | 'none';
  span_ns: number;
  busy_ns: number;
  compute_ns: number;
  communication_ns: number;
  exposed_communication_ns: number;
  overlapped_communication_ns: number;
  memory_ns: number;
  exposed_memory_ns: number;
  idle_ns: number;
}

export interface IdleRow {
  rank_index: number;
  host_wait_ns: number;
  kernel_wait_ns: number;
  other_ns: number;
}

export interface IdleHostRow {
  rank_index: number;
  runtime_ns: number;
  data_loader_ns: number;
  operator_ns: number;
  unknown_ns: number;
}

/** One name over all ranks. `by_rank` has the total of each rank (null: it never ran there), when ranks are few enough. */
export interface NameRow {
  name: string;
  kind: string;
  count: number;
  /** Kernels: durations added up. Operators: device_self_ns; `kind` is 'operator'. */
  total_ns: number;
  /** Operators only. */
  cpu_self_ns: number | null;
  cpu_total_ns: number | null;
  device_total_ns: number | null;
  /** Kernels only. */
  mean_ns: number | null;
  min_ns: number | null;
  max_ns: number | null;
  /**
   * Totals over the ranks that ran it: minimum, quartiles, maximum, and who has the extremes. Operators: of device_self_ns,
   * or of cpu_self_ns where the operator has no time on any device; `by_rank` holds the same quantity.
   */
  rank_quantiles_ns: [number, number, number, number, number];
  min_rank_index: number;
  max_rank_index: number;
  rank_count: number;
  by_rank: (number | null)[] | null;
}

export interface StragglerRow {
  rank_index: number;
  collective_count: number;
  last_count: number;
  wait_ns: number;
  wait_given_ns: number;
  delay_ns: number;
  last_ratio: number;
  role: 'none' | 'straggler' | 'passes_on';
  chronic: boolean;
  late_step_count: number;
  step_count: number;
  activities: { cause: string; name: string; excess_ns: number }[];
}

/** Waiting of one rank for another: in collectives where `culprit` was last. Only pairs above 0. */
export interface WaitPair {
  victim_rank_index: number;
  culprit_rank_index: number;
  wait_ns: number;
  count: number;
}

/** A point of the bandwidth chart: all instances of one operation, group size and message size. */
export interface BandwidthRow {
  name: string;
  group_size: number | null;
  bytes: number;
  count: number;
  /** Minimum, quartiles, maximum; waiting is not included. */
  busbw_bytes_per_s: [number, number, number, number, number];
  algbw_median_bytes_per_s: number;
}

export interface MemoryRow {
  rank_index: number;
  device: number;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  device_memory_bytes: number | null;
  allocation_count: number;
  net_bytes: number;
}

/** Allocated bytes over time of one rank's device, reduced to the largest and smallest of each time bucket. */
export interface MemorySeries {
  rank_index: number;
  device: number;
  time_ns: number[];
  min_bytes: number[];
  max_bytes: number[];
}

/** A hardware metric of one device of one rank, or what the rank's program counts. */
export interface CounterRow {
  rank_index: number;
  /** null: of the process or its host. */
  device: number | null;
  name: string;
  unit: string | null;
  sample_count: number;
  mean: number;
  min: number;
  median: number;
  p95: number;
  max: number;
  /** Over time, reduced to the largest and smallest of each stretch of time; empty where the page has no room. */
  time_ns: number[];
  low: number[];
  high: number[];
}

/** From spans to those that they called, in other threads, processes and ranks. */
export interface SpanLinks {
  /** Caller: rank index, start, place in `names`; called: the same. */
  rows: [number, number, number, number, number, number][];
  names: string[];
}

export interface ImbalanceRow {
  quantity: string;
  mean: number;
  min: number;
  max: number;
  ratio: number | null;
  max_rank_index: number;
  min_rank_index: number;
}

export interface LaunchRow {
  rank_index: number;
  launch_count: number;
  median_delay_ns: number | null;
  max_delay_ns: number;
  long_delay_count: number;
  short_kernel_count: number;
  long_call_count: number;
}

/** Where the big blocks are and what is in them. */
export interface StepMatrixShape {
  /** Columns of the matrix; a rank's missing step is null in every quantity. */
  step_numbers: number[];
  /** Of each column: when the first rank began the step and the last one ended it. */
  start_ns: number[];
  end_ns: number[];
  /** Rows of the matrix. */
  rank_indices: number[];
  quantities: StepQuantity[];
}
export type StepQuantity =
  | 'step_ns' | 'compute_ns' | 'communication_ns' | 'exposed_communication_ns' | 'exposed_memory_ns' | 'idle_ns' | 'wait_ns';

export interface AnalyzeData extends DepthData {
  job: {
    name: string;
    origin_ns: string; // Wall clock, decimal: beyond 2^53.
    span_ns: number;
    rank_count: number;
    world_size: number | null;
    missing_ranks: number[];
    hosts: string[];
    backend: string | null;
    step_count: number;
    event_count: number;
    /** "4 x NVIDIA H100, 2 x unnamed device". */
    devices: string | null;
  };
  /** Headlines, at least one; `gain`: "costs up to 39 % of a step". */
  verdict: { title: string; gain: string | null }[];
  ranks: RankFacts[];
  findings: Finding[];
  breakdown: BreakdownRow[];
  idle: IdleRow[];
  idle_host: IdleHostRow[];
  kernels: NameRow[];
  operators: NameRow[];
  stragglers: StragglerRow[];
  waits: WaitPair[];
  bandwidth: BandwidthRow[];
  imbalance: ImbalanceRow[];
  memory: MemoryRow[];
  memory_series: MemorySeries[];
  counters: CounterRow[];
  span_links: SpanLinks;
  launch: LaunchRow[];
  /** Of the block `tables`, in its order. */
  tables: DeclaredTableFacts[];
  step_matrix: StepMatrixShape | null;
  collective_count: number;
  /** span_ns: of all windows, from origin_ns; job.span_ns is of the first window. */
  timeline: { span_ns: number; level_bucket_counts: number[]; has_events: boolean } | null;
}

export interface PageDocument<Data = AnalyzeData> {
  schema: 'lockstep.page/1';
  kind: PageKind;
  version: string;
  title: string;
  partial: boolean;
  reductions: Reduction[];
  ledger: LedgerEntry[];
  data: Data;
}

/** rank x step, in nanoseconds; NaN where not measured. */
export interface StepMatrix {
  shape: StepMatrixShape;
  /** Row-major: rank row * step count + step column. 8 bytes a cell; only the last two that were asked for are held. */
  values(quantity: StepQuantity): Float64Array;
  /** One row: every step of a rank. The cheap way where the whole matrix is not drawn. */
  ofRank(quantity: StepQuantity, row: number): Float64Array;
  /** One column: a step of every rank. */
  ofStep(quantity: StepQuantity, column: number): Float64Array;
  /** Mean of each row over the steps that the rank has. Held. */
  rankMeans(quantity: StepQuantity): Float64Array;
  /** Mean of each column over the ranks that have the step. Held. */
  stepMeans(quantity: StepQuantity): Float64Array;
}

export interface CollectiveMember {
  rank_index: number;
  arrival_ns: number;
  end_ns: number;
  wait_ns: number | null;
}

export interface CollectiveInstance {
  index: number;
  name: string;
  group: string;
  sequence: number;
  bytes: number | null;
  first_arrival_ns: number;
  last_arrival_ns: number;
  transfer_ns: number | null;
  busbw_bytes_per_s: number | null;
  total_wait_ns: number;
  last_rank_index: number | null;
  step_number: number | null;
}

export interface CollectiveTable {
  count: number;
  instance(index: number): CollectiveInstance;
  members(index: number): CollectiveMember[];
  /** Largest total wait first. */
  readonly by_wait: Uint32Array;
}

/** Classes of the overview, in the order of the bytes of a bucket. */
export const TIMELINE_CLASSES = ['compute', 'communication', 'memory', 'host'] as const;

/** Level of detail: for each rank and bucket, the share (0..255) that each class was busy. */
export interface TimelineLevel {
  bucket_count: number;
  bucket_ns: number;
  /** rank_index * bucket_count * 4 + bucket * 4 + class. */
  shares: Uint8Array;
}

/** Events of one track, sorted by start; nested ones have a level above 0. */
export interface TrackEvents {
  lane: 'operators' | 'python' | 'runtime' | 'device' | 'device_annotation' | 'other';
  label: string;
  /** `pid` and `tid` of the file; ordinal and stream on devices. */
  process_id: number;
  thread_id: number;
  level_count: number;
  start_ns: Float64Array;
  duration_ns: Float64Array | Uint32Array;
  name: Uint32Array;
  /** Index into TIMELINE_CLASSES; 255 = none. */
  class: Uint8Array;
  level: Uint8Array;
  /** Of tracks of a device: the event that launched each, by its place in the rank's tracks one after the other as the page holds them; -1: not there. */
  launch: Int32Array | null;
  /** Place of the first event among all of the rank. */
  first: number;
}

/** Everything a view may ask for. Views never decode bytes themselves. */
/** A table that an analysis declares: what a row is, without a full stop. */
export interface DeclaredTableFacts {
  name: string;
  /** Of `lockstep query`; null where it has none. */
  sql_name: string | null;
  sentence: string;
  /** Where it lies in `data` of --json. */
  json_path: string;
  row_count: number;
}

export type DeclaredCell = string | number | boolean | null | DeclaredCell[] | { [name: string]: DeclaredCell };

/** Its rows as `--json` has them; the first ones of a long table. */
export interface DeclaredTable {
  name: string;
  columns: {
    name: string;
    type: 'integer' | 'real' | 'text' | 'boolean' | 'object';
    is_list: boolean;
    unit: string;
    meaning: string;
    /** Whether it is one of the table in --json, and in `lockstep query`: two may have one name, and differ in their clock. */
    in_json: boolean;
    in_sql: boolean;
  }[];
  rows: DeclaredCell[][];
}

export interface PageSource {
  readonly document: PageDocument<unknown>;
  tables(): Promise<DeclaredTable[]>;
  /** SQLite; null: the page was to be smaller than it. */
  sqlProgram(): Promise<SqlProgram | null>;
  steps(): Promise<StepMatrix | null>;
  collectives(): Promise<CollectiveTable | null>;
  timeline(): Promise<TimelineLevel[]>;
  /** Single events of one rank; null when the page was reduced and has none. Kept in a cache of bounded size. */
  events(rank_index: number): Promise<TrackEvents[] | null>;
  names(): Promise<string[]>;
}
