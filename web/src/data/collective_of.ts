/** Which collective an event of the timeline is. Pure. */
import type { CollectiveInstance, CollectiveMember, CollectiveTable } from './types';

export interface ChosenCollective {
  instance: CollectiveInstance;
  members: CollectiveMember[];
}

/** Starts of events and arrivals are cut to units of their own. */
const CUT_NS = 2000;

/** The collective that a rank entered at about `start_ns`, the nearest where there are several; null: none that the page has. */
export function collectiveOf(table: CollectiveTable, rank_index: number, start_ns: number): ChosenCollective | null {
  let best: ChosenCollective | null = null;
  let best_ns = CUT_NS;
  for (let index = 0; index < table.count; ++index) {
    const instance = table.instance(index);
    if (instance.first_arrival_ns > start_ns + CUT_NS || instance.last_arrival_ns < start_ns - CUT_NS) continue;
    const members = table.members(index);
    const own = members.find((member) => member.rank_index === rank_index);
    const away = own ? Math.abs(own.arrival_ns - start_ns) : Infinity;
    if (away > best_ns) continue;
    best = { instance, members };
    best_ns = away;
  }
  return best;
}
