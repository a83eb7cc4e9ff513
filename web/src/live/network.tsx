import { TimeLines } from '../charts/time_lines';
import { href } from '../app/route';
import { ABSENT, count, duration, number, percent, plural, rate } from '../numbers';
import { Answer } from '../parts/answer';
import { Legend } from '../parts/controls';
import { DataTable, type Column } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View } from '../view';
import { lineTable } from './line_table';
import { NoJob, StateWord, useJob, useSpan, type Props } from './shared';
import type { LiveStore } from './store';
import { portName, Traffic, type PortRow } from './traffic';
import type { LiveJob, LiveRank } from './types';
import { rateText, worseRank } from './verdict';

interface GroupRow {
  name: string;
  ranks: number;
  enqueued: number | null;
  completed: number | null;
  behind: number | null;
  last_rank: string | null;
  oldest_ns: number | null;
}

/** Each group with the rank that has called least in it: whom the others wait for. */
export function groupRows(ranks: readonly LiveRank[]): GroupRow[] {
  const groups = new Map<string, { rank: string; enqueued: number | null; completed: number | null; oldest: number | null }[]>();
  for (const rank of ranks) {
    for (const group of rank.groups) {
      if (!groups.has(group.group)) groups.set(group.group, []);
      groups.get(group.group)!.push({ rank: rank.rank, enqueued: group.enqueued_count, completed: group.completed_count, oldest: group.oldest_inflight_ns });
    }
  }
  const rows = [...groups].map(([name, members]): GroupRow => {
    const known = members.filter((each) => each.enqueued !== null);
    const most = known.length > 0 ? known.reduce((max, each) => Math.max(max, each.enqueued!), 0) : null;
    const least = known.reduce<(typeof known)[number] | null>((min, each) => (min === null || each.enqueued! < min.enqueued! ? each : min), null);
    const completed = members.flatMap((each) => (each.completed === null ? [] : [each.completed]));
    const oldest = members.flatMap((each) => (each.oldest === null ? [] : [each.oldest]));
    return {
      name, ranks: members.length, enqueued: most, completed: completed.length > 0 ? Math.min(...completed) : null,
      behind: most !== null && least ? most - least.enqueued! : null,
      last_rank: most !== null && least && least.enqueued! < most ? least.rank : null,
      oldest_ns: oldest.length > 0 ? Math.max(...oldest) : null,
    };
  });
  return rows.sort((a, b) => (b.oldest_ns ?? -1) - (a.oldest_ns ?? -1) || (b.behind ?? -1) - (a.behind ?? -1) || a.name.localeCompare(b.name));
}

const perSecond = (key: 'receive_bytes_per_s' | 'transmit_bytes_per_s' | 'rate_bytes_per_s', title: string): Column<PortRow> => ({ key, title, numeric: true, value: (row) => row[key], text: (row) => rate(row[key]) });

/** Errors that go on first, then InfiniBand that is down (an Ethernet port without a cable is nothing), then by traffic. */
function worsePort(a: PortRow, b: PortRow): number {
  const down = (row: PortRow) => (row.kind === 'infiniband' && row.is_up === false ? 1 : 0);
  const traffic = (row: PortRow) => (row.receive_bytes_per_s ?? 0) + (row.transmit_bytes_per_s ?? 0);
  return (b.errors_per_s ?? 0) - (a.errors_per_s ?? 0) || down(b) - down(a) || traffic(b) - traffic(a);
}

function sentence(job: LiveJob): { kind: 'info' | 'warning' | 'critical'; text: string } {
  const stuck = job.alarms.find((alarm) => alarm.kind === 'collective_stuck');
  if (stuck) return { kind: 'critical', text: `${stuck.text.charAt(0).toUpperCase()}${stuck.text.slice(1)}.` };
  if (job.communication_ratio === null) return { kind: 'info', text: 'Exposed communication is not measured for this job.' };
  return {
    kind: job.communication_ratio > 0.3 ? 'warning' : 'info',
    text: `${percent(job.communication_ratio)} of all step time is communication that no computation hides${job.slowest_rank !== null ? `; rank ${job.slowest_rank} is waited for` : ''}.`,
  };
}

