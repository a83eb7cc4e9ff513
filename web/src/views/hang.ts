import type { HangData } from '../data/hang';
import type { PageSource } from '../data/types';
import { count, percent, plural } from '../numbers';
import type { View } from '../view';
import { answerTextView } from './answer_views';
import { cycleView } from './hang_cycle';
import { hangEvidenceView, missingView } from './hang_evidence';
import { groupsView } from './hang_groups';
import { hangRanksView } from './hang_ranks';
import { silenceView } from './hang_silence';
import { stacksView } from './hang_stacks';
import { hangVerdictView } from './hang_verdict';

/** Facts for the header of the page of a stuck job. */
export function hangFacts(source: PageSource): readonly string[] {
  const { verdict, ranks, groups, job: { world_size, collected_unix_ns } } = source.document.data as unknown as HangData;
  const hosts = new Set(ranks.map((rank) => rank.host).filter(Boolean));
  return [
    `${verdict.kind}, ${percent(verdict.confidence)} sure`,
    world_size !== null && world_size > ranks.length ? `${count(ranks.length)} of ${plural(world_size, 'rank')}` : plural(ranks.length, 'rank'),
    ...(hosts.size > 0 ? [hosts.size === 1 ? [...hosts][0]! : plural(hosts.size, 'host')] : []),
    ...(groups.length > 0 ? [plural(groups.length, 'process group')] : []),
    ...(collected_unix_ns !== null ? [`collected ${new Date(collected_unix_ns / 1e6).toISOString().slice(0, 19).replace('T', ' ')} UTC`] : []),
  ];
}

/** In the order of the navigation; the first is what opens. */
export const hangViews = [
  hangVerdictView, groupsView, stacksView, silenceView, cycleView, hangRanksView, hangEvidenceView, missingView, answerTextView,
] as readonly View<unknown>[];
