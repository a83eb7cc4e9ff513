/**
 * What a page of `lockstep hang` is made from: `lockstep.hang/1` (docs/json.md). Instants are nanoseconds of the Unix
 * epoch, which JSON readers round to some 256 ns; ranks are global. `null` is "not known", never 0.
 */

type Maybe = number | null;

export interface StackFrame {
  function: string | null;
  file: string | null;
  line: Maybe;
}

/** Where in the user's code some ranks are, or were when they made a call. */
export interface CodeSite {
  ranks: number[];
  role: string;
  what: string | null;
  function: string | null;
  file: string | null;
  line: Maybe;
  stack: StackFrame[];
}

export interface WaitEdge {
  rank: number;
  waits_for: number[];
  group: string | null;
  sequence: Maybe;
  operation: string | null;
}

export interface HangVerdict {
  kind: string;
  confidence: number;
  culprit_ranks: number[];
  victim_ranks: number[];
  group: string | null;
  group_description: string | null;
  group_ranks: number[];
  sequence: Maybe;
  operation: string | null;
  explanation: string;
  sites: CodeSite[];
  cycle: WaitEdge[];
  advice: string[];
}

/** One rank's place in one group; sequence numbers, 0 = none yet. */
export interface RankInGroup {
  rank: number;
  last_enqueued: Maybe;
  last_started: Maybe;
  last_completed: Maybe;
  oldest_retained: Maybe;
  open_since_unix_ns: Maybe;
  open_operation: string | null;
  waits_for: number[];
}

export interface GroupState {
  name: string;
  description: string | null;
  members: number[];
  members_inferred: boolean;
  ranks: RankInGroup[];
}

export interface RankState {
  rank: number;
  host: string | null;
  pid: Maybe;
  role: string;
  liveness: string;
  has_record: boolean;
  has_stacks: boolean;
  has_log: boolean;
  doing: string | null;
  silent_since_unix_ns: Maybe;
  mean_lateness_ns: Maybe;
}

/** Ranks whose main threads have the same stack. */
export interface StackGroup {
  ranks: number[];
  /** Innermost first. */
  frames: StackFrame[];
  source: string | null;
}

export interface EvidenceItem {
  source: string;
  ranks: number[];
  file: string | null;
  fact: string;
  contradicts: boolean;
}

export interface MissingItem {
  rank: Maybe;
  host: string | null;
  what: string;
  reason: string | null;
  remedy: string | null;
}

export interface HangData {
  verdict: HangVerdict;
  context: HangVerdict[];
  job: { world_size: Maybe; collected_unix_ns: Maybe };
  groups: GroupState[];
  ranks: RankState[];
  stacks: StackGroup[];
  evidence: EvidenceItem[];
  missing: MissingItem[];
}

export type Standing = 'in_step' | 'waiting' | 'device_behind' | 'behind' | 'no_record' | 'not_member';

/** A member of a group beside the foremost of it. */
export interface GroupCell {
  group: GroupState;
  rank: number;
  at: RankInGroup | null;
  standing: Standing;
  /** How many operations the foremost has enqueued (completed) that this rank has not. */
  behind_enqueued: Maybe;
  behind_completed: Maybe;
}

/** The largest known of a group's counters; null where nobody's is. */
export function foremost(group: GroupState, of: (at: RankInGroup) => Maybe): Maybe {
  let most: Maybe = null;
  for (const each of group.ranks) {
    const value = of(each);
    if (value !== null && (most === null || value > most)) most = value;
  }
  return most;
}

/** Every member of every group that has a record or is known to belong to it, group by group. */
export function groupCells(groups: readonly GroupState[]): GroupCell[] {
  const cells: GroupCell[] = [];
  for (const group of groups) {
    const enqueued = foremost(group, (at) => at.last_enqueued);
    const completed = foremost(group, (at) => at.last_completed);
    const known = new Map(group.ranks.map((at) => [at.rank, at]));
    const members = [...new Set([...group.members, ...known.keys()])].sort((a, b) => a - b);
    for (const rank of members) {
      const at = known.get(rank) ?? null;
      const less = (most: Maybe, own: Maybe | undefined) => (most === null || own === null || own === undefined ? null : most - own);
      const behind_enqueued = less(enqueued, at?.last_enqueued);
      const behind_completed = less(completed, at?.last_completed);
      const open = at !== null && at.open_operation !== null && at.open_operation !== '';
      const standing: Standing =
        at === null ? 'no_record'
        : behind_enqueued !== null && behind_enqueued > 0 ? 'behind'
        // Enqueued, and a member has completed what is open here: the device lags, not the program.
        : open && behind_completed !== null && behind_completed > 0 ? 'device_behind'
        : open ? 'waiting' : 'in_step';
      cells.push({ group, rank, at, standing, behind_enqueued, behind_completed });
    }
  }
  return cells;
}

/** How a group is called: its description where that says more than its name. */
export function groupLabel(group: Pick<GroupState, 'name' | 'description'>): string {
  if (!group.description || group.description === 'undefined' || group.description === group.name) return group.name === '' ? 'group without a name' : group.name;
  return group.name === '' ? group.description : `${group.description} (${group.name})`;
}

/** The name first, which a narrow place must not cut off. */
export function groupShort(group: Pick<GroupState, 'name' | 'description'>): string {
  const label = groupLabel(group);
  return label === group.name || group.name === '' ? label : `${group.name} · ${group.description}`;
}

/** "train.py:74" of a path; the path itself is in the title. */
export function place(frame: { file: string | null; line: Maybe }): string {
  const name = frame.file?.split(/[\\/]/).pop() ?? '';
  return frame.line === null || frame.line <= 0 ? name : `${name}:${frame.line}`;
}

/** Frames of PyTorch, of the standard library and of installed packages: not what a user has written. */
export function isUserFrame(frame: StackFrame): boolean {
  return frame.file !== null && frame.file.endsWith('.py') && !/(?:site-packages|dist-packages|\/lib\/python\d|^<frozen)/.test(frame.file);
}

function same(a: StackFrame, b: StackFrame): boolean {
  return a.function === b.function && a.file === b.file && a.line === b.line;
}

/**
 * How many frames two stacks share, counted from the outermost: main program first. The frame before them is the first
 * in which the ranks went different ways.
 */
export function sharedFrames(a: readonly StackFrame[], b: readonly StackFrame[]): number {
  let shared = 0;
  while (shared < a.length && shared < b.length && same(a[a.length - 1 - shared]!, b[b.length - 1 - shared]!)) ++shared;
  return shared;
}
