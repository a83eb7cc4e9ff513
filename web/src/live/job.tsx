import { useRef } from 'preact/hooks';
import { href } from '../app/route';
import { Sparkline } from '../charts/sparkline';
import { ABSENT, bytes, count, duration, percent, plural } from '../numbers';
import { Legend, Note } from '../parts/controls';
import { DataTable, type Column } from '../parts/data_table';
import { rankList } from '../numbers';
import type { View } from '../view';
import { NoJob, PHASE_LEGEND, PhaseBar, phaseWords, SeverityWord, StateWord, useCalmOrder, useJob, type Props } from './shared';
import type { LiveStore } from './store';
import type { LiveJob, LiveRank } from './types';
import { StagesLine } from './stages';
import { allAlarms, phaseOf, rateText, verdict, worseRank } from './verdict';

const PACE = 60;

/** The sentence of the job; what changes every second is not read out, only what is wrong. */
export function VerdictBox({ job, store }: { job: LiveJob; store: LiveStore }) {
  const nodes = store.view!.nodes.filter((node) => job.ranks.length === 0 || job.ranks.some((rank) => rank.node === node.host));
  const said = verdict(job, nodes);
  const alarms = allAlarms(job, nodes);
  return (
    <section class={`verdict answer ${said.severity}`} aria-label="Verdict">
      <h3>{said.sentence}</h3>
      {said.why !== '' && <p class="verdict-gain">{said.why}</p>}
      {alarms.length > 0 && (
        <ul class="alarms">
          {alarms.slice(0, 6).map((alarm) => (
            <li key={`${alarm.host} ${alarm.kind} ${alarm.rank}`}><SeverityWord severity={alarm.severity} />: {alarm.text}</li>
          ))}
          {alarms.length > 6 && <li>… and <a href={href('health', { job: job.job_id })}>{count(alarms.length - 6)} more</a></li>}
        </ul>
      )}
      <p class="skip" role="status">{said.words}</p>
    </section>
  );
}

const TILES: { key: 'steps_per_s' | 'step_ns' | 'communication_ratio' | 'input_ratio' | 'mfu_ratio' | 'tokens_per_s' | 'samples_per_s'; label: string; text: (value: number | null) => string }[] = [
  { key: 'steps_per_s', label: 'steps a second', text: rateText },
  { key: 'step_ns', label: 'step time', text: duration },
  { key: 'communication_ratio', label: 'exposed communication', text: percent },
  { key: 'input_ratio', label: 'input', text: percent },
  { key: 'mfu_ratio', label: 'MFU', text: percent },
  { key: 'tokens_per_s', label: 'tokens a second', text: rateText },
  { key: 'samples_per_s', label: 'samples a second', text: rateText },
];

function Tiles({ job, store }: { job: LiveJob; store: LiveStore }) {
  const { timeline } = store;
  const columns = timeline.jobs.get(job.job_id)?.job;
  // Of tokens and samples what is measured; the others are there in any case, so that it shows that they are not measured.
  const shown = TILES.filter(({ key }) => (key === 'samples_per_s' ? job.samples_per_s !== null && job.tokens_per_s === null : true));
  return (
    <ul class="tiles">
      {shown.map(({ key, label, text }) => (
        <li key={key}>
          <span class="tile-label">{label}</span>
          <span class="tile-value">{job[key] === null ? <span class="muted absent">not measured</span> : text(job[key])}</span>
          <Sparkline values={timeline.last(columns, key, 120)} width={132} />
        </li>
      ))}
    </ul>
  );
}

interface Row {
  rank: LiveRank;
  pace: (number | null)[];
}

const time = (key: string, title: string, of: (rank: LiveRank) => number | null, help?: string): Column<Row> => ({ key, title, numeric: true, value: (row) => of(row.rank), text: (row) => duration(of(row.rank)), ...(help ? { help } : {}) });
const share = (key: string, title: string, of: (rank: LiveRank) => number | null, help?: string): Column<Row> => ({ key, title, numeric: true, value: (row) => of(row.rank), text: (row) => percent(of(row.rank)), ...(help ? { help } : {}) });

const plain = (value: number | null, unit: string) => (value === null ? ABSENT : `${Math.round(value)} ${unit}`);

