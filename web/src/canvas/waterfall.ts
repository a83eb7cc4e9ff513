import type { CollectiveInstance, CollectiveMember } from '../data/types';

/** One rank of a collective, as it is drawn. */
export interface WaterfallRow {
  rank_index: number;
  arrival_ns: number;
  end_ns: number;
  /** Until the last rank arrived; null: not measured, the bar is hatched. */
  wait_ns: number | null;
  /** The rest of its time in the collective; null where the wait is. */
  transfer_ns: number | null;
  /** Half-width of what the rank's clock may be off; null: not known. */
  uncertainty_ns: number | null;
  /** Place in the order of arrival from 1; null where a neighbour is nearer than both clocks can tell apart. */
  place: number | null;
}

/**
 * The rows of an instance by arrival. The order of two ranks is known when their arrivals are farther apart than both
 * clocks' uncertainties together (as docs/metrics.md#clock has it), so a place is known when it is on both sides.
 */
export function waterfallRows(members: readonly CollectiveMember[], uncertainty: (rank_index: number) => number | null): WaterfallRow[] {
  const sorted = [...members].sort((a, b) => a.arrival_ns - b.arrival_ns || a.rank_index - b.rank_index);
  const unsure = sorted.map((member) => uncertainty(member.rank_index));
  // Clocks differ in how far they may be off, so a rank farther away may overlap where the next one does not: compare
  // with the latest "may have arrived" of all before, and the earliest of all behind.
  const apart = new Array<boolean>(sorted.length + 1).fill(true); // Between row i - 1 and row i.
  let latest = -Infinity;
  for (let i = 0; i < sorted.length; ++i) {
    const own = unsure[i];
    if (i > 0) apart[i] = own !== null && own !== undefined && sorted[i]!.arrival_ns - own > latest;
    latest = own === null || own === undefined ? Infinity : Math.max(latest, sorted[i]!.arrival_ns + own);
  }
  let earliest = Infinity;
  for (let i = sorted.length - 1; i > 0; --i) {
    const own = unsure[i];
    earliest = own === null || own === undefined ? -Infinity : Math.min(earliest, sorted[i]!.arrival_ns - own);
    const before = unsure[i - 1];
    if (before === null || before === undefined || earliest <= sorted[i - 1]!.arrival_ns + before) apart[i] = false;
  }
  return sorted.map((member, i) => ({
    rank_index: member.rank_index, arrival_ns: member.arrival_ns, end_ns: member.end_ns, wait_ns: member.wait_ns,
    transfer_ns: member.wait_ns === null ? null : Math.max(0, member.end_ns - member.arrival_ns - member.wait_ns),
    uncertainty_ns: unsure[i]!, place: apart[i]! && apart[i + 1]! ? i + 1 : null,
  }));
}

export type Choose = 'wait' | 'time';

/** Indices of the instances that pass, worst wait first or in order of time; at most `most`. */
export function pickInstances(
  count: number, by_wait: Uint32Array, order: Choose, passes: (index: number) => boolean, most: number,
): { picked: number[]; all: number } {
  const picked: number[] = [];
  let all = 0;
  for (let i = 0; i < count; ++i) {
    const index = order === 'wait' ? by_wait[i]! : i;
    if (!passes(index)) continue;
    ++all;
    if (picked.length < most) picked.push(index);
  }
  return { picked, all };
}

/** "all_reduce 12 of dp, step 3". */
export function instanceText(instance: CollectiveInstance): string {
  return `${instance.name} ${instance.sequence} of ${instance.group}${instance.step_number === null ? '' : `, step ${instance.step_number}`}`;
}
