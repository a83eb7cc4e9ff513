import { StackedRows } from '../charts/stacked_rows';
import { TimeLines } from '../charts/time_lines';
import { useParam } from '../app/route';
import { ABSENT, bytes, count, duration, number, percent, rate } from '../numbers';
import { Legend, Note, Select } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import type { View } from '../view';
import { lineTable } from './line_table';
import { Actions, Facts, NoJob, StateWord, useJob, useSpan, type Props } from './shared';
import type { LiveStore } from './store';
import type { Phase } from './types';
import { phaseOf, rateText, STATE_WORDS, worseRank } from './verdict';

const PHASES: readonly { key: Phase; mark: string; label: string }[] = [
  { key: 'forward', mark: 'compute', label: 'forward' },
  { key: 'backward', mark: 'compute', label: 'backward' },
  { key: 'optimizer', mark: 'compute', label: 'optimizer' },
  { key: 'comm_exposed', mark: 'communication', label: 'exposed communication' },
  { key: 'input', mark: 'host', label: 'input' },
  { key: 'h2d', mark: 'host', label: 'copy to the device' },
  { key: 'checkpoint', mark: 'memory', label: 'checkpoint' },
  { key: 'validation', mark: 'memory', label: 'validation' },
  { key: 'gc', mark: 'host', label: 'garbage collection' },
  { key: 'other', mark: 'idle', label: 'other' },
];

