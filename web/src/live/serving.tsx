import { useParam } from '../app/route';
import { TimeLines } from '../charts/time_lines';
import { count, duration, percent } from '../numbers';
import { Answer } from '../parts/answer';
import { Legend, Note, Select } from '../parts/controls';
import { DataTable, type Column } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View } from '../view';
import { lineTable } from './line_table';
import { NoJob, useJob, useSpan, type Props } from './shared';
import type { LiveStore } from './store';
import { servingKey } from './timeline';
import type { Serving } from './types';
import { rateText } from './verdict';

const name = (row: Serving) => `${row.model ?? 'model not named'} on ${row.host}`;
const time = (key: string, title: string, of: (row: Serving) => number | null): Column<Serving> => ({ key, title, numeric: true, value: of, text: (row) => duration(of(row)) });
const perSecond = (key: 'requests_per_s' | 'tokens_per_s', title: string): Column<Serving> => ({ key, title, numeric: true, value: (row) => row[key], text: (row) => rateText(row[key]) });

const COLUMNS: readonly Column<Serving>[] = [
  { key: 'model', title: 'Model', value: (row) => row.model, width: 40 },
  { key: 'host', title: 'Host', value: (row) => row.host },
  { key: 'engine', title: 'Engine', value: (row) => row.engine },
  perSecond('requests_per_s', 'Requests a second'),
  { key: 'running_count', title: 'Running', numeric: true, value: (row) => row.running_count },
  { key: 'waiting_count', title: 'Waiting', numeric: true, value: (row) => row.waiting_count, help: 'In the queue of an inference engine' },
  { key: 'failure_ratio', title: 'Failed', numeric: true, value: (row) => row.failure_ratio, text: (row) => percent(row.failure_ratio) },
  time('request_p50_ns', 'P50', (row) => row.request_ns.p50), time('request_p95_ns', 'P95', (row) => row.request_ns.p95), time('request_p99_ns', 'P99', (row) => row.request_ns.p99),
  time('first_token_p50_ns', 'First P50', (row) => row.first_token_ns.p50), time('first_token_p95_ns', 'First P95', (row) => row.first_token_ns.p95), time('first_token_p99_ns', 'First P99', (row) => row.first_token_ns.p99),
  time('inter_token_p50_ns', 'Between P50', (row) => row.inter_token_ns.p50), time('inter_token_p95_ns', 'Between P95', (row) => row.inter_token_ns.p95), time('inter_token_p99_ns', 'Between P99', (row) => row.inter_token_ns.p99),
  perSecond('tokens_per_s', 'Tokens a second'),
  { key: 'kv_cache_usage_ratio', title: 'KV cache', numeric: true, value: (row) => row.kv_cache_usage_ratio, text: (row) => percent(row.kv_cache_usage_ratio), help: 'Share of the engine’s key-value cache in use' },
  { key: 'preemption_count', title: 'Preemptions', numeric: true, value: (row) => row.preemption_count, help: 'Requests that the engine put back for want of cache' },
  { key: 'request_count', title: 'Requests', numeric: true, value: (row) => row.request_count },
  { key: 'failure_count', title: 'Failures', numeric: true, value: (row) => row.failure_count },
];

function preempted(row: Serving): string {
  if (row.preemption_count === null) return 'The engine does not report how many requests it put back because the cache was full.';
  const per_s = row.preemptions_per_s;
  const lately = per_s === null ? '' : per_s === 0 ? ', none lately' : `, ${rateText(per_s)} a second lately`;
  return `Requests put back because the cache was full, since the engine was started: ${count(row.preemption_count)}${lately}.`;
}

