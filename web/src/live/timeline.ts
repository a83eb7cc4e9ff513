import type { Columns, HistoryDocument, LiveView, RankState } from './types';

/** Letters of rank states in a history. */
const STATES: Record<string, RankState> = { s: 'silent', r: 'runs', w: 'waits', l: 'slow', k: 'stuck', u: 'unheard' };
/** By how much they matter, as numbers: where several share a bucket, or a pixel, the larger one shows. */
export const STATE_ORDER: readonly RankState[] = ['silent', 'runs', 'waits', 'slow', 'unheard', 'stuck'];

/** Rows of one kind (ranks, GPUs, ...) with their columns over the buckets of a timeline. */
type Rows = Map<string, Columns>;

const RANK = ['step_ns', 'own_ns', 'compute_ratio', 'communication_ratio'] as const;
const JOB = [
  'steps_per_s', 'step_ns', 'tokens_per_s', 'samples_per_s', 'compute_ratio', 'communication_ratio', 'input_ratio', 'mfu_ratio',
] as const;
const GPU = ['utilization_ratio', 'sm_active_ratio', 'memory_used_bytes', 'power_watts', 'temperature_celsius'] as const;
const MIG_INSTANCE = ['sm_active_ratio', 'memory_used_bytes'] as const;
const PORT = ['receive_bytes_per_s', 'transmit_bytes_per_s'] as const;
const SERVING = ['requests_per_s', 'tokens_per_s', 'running_count', 'waiting_count', 'kv_cache_usage_ratio', 'preemptions_per_s'] as const;
const LATENCIES = ['request', 'first_token', 'inter_token'] as const;
const QUANTILES = ['p50', 'p95', 'p99'] as const;

export interface JobTimeline {
  job: Columns;
  ranks: Rows;
  /** By servingKey. */
  serving: Rows;
}

export function servingKey(row: { host: string; model: string | null; engine: string | null }): string {
  return JSON.stringify([row.host, row.model, row.engine]);
}
/** `part`: of a network's device the port, of a GPU that MIG divides the instance. */
export function deviceKey(host: string, device: string, part: string | null = null): string {
  return JSON.stringify(part === null ? [host, device] : [host, device, part]);
}

/** More buckets than the server keeps: then its history, which is coarser by then, is asked for again. */
const MOST_BUCKETS = 640;
/** Of a history: what comes after it must find room, or it would be asked for again at once. */
const MOST_LOADED = (MOST_BUCKETS * 3) / 4;

/**
 * What was measured when: columns over buckets of equal length without holes, so that a place in a column is a time. Begins
 * as the server's history, and goes on with each view.
 */
export class Timeline {
  bucket_ns = 1e9;
  /** Number (time / bucket_ns) of the first bucket. */
  first = 0;
  length = 0;
  readonly jobs = new Map<string, JobTimeline>();
  /** And their MIG instances. */
  readonly gpus: Rows = new Map();
  readonly network: Rows = new Map();
  /** Looks in the last bucket. */
  private looks = 0;
  private until = 0;

  /** While the page is paused: the time that is shown as the last one; what comes after it is kept. */
  frozen_ns: number | null = null;

  /** How many buckets are shown: all, unless it is frozen. */
  get shown(): number {
    return this.frozen_ns === null ? this.length : Math.max(0, Math.min(this.length, Math.floor(this.frozen_ns / this.bucket_ns) - this.first + 1));
  }

  /** Number (time / bucket_ns) of the last bucket that is shown. */
  get last_number(): number {
    return this.first + this.shown - 1;
  }

  /** True: it has become too long, load() it again. */
  get is_full(): boolean {
    return this.length >= MOST_BUCKETS;
  }

  private row(rows: Rows, key: string): Columns {
    let columns = rows.get(key);
    if (!columns) rows.set(key, (columns = {}));
    return columns;
  }

  job(job_id: string): JobTimeline {
    let job = this.jobs.get(job_id);
    if (!job) this.jobs.set(job_id, (job = { job: {}, ranks: new Map(), serving: new Map() }));
    return job;
  }

  /** Columns may be shorter than the timeline: what is not there is null. */
  private column(columns: Columns, name: string): (number | null)[] {
    const column = (columns[name] ??= []);
    while (column.length < this.length) column.push(null);
    return column;
  }