function RankPage({ data }: Props) {
  const { store, view, job } = useJob(data);
  const [chosen, choose] = useParam('rank', '');
  const { buckets, words, picker } = useSpan(store);
  if (!job) return <NoJob view={view} />;
  const ranks = [...job.ranks].sort(worseRank);
  const rank = ranks.find((each) => each.rank === chosen) ?? (chosen === '' ? ranks[0] : undefined);
  const select = (
    <div class="view-choice tools">
      <Select label="Rank" value={rank?.rank ?? chosen} onChange={choose} options={[...(rank ? [] : [{ value: chosen, label: `${chosen} (not there)` }]), ...ranks.map((each) => ({ value: each.rank, label: `${each.rank} · ${each.state}` }))]} />
      {picker}
    </div>
  );
  if (!rank) return <>{select}<Note>Rank {chosen} is not there now.</Note></>;
  const columns = store.timeline.jobs.get(job.job_id);
  const of = (name: string) => store.timeline.last(columns?.ranks.get(rank.rank), name, buckets);
  const pace = [
    { label: 'step', series: 1, values: of('step_ns') },
    { label: 'own', series: 2, values: of('own_ns') },
    { label: 'median rank’s step', series: 6, values: store.timeline.last(columns?.job, 'step_ns', buckets), dashed: true },
  ];
  const phases = PHASES.map((phase) => ({ ...phase, ratio: rank.phases[phase.key] }));
  const largest = phases.reduce((most, phase) => ((phase.ratio ?? 0) > (most.ratio ?? 0) ? phase : most));
  const step = rank.step_ns;
  const { gpu } = rank;
  return (
    <>
      {select}
      <section class={`verdict answer ${rank.state === 'stuck' || rank.state === 'unheard' ? 'critical' : rank.state === 'slow' ? 'warning' : ''}`} aria-label="State">
        <h3>Rank {rank.rank} on {rank.host ?? rank.node}: <StateWord state={rank.state} />{rank.waits_for_rank !== null && `, waits for rank ${rank.waits_for_rank}`}</h3>
        <p class="verdict-gain">
          {STATE_WORDS[rank.state]} {rank.open_phase !== null && `It ${phaseOf(rank)}. `}Step {count(rank.step_count)}, {rank.behind_steps === null ? 'progress not measured' : rank.behind_steps === 0 ? 'no rank is ahead' : `${count(rank.behind_steps)} behind`}; the last one ended {duration(rank.progress_age_ns)} ago.
        </p>
      </section>
      <Actions store={store} job_id={job.job_id} ranks={[rank.rank]} />
      <Figure
        id="phases"
        title="Where its step goes"
        summary={step === null || largest.ratio === null ? 'Phases are not measured.' : `A step takes ${duration(step)}${rank.is_since_start ? ' (mean since it began)' : ''}; most of it is ${largest.label} with ${percent(largest.ratio)}.`}
        columns={[
          { key: 'phase', title: 'Phase', value: (row) => row.label },
          { key: 'ratio', title: 'Share', numeric: true, value: (row) => row.ratio, text: (row) => percent(row.ratio) },
          { key: 'time_ns', title: 'A step', numeric: true, value: (row) => (row.ratio === null || step === null ? null : Math.round(row.ratio * step)), text: (row) => duration(row.ratio === null || step === null ? null : row.ratio * step) },
        ]}
        rows={phases}
        rowKey={(row) => row.key}
      >
        <StackedRows
          rows={phases.map((phase) => ({
            key: phase.key, label: phase.label, text: phase.ratio === null ? 'not measured' : percent(phase.ratio),
            parts: phase.ratio === null ? null : [{ mark: phase.mark, label: phase.label, value: step === null ? phase.ratio : phase.ratio * step }],
          }))}
          kind={step === null ? 'ratio' : 'ns'}
          format={(value) => (step === null ? percent(value) : duration(value))}
          label={`Phases of rank ${rank.rank}`}
        />
      </Figure>
      <Figure id="pace" title="Pace" summary={`Step time and own time over ${words}, beside the median rank’s step.`} {...lineTable(store, pace, duration, 'ns')}>
        <Legend items={pace.map((line) => ({ mark: `series-${line.series}`, label: line.label }))} />
        <TimeLines series={pace} bucket_ns={store.timeline.bucket_ns} kind="ns" label={`Pace of rank ${rank.rank}`} />
      </Figure>
      <div class="facts-columns">
        <section aria-label="Process">
          <h3>Process</h3>
          <Facts items={[
            ['Host', rank.host ?? rank.node], ['PID', rank.pid ?? ABSENT], ['User', rank.user ?? ABSENT], ['Local rank', rank.local_rank ?? ABSENT],
            ['Processors in use', number(rank.cpu_cores)], ['Memory', bytes(rank.resident_memory_bytes)], ['Threads', count(rank.thread_count)],
            ['Storage', `${rate(rank.storage_read_bytes_per_s)} read, ${rate(rank.storage_written_bytes_per_s)} written`],
            ['Records', `${count(rank.event_count)}, ${count(rank.dropped_event_count)} dropped`],
            ['Errors in its log', rank.log_error_count === null ? ABSENT : `${count(rank.log_error_count)}, ${rateText(rank.log_errors_per_s)} a second`],
          ]} />
        </section>
        <section aria-label="Device">
          <h3>Device</h3>
          {gpu ? (
            <Facts items={[
              ['Device', `${gpu.gpu}${gpu.model ? ` · ${gpu.model}` : ''}`], ['Busy', percent(gpu.utilization_ratio)],
              ['Memory', `${bytes(gpu.memory_used_bytes)} of ${bytes(gpu.memory_total_bytes)}`], ['Temperature', gpu.temperature_celsius === null ? ABSENT : `${Math.round(gpu.temperature_celsius)} °C`],
              ['Power', gpu.power_watts === null ? ABSENT : `${Math.round(gpu.power_watts)} W of ${gpu.power_limit_watts === null ? ABSENT : `${Math.round(gpu.power_limit_watts)} W`}`],
              ['Xid errors', count(gpu.xid_event_count)], ['Uncorrected ECC errors', count(gpu.uncorrected_ecc_error_count)], ['Slowed by heat', percent(gpu.thermal_throttle_ratio)],
            ]} />
          ) : <p class="muted">Not measured: {rank.device ?? 'no device is known'}.</p>}
          <h3>PyTorch’s memory</h3>
          <Facts items={[['Given out', bytes(rank.torch_memory_allocated_bytes)], ['Held', bytes(rank.torch_memory_reserved_bytes)], ['Peak', bytes(rank.torch_memory_peak_bytes)]]} />
        </section>
        <section aria-label="Work">
          <h3>Work</h3>
          <Facts items={[
            ['Steps a second', rateText(rank.steps_per_s)], ['MFU', percent(rank.mfu_ratio)], ['Tokens a second', rateText(rank.tokens_per_s)], ['Samples a second', rateText(rank.samples_per_s)],
            ['Bus bandwidth', rate(rank.bus_bytes_per_s)], ['Oldest open collective', duration(rank.oldest_collective_ns)],
          ]} />
        </section>
      </div>
      {rank.groups.length > 0 && (
        <DataTable
          id="rank-groups" caption="Its process groups" rows={rank.groups} rowKey={(row) => row.group} sort="-oldest_inflight_ns"
          columns={[
            { key: 'group', title: 'Group', value: (row) => row.group, width: 40 },
            { key: 'enqueued_count', title: 'Enqueued', numeric: true, value: (row) => row.enqueued_count },
            { key: 'completed_count', title: 'Completed', numeric: true, value: (row) => row.completed_count },
            { key: 'oldest_inflight_ns', title: 'Oldest open for', numeric: true, value: (row) => row.oldest_inflight_ns, text: (row) => duration(row.oldest_inflight_ns) },
          ]}
        />
      )}
      {rank.values.length > 0 && (
        <DataTable
          id="values" caption="Its own values" rows={rank.values} rowKey={(row) => row.name}
          columns={[{ key: 'name', title: 'Name', value: (row) => row.name, width: 60 }, { key: 'value', title: 'Value', numeric: true, value: (row) => row.value, text: (row) => number(row.value) }]}
        />
      )}
    </>
  );
}

export const rankView: View<LiveStore> = {
  id: 'rank',
  title: 'Rank',
  shows: 'What does this rank do? Its phases, pace, process, memory, device and collectives.',
  group: 'Now',
  component: RankPage,
};