function ServingView({ data }: Props) {
  const { store, view, job } = useJob(data);
  const [chosen, choose] = useParam('model', '');
  const { buckets, words, picker } = useSpan(store);
  if (!job) return <NoJob view={view} />;
  if (job.serving.length === 0) return <Note>No requests are seen in this job. A server records them by liblockstep, or lockstepd reads its engine’s own metrics (docs/monitoring.md).</Note>;
  const rows = [...job.serving].sort((a, b) => (b.failure_ratio ?? 0) - (a.failure_ratio ?? 0) || (b.request_ns.p99 ?? -1) - (a.request_ns.p99 ?? -1));
  const row = rows.find((each) => servingKey(each) === chosen) ?? rows[0]!;
  const { timeline } = store;
  const columns = timeline.jobs.get(job.job_id)?.serving.get(servingKey(row));
  const lines = (what: string) => [['p50', 3], ['p95', 2], ['p99', 5]].map(([q, series]) => ({ label: String(q).toUpperCase(), series: Number(series), values: timeline.last(columns, `${what}_${q}_ns`, buckets) }));
  const request = lines('request');
  const first = lines('first_token');
  const between = lines('inter_token');
  const column = (name: keyof Serving, label: string, series: number) => ({ label, series, values: timeline.last(columns, name, buckets) });
  const queue = [column('running_count', 'running', 1), column('waiting_count', 'waiting', 5)];
  const cache = [column('kv_cache_usage_ratio', 'share in use', 2)];
  const requests = [column('requests_per_s', 'requests a second', 1)];
  const tokens = [column('tokens_per_s', 'tokens a second', 4)];
  const failing = rows.filter((each) => (each.failure_ratio ?? 0) > 0);
  const legend = (series: typeof request) => <Legend items={series.map((line) => ({ mark: `series-${line.series}`, label: line.label }))} />;
  return (
    <>
      <Answer
        kind={failing.some((each) => each.failure_ratio! > 0.05) ? 'critical' : failing.length > 0 ? 'warning' : 'info'}
        sentence={failing[0] ? `${percent(failing[0].failure_ratio)} of the requests to ${name(failing[0])} fail.` : rows[0]!.request_ns.p99 === null ? `No request to ${name(rows[0]!)} ended within the last minute.` : `One request in a hundred to ${name(rows[0]!)} takes ${duration(rows[0]!.request_ns.p99)} or longer.`}
      >
        Quantiles are of requests that ended within the last minute; those of several servers cannot be added up.{rows.some((each) => each.engine !== null && each.engine !== 'liblockstep') && ' An engine’s are estimates from its buckets.'}
      </Answer>
      <DataTable<Serving> id="serving" caption="Models, worst first" rows={rows} rowKey={servingKey} columns={COLUMNS} search={['model', 'host']} />
      <div class="choices tools">
        {rows.length > 1 && <Select label="Model" value={servingKey(row)} onChange={choose} options={rows.map((each) => ({ value: servingKey(each), label: name(each) }))} />}
        {picker}
      </div>
      <Figure id="durations" title={`Duration of requests: ${name(row)}`} summary={`Over ${words}; now P50 ${duration(row.request_ns.p50)}, P95 ${duration(row.request_ns.p95)}, P99 ${duration(row.request_ns.p99)}.`} {...lineTable(store, request, duration, 'ns')}>
        {legend(request)}
        <TimeLines series={request} bucket_ns={timeline.bucket_ns} kind="ns" label="Duration of requests over time" />
      </Figure>
      <Figure id="first" title="Until the first output" summary={`Now P50 ${duration(row.first_token_ns.p50)}, P95 ${duration(row.first_token_ns.p95)}, P99 ${duration(row.first_token_ns.p99)}.`} {...lineTable(store, first, duration, 'ns')}>
        {legend(first)}
        <TimeLines series={first} bucket_ns={timeline.bucket_ns} kind="ns" label="Time to the first output" />
      </Figure>
      {between.some((line) => line.values.some((value) => value !== null)) && (
        <Figure id="between" title="Between outputs" summary={`Now P50 ${duration(row.inter_token_ns.p50)}, P95 ${duration(row.inter_token_ns.p95)}, P99 ${duration(row.inter_token_ns.p99)}.`} {...lineTable(store, between, duration, 'ns')}>
          {legend(between)}
          <TimeLines series={between} bucket_ns={timeline.bucket_ns} kind="ns" label="Time between outputs" />
        </Figure>
      )}
      {row.waiting_count !== null && (
        <Figure id="queue" title="Requests in the engine" summary={`Now ${count(row.running_count)} running and ${count(row.waiting_count)} waiting.`} {...lineTable(store, queue, count, 'count')}>
          {legend(queue)}
          <TimeLines series={queue} bucket_ns={timeline.bucket_ns} kind="number" label="Requests running and waiting over time" height={140} />
        </Figure>
      )}
      {row.kv_cache_usage_ratio !== null && (
        <Figure id="cache" title="KV cache in use" summary={`Now ${percent(row.kv_cache_usage_ratio)}. ${preempted(row)}`} {...lineTable(store, cache, percent, 'ratio')}>
          <TimeLines series={cache} bucket_ns={timeline.bucket_ns} kind="ratio" label="Share of the key-value cache in use over time" height={140} />
        </Figure>
      )}
      <Figure id="requests" title="Requests a second" summary={`Now ${rateText(row.requests_per_s)}, with ${count(row.running_count)} running.`} {...lineTable(store, requests, rateText, 'per_s')}>
        <TimeLines series={requests} bucket_ns={timeline.bucket_ns} kind="number" label="Requests a second over time" height={140} />
      </Figure>
      {row.tokens_per_s !== null && (
        <Figure id="tokens" title="Tokens a second" summary={`Now ${rateText(row.tokens_per_s)}.`} {...lineTable(store, tokens, rateText, 'per_s')}>
          <TimeLines series={tokens} bucket_ns={timeline.bucket_ns} kind="number" label="Tokens a second over time" height={140} />
        </Figure>
      )}
    </>
  );
}

export const servingView: View<LiveStore> = {
  id: 'serving',
  title: 'Serving',
  shows: 'Are users waiting? Durations of requests and times to and between outputs, at P50, P95 and P99, an engine’s queue and cache, over time.',
  group: 'Now',
  component: ServingView,
};