function Network({ data }: Props) {
  const { store, view, job } = useJob(data);
  const { buckets, words, picker } = useSpan(store);
  if (!job) return <NoJob view={view} />;
  const { timeline } = store;
  const columns = timeline.jobs.get(job.job_id);
  // The job's share, and of its ranks the two ends: a mean would hide both.
  const ranks = job.ranks.filter((rank) => rank.communication_ratio !== null).sort((a, b) => b.communication_ratio! - a.communication_ratio!);
  const [most, least] = [ranks[0], ranks[ranks.length - 1]];
  const lines = [
    { label: 'job', series: 1, values: timeline.last(columns?.job, 'communication_ratio', buckets) },
    ...(most && least && most !== least ? [
      { label: `rank ${most.rank} (most now)`, series: 2, values: timeline.last(columns?.ranks.get(most.rank), 'communication_ratio', buckets) },
      { label: `rank ${least.rank} (least now)`, series: 3, values: timeline.last(columns?.ranks.get(least.rank), 'communication_ratio', buckets) },
    ] : []),
  ];
  const said = sentence(job);
  const groups = groupRows(job.ranks);
  const ports = view!.nodes.flatMap((node) => node.network.map((port): PortRow => ({ ...port, host: node.host }))).sort(worsePort);
  return (
    <>
      <Answer kind={said.kind} sentence={said.text}>
        {groups[0]?.oldest_ns ? `The oldest operation in flight is in ${groups[0].name}, open for ${duration(groups[0].oldest_ns)}${groups[0].last_rank !== null ? `; rank ${groups[0].last_rank} has called the fewest operations there` : ''}.` : 'The rank with the least exposed communication is the one that the others wait for.'}
      </Answer>
      <Figure id="share" title="Exposed communication over time" summary={`Share of step time in which a rank communicates and does nothing else, over ${words}.`} controls={picker} {...lineTable(store, lines, percent, 'ratio')}>
        <Legend items={lines.map((line) => ({ mark: `series-${line.series}`, label: line.label }))} />
        <TimeLines series={lines} bucket_ns={timeline.bucket_ns} kind="ratio" label="Exposed communication over time" limit={{ value: 0.3, label: 'alarm from here' }} />
      </Figure>
      <DataTable<LiveRank>
        id="waits"
        caption="Ranks by what they wait"
        rows={[...job.ranks].sort(worseRank)}
        rowKey={(rank) => rank.rank}
        sort="-communication_ratio"
        search={['rank', 'host', 'state']}
        onSelect={(rank) => rank && (location.hash = href('rank', { rank: rank.rank, job: job.job_id }))}
        columns={[
          { key: 'rank', title: 'Rank', value: (rank) => rank.rank },
          { key: 'host', title: 'Host', value: (rank) => rank.host ?? rank.node },
          { key: 'state', title: 'State', value: (rank) => rank.state, render: (rank) => <StateWord state={rank.state} /> },
          { key: 'waits_for_rank', title: 'Waits for', value: (rank) => rank.waits_for_rank },
          { key: 'communication_ratio', title: 'Exposed', numeric: true, value: (rank) => rank.communication_ratio, text: (rank) => percent(rank.communication_ratio) },
          { key: 'bus_bytes_per_s', title: 'Bus bandwidth', numeric: true, value: (rank) => rank.bus_bytes_per_s, text: (rank) => rate(rank.bus_bytes_per_s), help: 'Of its collectives, while they run' },
          { key: 'oldest_collective_ns', title: 'Oldest open', numeric: true, value: (rank) => rank.oldest_collective_ns, text: (rank) => duration(rank.oldest_collective_ns) },
        ]}
      />
      <DataTable<GroupRow>
        id="groups"
        caption="Process groups"
        rows={groups}
        rowKey={(row) => row.name}
        search={['name']}
        empty="No rank reports its process groups: the NCCL plugin counts their operations."
        columns={[
          { key: 'name', title: 'Group', value: (row) => row.name, width: 40 },
          { key: 'ranks', title: 'Ranks', numeric: true, value: (row) => row.ranks },
          { key: 'enqueued', title: 'Last enqueued', numeric: true, value: (row) => row.enqueued },
          { key: 'completed', title: 'Completed by all', numeric: true, value: (row) => row.completed },
          { key: 'last_rank', title: 'Called least', value: (row) => row.last_rank, text: (row) => (row.last_rank === null ? 'no rank is behind' : `rank ${row.last_rank}`) },
          { key: 'behind', title: 'Behind', numeric: true, value: (row) => row.behind },
          { key: 'oldest_inflight_ns', title: 'Oldest in flight', numeric: true, value: (row) => row.oldest_ns, text: (row) => duration(row.oldest_ns) },
        ]}
      />
      <Traffic store={store} ports={ports} />
      <DataTable<PortRow>
        id="ports"
        caption="Network devices, worst first"
        rows={ports}
        rowKey={(row) => `${row.host} ${row.device} ${row.port}`}
        search={['host', 'device', 'kind']}
        empty="No network device is measured."
        columns={[
          { key: 'host', title: 'Host', value: (row) => row.host },
          { key: 'device', title: 'Device', value: portName },
          { key: 'kind', title: 'Kind', value: (row) => row.kind },
          { key: 'is_up', title: 'Link', value: (row) => (row.is_up === null ? null : row.is_up ? 'up' : 'down'), render: (row) => (row.is_up === false ? <span class="severity-word warning">down</span> : row.is_up === null ? ABSENT : 'up') },
          perSecond('receive_bytes_per_s', 'Received'),
          perSecond('transmit_bytes_per_s', 'Sent'),
          perSecond('rate_bytes_per_s', 'of'),
          { key: 'errors_per_s', title: 'Errors a second', numeric: true, value: (row) => row.errors_per_s, text: (row) => number(row.errors_per_s) },
          { key: 'error_count', title: 'Errors', numeric: true, value: (row) => row.error_count },
          { key: 'transmit_wait_per_s', title: 'Waits a second', numeric: true, value: (row) => row.transmit_wait_per_s, text: (row) => rateText(row.transmit_wait_per_s), help: 'Ticks in which the port had data to send and no credit' },
        ]}
      />
      {store.health.entries.some((entry) => entry.kind.startsWith('link_')) && (
        <p><a href={href('health', { 'log.find': 'link', job: job.job_id })}>{plural(store.health.entries.filter((entry) => entry.kind.startsWith('link_')).length, 'link event')}</a> in the health log, of {count(store.health.entries.length)}.</p>
      )}
    </>
  );
}

export const networkView: View<LiveStore> = {
  id: 'network',
  title: 'Communication',
  shows: 'Do ranks wait for the network or for each other? Exposed communication over time, groups and who has called least, devices.',
  group: 'Machines',
  component: Network,
};
