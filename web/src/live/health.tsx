import { agoText } from '../charts/time_lines';
import { GridView } from '../canvas/grid_view';
import { CODE_NOT_MEASURED } from '../canvas/palette';
import { ABSENT, count, duration, number, plural, rankList } from '../numbers';
import { Answer } from '../parts/answer';
import { Legend } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View } from '../view';
import { clock, rowsOver, SeverityWord, timeColumns, useJob, useSpan, type Props } from './shared';
import type { LiveStore } from './store';
import { STATE_ORDER } from './timeline';
import type { Alert, Alerts, HealthEntry, LiveJob, RankState } from './types';
import { allAlarms, SEVERITIES, troubles } from './verdict';

const STATE_COLORS: Record<RankState, { color: string; mark: string }> = {
  silent: { color: '--idle', mark: 'idle' }, runs: { color: '--compute', mark: 'compute' }, waits: { color: '--communication', mark: 'communication' },
  slow: { color: '--memory', mark: 'memory' }, unheard: { color: '--text', mark: 'text' }, stuck: { color: '--critical', mark: 'critical' },
};

interface Spell {
  rank: string;
  now: RankState | null;
  bad: number;
}

function StateTimeline({ job, store }: { job: LiveJob; store: LiveStore }) {
  const { buckets, words, picker } = useSpan(store);
  const { timeline } = store;
  const tracks = timeline.jobs.get(job.job_id)?.ranks;
  const values = rowsOver(job.ranks.map((rank) => tracks?.get(rank.rank)), 'state', buckets, timeline);
  const { columns, ago } = timeColumns(buckets, timeline);
  const codes = Uint8Array.from(values, (value) => (value !== value ? CODE_NOT_MEASURED : value));
  const worst = STATE_ORDER.indexOf('slow');
  const spells = job.ranks.map((rank, r): Spell => {
    let bad = 0;
    for (let at = 0; at < buckets; ++at) if (values[r * buckets + at]! >= worst) ++bad;
    return { rank: rank.rank, now: rank.state, bad };
  });
  const ill = spells.filter((each) => each.bad > 0).sort((a, b) => b.bad - a.bad);
  const stateAt = (row: number, column: number): string => {
    const value = values[row * buckets + column]!;
    return value !== value ? 'not known' : STATE_ORDER[value]!;
  };
  const summary = ill.length === 0
    ? `No rank was slow, stuck or unheard in ${words}.`
    : `${ill.length === 1 ? `Rank ${ill[0]!.rank} was` : `${plural(ill.length, 'rank')} were`} slow, stuck or unheard in ${words}${ill.length > 1 ? `; longest ${Number.isInteger(Number(ill[0]!.rank)) ? rankList([Number(ill[0]!.rank)]) : ill[0]!.rank}` : ''}, for ${duration(ill[0]!.bad * timeline.bucket_ns)}.`;
  return (
    <Figure
      id="states"
      title="State of each rank over time"
      summary={summary}
      controls={picker}
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => row.rank },
        { key: 'state', title: 'Now', value: (row) => row.now },
        { key: 'bad_ns', title: 'Slow, stuck or unheard for', numeric: true, value: (row) => row.bad * timeline.bucket_ns, text: (row) => duration(row.bad * timeline.bucket_ns) },
      ]}
      rows={spells}
      rowKey={(row) => row.rank}
      sort="-bad_ns"
      search={['rank', 'state']}
    >
      <Legend items={[...[...STATE_ORDER].reverse().map((state) => ({ mark: STATE_COLORS[state].mark, label: state as string })), { mark: 'absent', label: 'not known' }]} />
      <GridView
        id="states-grid"
        label={`State of each rank over time. ${summary}`}
        codes={codes}
        row_count={job.ranks.length}
        column_count={buckets}
        rows={Uint32Array.from(job.ranks.keys())}
        columns={columns}
        rowLabel={(row) => `rank ${job.ranks[row]!.rank}`}
        columnLabel={(column) => (ago(column) === 0 ? '0' : agoText(ago(column)))}
        row_title=""
        column_title="time"
        valueText={stateAt}
        describe={(row, column) => `Rank ${job.ranks[row]!.rank}, ${agoText(ago(column))}: ${stateAt(row, column)}`}
        open_words=""
        scale={['', '', '']}
        classes={STATE_ORDER.map((state) => STATE_COLORS[state].color)}
      />
    </Figure>
  );
}

