import { ABSENT, capital, count, duration, number, percent, plural, rankList } from '../numbers';
import type { Alarm, Alert, LiveJob, LiveNode, LiveRank, LiveView, Phase, RankState, Severity } from './types';

export const STATE_WORDS: Record<RankState, string> = {
  unheard: 'Its node does not answer: all figures are from when it last did.',
  stuck: 'No step has ended for ten times the job’s step.',
  slow: 'Steps end, and the others wait for it.',
  waits: 'Steps end, and it waits for another rank.',
  runs: 'Steps end.',
  silent: 'It is there and records no steps.',
};
export const SEVERITIES: readonly Severity[] = ['critical', 'warning', 'info'];

const WORST: Record<RankState, number> = { unheard: 3, stuck: 2, slow: 1, waits: 0, runs: 0, silent: 0 };

function rankOrder(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** Worst first: by state, then who is more than a step behind, then by own time; as `lockstep top` has them. */
export function worseRank(a: LiveRank, b: LiveRank): number {
  const behind = (rank: LiveRank) => ((rank.behind_steps ?? 0) > 1 ? rank.behind_steps! : 0);
  // Of a stuck job, those that wait are not what to look at first.
  const waits = (rank: LiveRank) => Number(rank.state === 'stuck' && rank.waits_for_rank !== null);
  return WORST[b.state] - WORST[a.state] || behind(b) - behind(a) || waits(a) - waits(b) || (b.own_ns ?? -1) - (a.own_ns ?? -1) || rankOrder(a.rank, b.rank);
}

/** Nodes that do not answer first, then by alarms, then those whose ranks are worse off. */
export function nodeTrouble(node: LiveNode, ranks: readonly LiveRank[]): number {
  const alarms = node.alarms.reduce((sum, alarm) => Math.max(sum, 3 - SEVERITIES.indexOf(alarm.severity)), 0);
  const worst = ranks.reduce((most, rank) => Math.max(most, WORST[rank.state]), 0);
  const failing = node.collectors.filter((each) => each.succeeded === false).length;
  return (node.problem !== null ? 1e6 : 0) + alarms * 1e4 + worst * 100 + failing;
}

/** The job of the address, or else the one with most ranks. */
export function chosenJob(view: LiveView, job_id: string): LiveJob | null {
  const named = view.jobs.find((job) => job.job_id === job_id);
  return named ?? view.jobs.reduce<LiveJob | null>((best, job) => (best && best.ranks.length >= job.ranks.length ? best : job), null);
}

export interface LiveVerdict {
  severity: Severity | 'none';
  sentence: string;
  /** Why, or what follows; '' for nothing. */
  why: string;
  /** The same without figures: read out when it changes. */
  words: string;
}

const names = (ranks: readonly LiveRank[]) => {
  const numbers = ranks.map((rank) => Number(rank.rank));
  return numbers.every(Number.isInteger) ? rankList(numbers) : ranks.length === 1 ? `rank ${ranks[0]!.rank}` : plural(ranks.length, 'rank');
};

const PHASE_WORDS: Partial<Record<Phase, string>> = { comm_exposed: 'has waited for a collective', other: 'has been between its phases' };

/** "has been in input for 47 s"; '': it has not been in one phase for long, or that is not known. */
export function phaseOf(rank: LiveRank): string {
  return rank.open_phase === null ? '' : `${PHASE_WORDS[rank.open_phase] ?? `has been in ${rank.open_phase}`} for ${duration(rank.open_phase_ns)}`;
}

/** What is wrong with the job in one sentence, and who is to blame where that is known. */
export function verdict(job: LiveJob, nodes: readonly LiveNode[]): LiveVerdict {
  const said = jobVerdict(job, nodes);
  // A sick device of its nodes does not make the sentence, it may have nothing to do with it; the colour says that there is more.
  const worst = SEVERITIES.find((severity) => severity === said.severity || nodes.some((node) => node.alarms.some((each) => each.severity === severity)));
  return { ...said, severity: worst ?? said.severity };
}

function jobVerdict(job: LiveJob, nodes: readonly LiveNode[]): LiveVerdict {
  const of = (state: RankState) => job.ranks.filter((rank) => rank.state === state);
  const stuck = of('stuck');
  const unheard = of('unheard');
  const silent = of('silent');
  const waiting = job.ranks.filter((rank) => rank.waits_for_rank !== null);
  const alarm = SEVERITIES.map((severity) => job.alarms.find((each) => each.severity === severity)).find(Boolean);
  // Whom they wait for, if it is one.
  const blamed = [...new Set(waiting.map((rank) => rank.waits_for_rank!))];
  const oldest = job.ranks.reduce((most, rank) => Math.max(most, rank.progress_age_ns ?? 0), 0);

  if (stuck.length > 0) {
    const who = blamed.length === 1 ? `rank ${blamed[0]} holds the job up` : `${names(stuck)} ${stuck.length === 1 ? 'is' : 'are'} stuck`;
    const culprit = blamed.length === 1 ? job.ranks.find((rank) => rank.rank === blamed[0]) : undefined;
    const phase = culprit ? phaseOf(culprit) : '';
    return {
      severity: 'critical', words: `stuck: ${who}`,
      sentence: `${capital(who)}: ${phase === '' ? '' : `it ${phase}, and `}no step has ended for ${duration(oldest)}.`,
      why: (blamed.length === 1 ? `${capital(names(waiting))} ${waiting.length === 1 ? 'waits' : 'wait'} for it. ` : '') + (job.alarms[0] ? `${capital(job.alarms[0].text)}.` : ''),
    };
  }
  if (alarm?.severity === 'critical') return { severity: 'critical', sentence: `${capital(alarm.text)}.`, why: '', words: `${alarm.kind} ${alarm.rank ?? ''}` };
  if (unheard.length > 0) {
    const hosts = [...new Set(unheard.map((rank) => rank.node))];
    const silence = nodes.find((node) => node.host === hosts[0])?.silent_ns ?? null;
    return {
      severity: 'critical', words: `unheard: ${names(unheard)}`,
      sentence: `No figures from ${names(unheard)}: ${hosts.length === 1 ? `${hosts[0]} has not answered ${silence === null ? 'since this server started' : `for ${duration(silence)}`}` : `${plural(hosts.length, 'node')} do not answer`}.`,
      why: 'Their figures are from the last answer.',
    };
  }
  if (job.slowest_rank !== null) {
    const victims = waiting.filter((rank) => rank.waits_for_rank === job.slowest_rank);
    const slow = job.ranks.find((rank) => rank.rank === job.slowest_rank);
    const straggler = job.alarms.find((each) => each.kind === 'straggler');
    return {
      severity: straggler ? straggler.severity : 'info', words: `rank ${job.slowest_rank} is the slowest`,
      sentence: `Rank ${job.slowest_rank}${slow?.host ? ` on ${slow.host}` : ''} is the slowest: its own time is ${number(job.slowest_ratio)} times the median rank’s.`,
      why: (victims.length > 0 ? `${capital(names(victims))} ${victims.length === 1 ? 'waits' : 'wait'} for it. ` : '') +
        (job.communication_ratio === null ? '' : `${percent(job.communication_ratio)} of all step time is communication that no computation hides.`),
    };
  }
  if (alarm) return { severity: alarm.severity, sentence: `${capital(alarm.text)}.`, why: '', words: alarm.kind };
  if (job.ranks.length === 0 && job.serving.length > 0) {
    return { severity: 'none', sentence: 'Requests are served; no rank of this job records steps.', why: '', words: 'serves' };
  }
  if (silent.length === job.ranks.length) {
    return {
      severity: 'info', words: 'no steps',
      sentence: job.ranks.length === 0 ? 'No rank of this job is there.' : `${capital(plural(job.ranks.length, 'rank'))} ${job.ranks.length === 1 ? 'is' : 'are'} there, and ${job.ranks.length === 1 ? 'it records no' : 'none records'} steps.`,
      why: 'Steps are what ranks record by liblockstep, where LOCKSTEP_TRACE is set for them.',
    };
  }
  return {
    severity: 'none', words: 'no alarm',
    sentence: `No alarm: ${worldWords(job)}, ${rateText(job.steps_per_s)} steps a second of ${duration(job.step_ns)}.`,
    why: silent.length > 0 ? `${capital(names(silent))} ${silent.length === 1 ? 'records' : 'record'} no steps.` : '',
  };
}

/** "254 of 256 ranks". */
export function worldWords(job: LiveJob): string {
  const here = job.ranks.length;
  return job.world_size !== null && job.world_size > here ? `${count(here)} of ${plural(job.world_size, 'rank')}` : plural(here, 'rank');
}

/** A rate: "17.9", "1,234". */
export function rateText(value: number | null): string {
  return value === null ? ABSENT : value >= 1000 ? count(value) : number(value);
}

/** Alarms of the job and of the nodes it runs on, worst first; a node's begin with its name. */
export function allAlarms(job: LiveJob | null, nodes: readonly LiveNode[]): (Alarm & { host: string | null })[] {
  const all = [...(job?.alarms ?? []).map((alarm) => ({ ...alarm, host: null })), ...nodes.flatMap((node) => node.alarms.map((alarm) => ({ ...alarm, host: node.host })))];
  return all.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

/** What is wrong in a sentence each, alarms and firing alerts of Prometheus together, worst first. */
export function troubles(alarms: ReturnType<typeof allAlarms>, firing: readonly Alert[]): { severity: Severity; text: string }[] {
  const all = [
    ...alarms.map((alarm) => ({ severity: alarm.severity, text: `${alarm.host === null ? capital(alarm.text) : alarm.text}.` })),
    // One of the user's own rules may name another severity, or none.
    ...firing.map((alert) => ({ severity: SEVERITIES.find((one) => one === alert.severity) ?? 'warning', text: `${alert.name}: ${alert.summary}` })),
  ];
  return all.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

export interface Doubt {
  severity: Severity;
  what: string;
  advice: string;
}

/** What the figures lack. */
export function doubts(view: LiveView, job: LiveJob | null): Doubt[] {
  const found: Doubt[] = [];
  const say = (severity: Severity, what: string, advice = '') => found.push({ severity, what, advice });
  for (const node of view.nodes) {
    if (node.problem !== null) say('critical', `${node.host} ${node.silent_ns === null ? 'does not answer' : `has not answered for ${duration(node.silent_ns)}`}: ${node.problem}`, 'lockstep doctor on that node says why');
    if (node.is_cut) say('warning', `${node.host} reported more than is kept per node: the rest was left out`, 'name a job (--job)');
    if (node.bad_line_count > 0) say('warning', `${plural(node.bad_line_count, 'line')} from ${node.host} could not be read`, 'are lockstep and lockstepd of the same version?');
    if (node.clock_offset_ns !== null && Math.abs(node.clock_offset_ns) > 0.1e9) {
      say('warning', `${node.host}’s clock is ${duration(Math.abs(node.clock_offset_ns))} ${node.clock_offset_ns > 0 ? 'ahead' : 'behind'}`, 'ages are corrected for it; let it be set by NTP or PTP');
    }
    for (const collector of node.collectors) {
      if (collector.succeeded === false) say('warning', `${node.host} cannot read ${collector.name}`, 'its log says why');
    }
  }
  if (!job) return found;
  if (job.missing_ranks.length > 0) say('critical', `${capital(rankList(job.missing_ranks))} ${job.missing_ranks.length === 1 ? 'runs' : 'run'} on none of the nodes that are asked`, 'name all nodes of the job, or look for what ended them');
  else if (job.world_size !== null && job.world_size > job.ranks.length) say('info', `${worldWords(job)} are on the nodes that are asked`, 'name all nodes of the job');
  const some = (state: RankState) => job.ranks.filter((rank) => rank.state === state);
  if (some('silent').length > 0) say('warning', `${capital(names(some('silent')))} ${some('silent').length === 1 ? 'records' : 'record'} no steps`, 'set LOCKSTEP_TRACE for them, and mark steps');
  if (some('unheard').length > 0) say('critical', `${capital(names(some('unheard')))}: figures are from when their node last answered`);
  const dropped = job.ranks.filter((rank) => (rank.dropped_event_count ?? 0) > 0);
  if (dropped.length > 0) {
    const sum = dropped.reduce((total, rank) => total + rank.dropped_event_count!, 0);
    say('warning', `${plural(sum, 'record')} of ${names(dropped)} were dropped because they were not read in time`, 'raise LOCKSTEP_TRACE_LIMIT_MIB, or record less');
  }
  const since = job.ranks.filter((rank) => rank.is_since_start);
  if (since.length > 0) say('info', `No step of ${names(since)} has ended while this server looked: means since they began`);
  const lacks = (what: string, has: (rank: LiveRank) => boolean, advice: string) => {
    const without = job.ranks.filter((rank) => rank.state !== 'silent' && !has(rank));
    if (without.length > 0) say('info', `${what} ${what.endsWith('s') ? 'are' : 'is'} not measured for ${without.length === job.ranks.length ? 'any rank' : names(without)}`, advice);
  };
  lacks('Devices', (rank) => rank.gpu !== null, 'no GPU, or the daemon cannot load the driver’s library');
  lacks('Collectives', (rank) => rank.bus_bytes_per_s !== null || rank.oldest_collective_ns !== null || rank.groups.length > 0, 'the NCCL plugin counts them');
  lacks('Exposed communication', (rank) => rank.communication_ratio !== null, 'ranks record phases by liblockstep');
  lacks('MFU', (rank) => rank.mfu_ratio !== null, 'the job says its FLOPs a step, and the peak of its devices');
  return found.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

/** "0-3,8" to numbers; null: it is none of that. */
export function parseRanks(text: string): number[] | null {
  const ranks = new Set<number>();
  for (const piece of text.split(',').map((part) => part.trim()).filter(Boolean)) {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(piece);
    if (!match) return null;
    const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (last < first || last - first > 65_536) return null;
    for (let rank = first; rank <= last; ++rank) ranks.add(rank);
  }
  return [...ranks].sort((a, b) => a - b);
}
