/**
 * What the server of the live page says: docs/formats/live-page.md; the view is docs/schema/top-1.schema.json. Times are nanoseconds; `null` is
 * "not measured", never 0.
 */

import type { StepWindow } from '../parts/stage_windows';

type Maybe = number | null;

export interface LiveData {
  interval_ns: number;
  job_id: string | null;
  node_count: number;
  prometheus: 'none' | 'own' | 'other';
  may_capture: boolean;
}

export type Severity = 'info' | 'warning' | 'critical';
export interface Alarm {
  kind: string;
  severity: Severity;
  text: string;
  rank: string | null;
}

/** A part of a GPU that MIG divides. */
export interface MigInstance {
  gi: string;
  uuid: string | null;
  mig_profile: string | null;
  sm_active_ratio: Maybe;
  memory_used_bytes: Maybe;
  memory_total_bytes: Maybe;
}

export interface Gpu {
  gpu: string;
  uuid: string | null;
  model: string | null;
  /** null of one that MIG divides, too. */
  utilization_ratio: Maybe;
  sm_active_ratio: Maybe;
  memory_used_bytes: Maybe;
  memory_total_bytes: Maybe;
  temperature_celsius: Maybe;
  power_watts: Maybe;
  power_limit_watts: Maybe;
  xid_event_count: Maybe;
  uncorrected_ecc_error_count: Maybe;
  thermal_throttle_ratio: Maybe;
  is_unresponsive: boolean | null;
  mig_instances: MigInstance[];
}

/** A port of InfiniBand, or an interface of Ethernet. */
export interface Port {
  device: string;
  port: string | null;
  kind: 'infiniband' | 'ethernet';
  is_up: boolean | null;
  rate_bytes_per_s: Maybe;
  receive_bytes_per_s: Maybe;
  transmit_bytes_per_s: Maybe;
  transmit_wait_per_s: Maybe;
  error_count: Maybe;
  errors_per_s: Maybe;
}

export interface LiveNode {
  host: string;
  place: string;
  problem: string | null;
  silent_ns: Maybe;
  version: string | null;
  clock_offset_ns: Maybe;
  collectors: { name: string; is_present: boolean | null; succeeded: boolean | null }[];
  gpus: Gpu[];
  network: Port[];
  bad_line_count: number;
  is_cut: boolean;
  alarms: Alarm[];
}

export type RankState = 'silent' | 'runs' | 'waits' | 'slow' | 'stuck' | 'unheard';
export type Phase = 'input' | 'h2d' | 'forward' | 'backward' | 'optimizer' | 'comm_exposed' | 'checkpoint' | 'validation' | 'gc' | 'other';

/** What a rank knows of a process group. */
export interface RankGroup {
  group: string;
  enqueued_count: Maybe;
  completed_count: Maybe;
  /** null: none is open. */
  oldest_inflight_ns: Maybe;
}

export interface LiveRank {
  rank: string;
  host: string | null;
  node: string;
  pid: string | null;
  local_rank: string | null;
  user: string | null;
  device: string | null;
  state: RankState;
  waits_for_rank: string | null;
  step_count: Maybe;
  behind_steps: Maybe;
  progress_age_ns: Maybe;
  /** In which it has been for seconds. */
  open_phase: Phase | null;
  open_phase_ns: Maybe;
  is_since_start: boolean;
  steps_per_s: Maybe;
  step_ns: Maybe;
  own_ns: Maybe;
  phases: Record<Phase, Maybe>;
  compute_ratio: Maybe;
  communication_ratio: Maybe;
  input_ratio: Maybe;
  mfu_ratio: Maybe;
  samples_per_s: Maybe;
  tokens_per_s: Maybe;
  torch_memory_allocated_bytes: Maybe;
  torch_memory_reserved_bytes: Maybe;
  torch_memory_peak_bytes: Maybe;
  bus_bytes_per_s: Maybe;
  oldest_collective_ns: Maybe;
  cpu_cores: Maybe;
  resident_memory_bytes: Maybe;
  thread_count: Maybe;
  storage_read_bytes_per_s: Maybe;
  storage_written_bytes_per_s: Maybe;
  gpu: Gpu | null;
  event_count: Maybe;
  dropped_event_count: Maybe;
  /** Messages of level error or fatal; null: no log of it is read. */
  log_error_count: Maybe;
  log_errors_per_s: Maybe;
  groups: RankGroup[];
  values: { name: string; value: number }[];
}