function AlertTable({ alerts }: { alerts: Alerts }) {
  return (
    <>
      {alerts.state !== 'answers' && (
        <p class="note warning">
          Prometheus {alerts.state === 'starting' ? 'starts' : `does not answer${alerts.problem ? `: ${alerts.problem}` : ''}`}. {alerts.alerts.length > 0 && 'Below is what it said last.'}
        </p>
      )}
      <DataTable<Alert>
        id="alerts"
        caption="Alerts of Prometheus"
        rows={alerts.alerts}
        rowKey={(alert) => `${alert.name} ${JSON.stringify(alert.labels)}`}
        search={['name', 'summary', 'labels']}
        empty={alerts.state === 'answers' ? 'No alert is pending or firing.' : 'None is known.'}
        columns={[
          { key: 'name', title: 'Alert', value: (alert) => alert.name },
          { key: 'state', title: 'State', value: (alert) => alert.state },
          { key: 'severity', title: 'Severity', value: (alert) => alert.severity, render: (alert) => <SeverityWord severity={alert.severity} /> },
          { key: 'since_unix_ns', title: 'Since', numeric: true, value: (alert) => alert.since_unix_ns, text: (alert) => clock(alert.since_unix_ns) },
          { key: 'summary', title: 'What', value: (alert) => alert.summary, width: 60 },
          { key: 'labels', title: 'Of', value: (alert) => Object.entries(alert.labels).map(([key, value]) => `${key}=${value}`).join(' '), width: 40 },
          { key: 'value', title: 'Value', numeric: true, value: (alert) => alert.value, text: (alert) => number(alert.value) },
          {
            key: 'runbook', title: 'What to do', value: (alert) => alert.runbook,
            render: (alert) => (alert.runbook === null ? ABSENT : <a href={`runbook/${encodeURIComponent(alert.runbook)}`} target="_blank" rel="noopener">runbook {alert.runbook}</a>),
          },
        ]}
      />
      {alerts.url !== null && <p><a href={alerts.url} target="_blank" rel="noopener">Prometheus’s own page</a></p>}
    </>
  );
}

function HealthView({ data }: Props) {
  const { store, view, job } = useJob(data);
  const alarms = allAlarms(job, view?.nodes ?? []);
  const firing = (store.alerts?.alerts ?? []).filter((alert) => alert.state === 'firing');
  const wrong = troubles(alarms, firing);
  const worst = wrong[0];
  return (
    <>
      <Answer kind={worst?.severity ?? 'info'} sentence={worst?.text ?? 'Nothing is wrong now.'}>
        {wrong.length > 1 && `${plural(alarms.length, 'alarm')} here${store.alerts ? `, ${plural(firing.length, 'alert')} of Prometheus` : ''}. `}
        {store.alerts === null && 'Alerts of Prometheus are shown with --with-prometheus or --prometheus URL.'}
      </Answer>
      {alarms.length > 0 && (
        <ul class="alarms">
          {alarms.map((alarm) => <li key={`${alarm.host} ${alarm.kind} ${alarm.rank} ${alarm.text}`}><SeverityWord severity={alarm.severity} />: {alarm.text} <span class="muted">({alarm.kind})</span></li>)}
        </ul>
      )}
      {store.alerts && <AlertTable alerts={store.alerts} />}
      {job && job.ranks.length > 0 && <StateTimeline job={job} store={store} />}
      <DataTable<HealthEntry>
        id="log"
        caption="Health log, newest first"
        rows={store.health.entries}
        rowKey={(entry) => String(entry.id)}
        search={['kind', 'text', 'host', 'rank']}
        empty="Nothing has happened since this server started."
        columns={[
          { key: 'at_unix_ns', title: 'Time', value: (entry) => entry.at_unix_ns, text: (entry) => clock(entry.at_unix_ns) },
          { key: 'severity', title: 'Severity', value: (entry) => SEVERITIES.indexOf(entry.severity), text: (entry) => entry.severity, render: (entry) => <SeverityWord severity={entry.severity} /> },
          { key: 'kind', title: 'What', value: (entry) => entry.kind },
          { key: 'phase', title: 'Phase', value: (entry) => entry.phase },
          { key: 'text', title: 'In words', value: (entry) => entry.text, width: 70 },
          { key: 'host', title: 'Host', value: (entry) => entry.host },
          { key: 'rank', title: 'Rank', value: (entry) => entry.rank },
          { key: 'device', title: 'Device', value: (entry) => entry.device },
        ]}
      />
      {store.health.dropped_count > 0 && <p class="muted">{count(store.health.dropped_count)} older entries are gone.</p>}
    </>
  );
}

export const healthView: View<LiveStore> = {
  id: 'health',
  title: 'Health and alerts',
  shows: 'Did hardware cause this? Alarms and alerts that hold now, the state of each rank over time, and what has happened.',
  group: 'Machines',
  component: HealthView,
};
