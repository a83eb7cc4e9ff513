import { useRef } from 'preact/hooks';
import { href, useParam } from '../app/route';
import { GridView } from '../canvas/grid_view';
import { CODE_NONE } from '../canvas/palette';
import { capital, percent, plural } from '../numbers';
import { Answer } from '../parts/answer';
import { Legend, Note } from '../parts/controls';
import { Figure } from '../parts/figure';
import { STAGE_KINDS, stageKind, StepsByStage, stepsText } from '../parts/stage_windows';
import type { View } from '../view';
import { Actions, NoJob, useJob, type Props } from './shared';
import type { LiveStore } from './store';
import type { JobStages } from './types';

const COLOURS = STAGE_KINDS.map(({ mark }) => `--${mark}`);

/** null: nothing was heard of the job's stages. */
function stagesOf(store: LiveStore, job_id: string): JobStages | { problem: string } | null {
  return store.stages?.jobs.find((job) => job.job_id === job_id) ?? null;
}

function Leaders({ store, job, names }: { store: LiveStore; job: JobStages; names: readonly string[] }) {
  const [open, setOpen] = useParam('open', '');
  const opened = useRef('');
  const { ranks, windows } = job;
  const stageAt = (row: number, column: number): string | null => {
    const letter = windows[column]!.leads.charCodeAt(row) - 97;
    return names[letter] ?? null;
  };
  const codes = new Uint8Array(ranks.length * windows.length).fill(CODE_NONE);
  const rows = ranks.map((rank, row) => {
    let count = 0;
    const by_stage = new Map<string, number>();
    windows.forEach((_, column) => {
      const stage = stageAt(row, column);
      if (stage === null) return;
      codes[row * windows.length + column] = stageKind(stage);
      by_stage.set(stage, (by_stage.get(stage) ?? 0) + 1);
      ++count;
    });
    const [most] = [...by_stage].sort((a, b) => b[1] - a[1]);
    return { rank, count, stage: most ? most[0] : null };
  });
  const first = rows.reduce((most, each) => (each.count > most.count ? each : most), rows[0]!);
  const summary = first.count === 0
    ? `No rank held the others up in ${plural(job.step_count, 'step')}.`
    : `Rank ${first.rank} held the others up most often, in ${percent(first.count / windows.length)} of the time shown, most in ${first.stage}.`;
  const describe = (row: number, column: number) => {
    const stage = stageAt(row, column);
    return `Rank ${ranks[row]}, ${stepsText(windows[column]!)}: ${stage === null ? 'nobody waits for it' : `holds the others up in ${stage}`}`;
  };
  const chosen = ranks.find((rank) => String(rank) === open);
  return (
    <>
      <Figure
        id="leaders"
        title="Who holds the job up, rank by step"
        summary={summary}
        columns={[
          { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
          { key: 'count', title: 'Of the time shown', numeric: true, value: (row) => row.count, text: (row) => percent(row.count / windows.length) },
          { key: 'stage', title: 'Most in', value: (row) => row.stage },
        ]}
        rows={rows}
        rowKey={(row) => String(row.rank)}
        sort="-count"
        search={['rank', 'stage']}
      >
        <Legend items={STAGE_KINDS} />
        <GridView
          id="leaders-grid"
          label={`Who holds the job up, rank by step. ${summary}`}
          codes={codes}
          row_count={ranks.length}
          column_count={windows.length}
          rows={Uint32Array.from(ranks.keys())}
          columns={null}
          rowLabel={(row) => `rank ${ranks[row]}`}
          columnLabel={(column) => String(windows[column]!.first_step)}
          row_title=""
          column_title="step"
          valueText={(row, column) => stageAt(row, column) ?? ''}
          describe={describe}
          onOpen={(row, column) => {
            opened.current = describe(row, column);
            setOpen(String(ranks[row]));
          }}
          open_words="offers to capture the rank"
          scale={['', '', '']}
          classes={COLOURS}
        />
      </Figure>
      {chosen !== undefined && (
        <section class="details" aria-label={`rank ${chosen}`}>
          <h3>Rank {chosen}</h3>
          <p class="muted">{opened.current}</p>
          <Actions store={store} job_id={job.job_id} ranks={[String(chosen)]} />
        </section>
      )}
    </>
  );
}

/** The sentence for the page of the job; nothing where no stages are known. */
export function StagesLine({ store, job_id }: { store: LiveStore; job_id: string }) {
  const job = stagesOf(store, job_id);
  if (job === null || job.problem !== null) return null;
  return <p class="note info">Stages of the last {plural(job.step_count, 'step')}: <a href={href('stages', { job: job_id })}>{job.verdict.sentence}</a></p>;
}

function Stages({ data }: Props) {
  const { store, view, job: seen } = useJob(data);
  if (!seen) return <NoJob view={view} />;
  const job = stagesOf(store, seen.job_id);
  if (job === null) return <Note>{store.stages === null ? 'The nodes are being asked for the stages of steps …' : 'No stages of this job are known: start it by lockstep run --stages.'}</Note>;
  if (job.problem !== null) return <Note kind="warning">{capital(job.problem)}</Note>;
  const names = store.stages!.stages;
  return (
    <>
      <Answer kind={job.verdict.answer === 'straggler' || job.verdict.answer === 'imbalance' ? 'warning' : 'info'} sentence={job.verdict.sentence}>{[job.why, job.next].filter(Boolean).map((text) => `${capital(text)}.`).join(' ')}</Answer>
      {job.is_partial && <Note kind="warning">Steps of some ranks are not known here. <a href={href('quality', { job: seen.job_id })}>What the figures lack</a></Note>}
      {job.windows.length > 0 && <Leaders store={store} job={job} names={names} />}
      {job.windows.length > 0 && <StepsByStage windows={job.windows} step_count={job.step_count} names={names} />}
    </>
  );
}

export const stagesView: View<LiveStore> = {
  id: 'stages',
  title: 'Stages',
  shows: 'Which rank and which stage of the step cost the job time in its newest steps?',
  group: 'Now',
  component: Stages,
};