const COLUMNS: readonly Column<Row>[] = [
  { key: 'rank', title: 'Rank', value: (row) => row.rank.rank },
  { key: 'host', title: 'Host', value: (row) => row.rank.host ?? row.rank.node },
  { key: 'state', title: 'State', value: (row) => row.rank.state, render: (row) => <StateWord state={row.rank.state} />, help: 'runs, waits, slow, stuck, silent, unheard: docs/top.md' },
  { key: 'waits_for_rank', title: 'Waits for', value: (row) => row.rank.waits_for_rank },
  { key: 'open_phase', title: 'In', value: (row) => row.rank.open_phase, text: (row) => phaseOf(row.rank), render: (row) => <span title={phaseOf(row.rank)}>{row.rank.open_phase ?? ABSENT}</span>, help: 'The phase that it has been in for seconds' },
  time('step_ns', 'Step time', (rank) => rank.step_ns),
  time('own_ns', 'Own', (rank) => rank.own_ns, 'The step without exposed communication: what the rank itself takes'),
  { key: 'phases', title: 'Phases', value: (row) => row.rank.compute_ratio, text: (row) => phaseWords(row.rank), render: (row) => <PhaseBar rank={row.rank} />, help: 'Shares of the step; sorts by compute' },
  share('communication_ratio', 'Comm', (rank) => rank.communication_ratio, 'Exposed communication by step time'),
  share('input_ratio', 'Input', (rank) => rank.input_ratio),
  { key: 'behind_steps', title: 'Behind', numeric: true, value: (row) => row.rank.behind_steps, help: 'Steps fewer than the rank that has ended most' },
  time('progress_age_ns', 'Last ended', (rank) => rank.progress_age_ns, 'How long ago the newest step ended'),
  { key: 'pace', title: 'Pace', value: (row) => row.rank.step_ns, text: () => '', render: (row) => <Sparkline values={row.pace} width={72} height={18} />, help: 'Step time over the last minute; sorts by step time' },
  share('gpu', 'GPU', (rank) => rank.gpu?.utilization_ratio ?? null, 'Busy share of its device'),
  { key: 'memory_bytes', title: 'Memory', numeric: true, value: (row) => row.rank.gpu?.memory_used_bytes ?? row.rank.torch_memory_reserved_bytes, text: (row) => bytes(row.rank.gpu?.memory_used_bytes ?? row.rank.torch_memory_reserved_bytes), help: 'Of its device, or what PyTorch holds' },
  { key: 'temperature_celsius', title: 'Temp', numeric: true, value: (row) => row.rank.gpu?.temperature_celsius ?? null, text: (row) => plain(row.rank.gpu?.temperature_celsius ?? null, '°C') },
  { key: 'power_watts', title: 'Power', numeric: true, value: (row) => row.rank.gpu?.power_watts ?? null, text: (row) => plain(row.rank.gpu?.power_watts ?? null, 'W') },
  { key: 'step_count', title: 'Step', numeric: true, value: (row) => row.rank.step_count },
];

function Ranks({ job, store }: { job: LiveJob; store: LiveStore }) {
  const tracks = store.timeline.jobs.get(job.job_id)?.ranks;
  const box = useRef<HTMLDivElement>(null);
  const { rows, calm } = useCalmOrder(job.ranks, (rank) => rank.rank, (rank) => rank.state, worseRank);
  const columns = job.ranks.some((rank) => rank.open_phase !== null) ? COLUMNS : COLUMNS.filter(({ key }) => key !== 'open_phase');
  const buckets = Math.max(2, Math.min(PACE, Math.round((PACE * 1e9) / store.timeline.bucket_ns)));
  return (
    <div ref={box} {...calm}>
      <Legend items={PHASE_LEGEND} />
      <DataTable<Row>
        id="ranks"
        caption="Ranks, worst first"
        columns={columns}
        rows={rows.map((rank) => ({ rank, pace: store.timeline.last(tracks?.get(rank.rank), 'step_ns', buckets) }))}
        rowKey={(row) => row.rank.rank}
        search={['rank', 'host', 'state']}
        onSelect={(row) => row && (location.hash = href('rank', { rank: row.rank.rank, job: job.job_id }))}
        empty="No rank of this job is there."
      />
    </div>
  );
}

function Job({ data }: Props) {
  const { store, view, job } = useJob(data);
  if (!job) return <NoJob view={view} />;
  return (
    <>
      <VerdictBox job={job} store={store} />
      <StagesLine store={store} job_id={job.job_id} />
      <Tiles job={job} store={store} />
      {job.missing_ranks.length > 0 && <Note kind="warning">Missing: {rankList(job.missing_ranks, 12)}. <a href={href('quality', { job: job.job_id })}>What the figures lack</a></Note>}
      {job.ranks.length > 0 ? <Ranks job={job} store={store} /> : <Note>{plural(job.serving.length, 'server')} of requests, no rank with steps: <a href={href('serving', { job: job.job_id })}>Serving</a></Note>}
    </>
  );
}

export const jobView: View<LiveStore> = {
  id: 'job',
  title: 'Job',
  shows: 'Is it going well, and if not, which rank holds it up? Ranks stand worst first; a click or Enter opens one.',
  group: 'Now',
  component: Job,
};
