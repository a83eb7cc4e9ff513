import { StackedRows } from '../charts/stacked_rows';
import { stagesMissing } from '../data/depth';
import { duration, percent, plural } from '../numbers';
import { Answer } from '../parts/answer';
import { numberColumn, textColumn, timeColumn } from '../parts/columns';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';

function Stages({ data }: ViewProps) {
  const job = data.stage_scopes![0]!;
  const shares = data.stage_shares!;
  const named = job.rank === null ? job.answer : `rank ${job.rank}`;
  const summary = `What each stage adds to a step of the job. ${plural(job.step_count, 'step')}: ${named}${job.stage === null ? '' : ` in ${job.stage}`}, ${percent(job.cost_ratio)} of their time.`;
  return (
    <>
      {data.stage_agreement!.map((row) => <Answer key={row.question} kind={row.agrees === false ? 'warning' : 'info'} sentence={row.sentence} />)}
      <Figure
        id="stage-shares"
        title="Stages of a step"
        summary={summary}
        columns={[
          textColumn('stage', 'Stage'),
          timeColumn('job_ns', 'A step'),
          timeColumn('traced_ns', 'Traced'),
          timeColumn('not_traced_ns', 'The others'),
          numberColumn('cost_rank', 'Costs most'),
          timeColumn('cost_ns', 'That is'),
        ]}
        rows={shares}
        rowKey={(row) => row.stage}
      >
        <StackedRows
          kind="ns"
          format={duration}
          label={summary}
          rows={shares.map((row) => ({ key: row.stage, label: row.stage, parts: [{ mark: 'compute', label: row.stage, value: row.job_ns }], text: duration(row.job_ns) }))}
        />
      </Figure>
    </>
  );
}

export const stagesView: View = {
  id: 'stages',
  title: 'Stages of steps',
  shows: 'What lockstep run --stages recorded beside the traces: which stage and which rank cost time, and do both say the same?',
  group: 'Time',
  missing: stagesMissing,
  component: Stages,
};
