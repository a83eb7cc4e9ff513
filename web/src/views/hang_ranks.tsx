import type { HangData, RankState } from '../data/hang';
import { duration, rankList } from '../numbers';
import { DataTable } from '../parts/data_table';
import type { View, ViewProps } from '../view';

const ROLES = ['culprit', 'victim', 'unknown', 'uninvolved'];

function Ranks({ data }: ViewProps<HangData>) {
  const end = data.job.collected_unix_ns;
  const silent = (row: RankState) => (end === null || row.silent_since_unix_ns === null ? null : end - row.silent_since_unix_ns);
  const sources = (row: RankState) => [row.has_record && 'record', row.has_stacks && 'stacks', row.has_log && 'log'].filter(Boolean).join(', ') || 'nothing';
  return (
    <DataTable
      id="ranks"
      caption="Ranks"
      columns={[
        { key: 'rank', title: 'Rank', numeric: true, value: (row: RankState) => row.rank, text: (row) => String(row.rank) },
        { key: 'role', title: 'Role', value: (row) => ROLES.indexOf(row.role), text: (row) => row.role, render: (row) => <span class={row.role === 'culprit' ? 'severity-word error' : undefined}>{row.role}</span> },
        { key: 'doing', title: 'Doing', value: (row) => row.doing, width: 60 },
        { key: 'silent_ns', title: 'Silent for', numeric: true, value: silent, text: (row) => duration(silent(row)), help: 'Since it last issued an operation, up to the collection' },
        { key: 'liveness', title: 'Process', value: (row) => row.liveness },
        { key: 'host', title: 'Host', value: (row) => row.host },
        { key: 'pid', title: 'Pid', numeric: true, value: (row) => row.pid || null, text: (row) => (row.pid ? String(row.pid) : '–') },
        { key: 'mean_lateness_ns', title: 'Mean lateness', numeric: true, value: (row) => row.mean_lateness_ns, text: (row) => duration(row.mean_lateness_ns), help: 'Behind the first member of each collective' },
        { key: 'sources', title: 'Known from', value: sources },
      ]}
      rows={data.ranks}
      rowKey={(row) => String(row.rank)}
      sort="role"
      search={['rank', 'role', 'doing', 'host', 'pid']}
      empty={`Nothing is known of any rank${data.job.world_size ? `, ${rankList([...Array(data.job.world_size).keys()])} included` : ''}.`}
    />
  );
}

export const hangRanksView: View<HangData> = {
  id: 'ranks',
  title: 'Ranks',
  shows: 'What each rank was doing when it was looked at, since when it is silent, and what is known of it.',
  group: 'Evidence',
  component: Ranks,
};