  load(history: HistoryDocument) {
    this.jobs.clear();
    this.gpus.clear();
    this.network.clear();
    this.bucket_ns = history.bucket_ns;
    const numbers = history.times_unix_ns.map((time) => Math.floor(time / history.bucket_ns));
    this.first = numbers[0] ?? Math.floor(history.until_unix_ns / history.bucket_ns);
    this.length = numbers.length === 0 ? 0 : Math.min(MOST_LOADED, numbers[numbers.length - 1]! - this.first + 1);
    this.first = numbers.length === 0 ? this.first : numbers[numbers.length - 1]! - this.length + 1;
    this.looks = 1;
    this.until = history.until_unix_ns;
    const fill = (columns: Columns, from: object, names: readonly string[]) => {
      for (const name of names) {
        const values = (from as Record<string, unknown>)[name];
        if (!Array.isArray(values)) continue;
        const column = this.column(columns, name);
        numbers.forEach((number, i) => {
          const value: unknown = values[i];
          if (number < this.first) return;
          column[number - this.first] = typeof value === 'number' ? value : null;
          const before = i > 0 ? numbers[i - 1]! : number - 1;
          if (!this.covers(number - before, history.window_ns)) return;
          for (let hole = Math.max(before + 1, this.first); hole < number; ++hole) column[hole - this.first] = column[number - this.first]!;
        });
      }
    };
    for (const job of history.jobs) {
      const into = this.job(job.job_id);
      fill(into.job, job, JOB);
      for (const rank of job.ranks) {
        const columns = this.row(into.ranks, rank.rank);
        fill(columns, rank, RANK);
        const states = [...(rank.state ?? '')].map((letter) => (STATES[letter] ? STATE_ORDER.indexOf(STATES[letter]) : null));
        fill(columns, { state: states }, ['state']);
      }
      for (const serving of job.serving) {
        const names = [...SERVING, ...LATENCIES.flatMap((what) => QUANTILES.map((q) => `${what}_${q}_ns`))];
        fill(this.row(into.serving, servingKey(serving)), serving, names);
      }
    }
    for (const node of history.nodes) {
      for (const gpu of node.gpus) {
        fill(this.row(this.gpus, deviceKey(node.host, gpu.gpu)), gpu, GPU);
        for (const instance of gpu.mig_instances) fill(this.row(this.gpus, deviceKey(node.host, gpu.gpu, instance.gi)), instance, MIG_INSTANCE);
      }
      for (const port of node.network) {
        fill(this.row(this.network, deviceKey(node.host, port.device, port.port)), port, PORT);
      }
    }
  }

  /** Goes on with a view; false: it is not newer than what is there. */
  /** Whether a look's means, which are of its window, hold for the buckets since the look before as well: looks come a little further apart than they should. */
  private covers(distance: number, window_ns: number): boolean {
    return distance - 1 <= Math.max(1, Math.ceil(window_ns / this.bucket_ns));
  }

  append(view: LiveView): boolean {
    if (view.asked_unix_ns <= this.until) return false;
    this.until = view.asked_unix_ns;
    const number = Math.floor(view.asked_unix_ns / this.bucket_ns);
    if (this.length === 0) this.first = number;
    const last_before = this.first + this.length - 1;
    const skipped = this.length > 0 && this.covers(number - last_before, view.window_ns) ? Math.max(0, number - last_before - 1) : 0;
    if (number - this.first >= this.length) {
      // After a long silence (the machine slept) what was before is too far away to be of use beside what is now.
      if (number - this.first >= 2 * MOST_BUCKETS) {
        this.jobs.clear();
        this.gpus.clear();
        this.network.clear();
        this.first = number;
      }
      this.length = number - this.first + 1;
      this.looks = 0;
    }
    ++this.looks;
    const last = this.length - 1;
    const put = (columns: Columns, name: string, value: number | null | undefined) => {
      const column = this.column(columns, name);
      const before = column[last] ?? null;
      if (value === null || value === undefined) return;
      column[last] = before === null ? value : before + (value - before) / this.looks;
      column.fill(value, last - skipped, last);
    };
    for (const job of view.jobs) {
      const into = this.job(job.job_id);
      for (const name of JOB) put(into.job, name, job[name]);
      for (const rank of job.ranks) {
        const columns = this.row(into.ranks, rank.rank);
        // What a node that does not answer said last was not measured now.
        if (rank.state !== 'unheard') for (const name of RANK) put(columns, name, rank[name]);
        const states = this.column(columns, 'state');
        states[last] = Math.max(states[last] ?? 0, STATE_ORDER.indexOf(rank.state));
        states.fill(states[last]!, last - skipped, last);
      }
      for (const serving of job.serving) {
        const columns = this.row(into.serving, servingKey(serving));
        for (const name of SERVING) put(columns, name, serving[name]);
        for (const what of LATENCIES) for (const q of QUANTILES) put(columns, `${what}_${q}_ns`, serving[`${what}_ns`][q]);
      }
    }
    for (const node of view.nodes) {
      if (node.problem !== null) continue;
      for (const gpu of node.gpus) {
        const columns = this.row(this.gpus, deviceKey(node.host, gpu.gpu));
        for (const name of GPU) put(columns, name, gpu[name]);
        for (const instance of gpu.mig_instances) {
          const part = this.row(this.gpus, deviceKey(node.host, gpu.gpu, instance.gi));
          for (const name of MIG_INSTANCE) put(part, name, instance[name]);
        }
      }
      for (const port of node.network) {
        const columns = this.row(this.network, deviceKey(node.host, port.device, port.port));
        for (const name of PORT) put(columns, name, port[name]);
      }
    }
    return true;
  }

  /** The last `count` values of a column that are shown, oldest first; null for what is not there. */
  last(columns: Columns | undefined, name: string, count: number): (number | null)[] {
    const column = columns?.[name] ?? [];
    const from = this.shown - count;
    return Array.from({ length: count }, (_, i) => column[from + i] ?? null);
  }
}
