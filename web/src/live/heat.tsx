import { duration, percent } from '../numbers';
import { Note } from '../parts/controls';
import type { View } from '../view';
import { HeatPanel } from './heat_panel';
import { Actions, NoJob, phaseWords, StateWord, useJob, type Props } from './shared';
import type { LiveStore } from './store';

const QUANTITIES = [
  // Ranks that wait for each other have equal step times; who is slow shows in the own one.
  { value: 'own_ns', label: 'own time', format: duration },
  { value: 'step_ns', label: 'step time', format: duration },
  { value: 'communication_ratio', label: 'exposed communication', format: percent, from_zero: true },
  { value: 'compute_ratio', label: 'compute', format: percent, from_zero: true },
];

function Heat({ data }: Props) {
  const { store, view, job } = useJob(data);
  if (!job) return <NoJob view={view} />;
  const tracks = store.timeline.jobs.get(job.job_id)?.ranks;
  if (job.ranks.length === 0) return <Note>No rank of this job is there.</Note>;
  return (
    <HeatPanel
      store={store}
      id="heat"
      what="rank"
      quantities={QUANTITIES}
      rows={job.ranks.map((rank) => ({ key: rank.rank, label: `rank ${rank.rank}`, host: rank.host ?? rank.node, columns: tracks?.get(rank.rank) }))}
      open_words="offers to capture the rank"
      offer={(row, text) => {
        const rank = job.ranks.find((each) => each.rank === row.key);
        return (
          <>
            <h3>Rank {row.key} on {row.host}{rank && <>: <StateWord state={rank.state} /></>}</h3>
            <p class="muted">{text || (rank ? `Now: ${phaseWords(rank)}` : '')}</p>
            <Actions store={store} job_id={job.job_id} ranks={[row.key]} />
          </>
        );
      }}
    />
  );
}

export const heatView: View<LiveStore> = {
  id: 'heatmap',
  title: 'Rank × time',
  shows: 'Is it one rank, one host or one moment? Every rank over the last minutes, the slowest in the brightest colour.',
  group: 'Now',
  component: Heat,
};