interface Quantiles {
  p50: Maybe;
  p90: Maybe;
  p95: Maybe;
  p99: Maybe;
}
export interface Serving {
  host: string;
  model: string | null;
  engine: string | null;
  request_count: Maybe;
  failure_count: Maybe;
  running_count: Maybe;
  waiting_count: Maybe;
  kv_cache_usage_ratio: Maybe;
  preemption_count: Maybe;
  preemptions_per_s: Maybe;
  requests_per_s: Maybe;
  failure_ratio: Maybe;
  tokens_per_s: Maybe;
  request_ns: Quantiles;
  first_token_ns: Quantiles;
  inter_token_ns: Quantiles;
}

export interface LiveJob {
  job_id: string;
  world_size: Maybe;
  missing_ranks: number[];
  steps_per_s: Maybe;
  step_ns: Maybe;
  own_ns: Maybe;
  step_median_ns: Maybe;
  compute_ratio: Maybe;
  communication_ratio: Maybe;
  input_ratio: Maybe;
  mfu_ratio: Maybe;
  samples_per_s: Maybe;
  tokens_per_s: Maybe;
  slowest_rank: string | null;
  slowest_ratio: Maybe;
  stages: { answer: string; rank: Maybe; stage: string | null; sentence: string } | null;
  alarms: Alarm[];
  ranks: LiveRank[];
  serving: Serving[];
}

export interface LiveView {
  asked_unix_ns: number;
  window_ns: number;
  look_count: number;
  nodes: LiveNode[];
  jobs: LiveJob[];
}

export interface Capture {
  id: string;
  job_id: string;
  state: 'waiting' | 'running' | 'fetching' | 'analysing' | 'ready' | 'failed' | 'cancelled' | 'dropped';
  reason: string | null;
  asked_unix_ns: number;
  finished_unix_ns: Maybe;
  folder: string | null;
  url: string | null;
  is_partial: boolean;
  sentence: string | null;
  iterations: Maybe;
  duration_ns: Maybe;
  ranks: number[] | null;
  target_count: Maybe;
  kept_count: Maybe;
}

export interface HangLook {
  id: string;
  job_id: string;
  state: 'collecting' | 'analysing' | 'ready' | 'failed' | 'cancelled' | 'dropped';
  reason: string | null;
  asked_unix_ns: number;
  finished_unix_ns: Maybe;
  folder: string | null;
  url: string | null;
  is_partial: boolean;
  sentence: string | null;
  done_count: Maybe;
  total_count: Maybe;
  kind: string | null;
  confidence: Maybe;
}

export interface Captures {
  captures: Capture[];
  hangs: HangLook[];
}

export interface Alert {
  name: string;
  state: 'pending' | 'firing';
  severity: string | null;
  summary: string;
  runbook: string | null;
  labels: Record<string, string>;
  since_unix_ns: number;
  value: Maybe;
}
export interface Alerts {
  state: 'starting' | 'answers' | 'silent';
  problem: string | null;
  url: string | null;
  asked_unix_ns: Maybe;
  alerts: Alert[];
}

export interface HealthEntry {
  id: number;
  at_unix_ns: number;
  kind: string;
  phase: 'began' | 'ended' | 'happened';
  severity: Severity;
  text: string;
  host: string | null;
  job_id: string | null;
  rank: string | null;
  device: string | null;
}
export interface Health {
  entries: HealthEntry[];
  dropped_count: number;
}

/** Columns of a history: a value a bucket. */
export type Columns = Record<string, Maybe[]>;

export interface HistoryDocument {
  schema: 'lockstep.live-history/1';
  until_unix_ns: number;
  window_ns: number;
  bucket_ns: number;
  times_unix_ns: number[];
  /** Besides the columns that are named here each row has others, all of as many values. */
  jobs: ({ job_id: string; ranks: { rank: string; state: string }[]; serving: { host: string; model: string | null; engine: string | null }[] })[];
  nodes: { host: string; gpus: { gpu: string; mig_instances: { gi: string }[] }[]; network: { device: string; port: string | null }[] }[];
}

/** What the stages of jobs' newest steps say. */
export interface StageNews {
  asked_unix_ns: number;
  /** Names, in the order of `frontier_ns` and of the letters of `leads`, from "a" on. */
  stages: string[];
  jobs: (JobStages | { job_id: string; problem: string })[];
}
export interface JobStages {
  job_id: string;
  problem: null;
  is_partial: boolean;
  verdict: { answer: 'straggler' | 'imbalance' | 'stage' | 'even' | 'undecided'; rank: Maybe; stage: string | null; sentence: string };
  why: string;
  next: string;
  step_count: number;
  ranks: number[];
  windows: StageWindow[];
}
/** `frontier_ns` in the order of `stages`. */
export interface StageWindow extends StepWindow {
  /** A letter a rank, in the order of `ranks`: the stage in which it held the job up; ".": it did not. */
  leads: string;
}
