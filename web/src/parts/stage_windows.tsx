import { StackedColumns } from '../charts/stacked_columns';
import { duration, plural } from '../numbers';
import { Legend } from './controls';
import { Figure } from './figure';

/** Steps of a job that follow each other; `frontier_ns` by stage. */
export interface StepWindow {
  first_step: number;
  last_step: number;
  step_count: number;
  ns: number;
  frontier_ns: number[];
  cost_ns: number;
  rank: number | null;
  stage: string | null;
}

/** Stages that are drawn alike; the later one shows where cells share a pixel. */
export const STAGE_KINDS = [
  { mark: 'idle', label: 'other', stages: ['other'] },
  { mark: 'compute', label: 'compute (forward, backward, optimizer)', stages: ['forward', 'backward', 'optimizer'] },
  { mark: 'communication', label: 'exposed communication', stages: ['comm_exposed'] },
  { mark: 'memory', label: 'copy to the device', stages: ['h2d'] },
  { mark: 'host', label: 'input', stages: ['input'] },
  { mark: 'series-5', label: 'checkpoint, validation, garbage collection', stages: ['checkpoint', 'validation', 'gc'] },
] as const;

export function stageKind(stage: string): number {
  return Math.max(0, STAGE_KINDS.findIndex(({ stages }) => (stages as readonly string[]).includes(stage)));
}

export function stepsText({ first_step, last_step }: { first_step: number; last_step: number }): string {
  return first_step === last_step ? `step ${first_step}` : `steps ${first_step} to ${last_step}`;
}

/** A step of the job by its stages, over steps; `names`: of the stages. At least one window. */
export function StepsByStage({ windows, step_count, names }: { windows: readonly StepWindow[]; step_count: number; names: readonly string[] }) {
  const mean = (window: StepWindow) => window.ns / window.step_count;
  const worst = windows.reduce((most, each) => (mean(each) > mean(most) ? each : most), windows[0]!);
  const summary = `${plural(step_count, 'step')}, ${stepsText({ ...windows[0]!, last_step: windows[windows.length - 1]!.last_step })}. Longest: ${stepsText(worst)} with ${duration(mean(worst))} a step.`;
  return (
    <Figure
      id="stage-steps"
      title="A step of the job, by stage"
      summary={summary}
      columns={[
        { key: 'first_step', title: 'Step', numeric: true, value: (row) => row.first_step, text: stepsText },
        { key: 'ns', title: 'A step', numeric: true, value: mean, text: (row) => duration(mean(row)) },
        { key: 'cost_ns', title: 'One rank cost', numeric: true, value: (row) => row.cost_ns / row.step_count, text: (row) => duration(row.cost_ns / row.step_count) },
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
        { key: 'stage', title: 'Stage', value: (row) => row.stage },
      ]}
      rows={windows}
      rowKey={(row) => String(row.first_step)}
      search={['stage']}
    >
      <Legend items={STAGE_KINDS} />
      <StackedColumns
        kind="ns"
        format={duration}
        label={`A step by stage, over steps. ${summary}`}
        xTitle="step"
        many="the longest of"
        height={220}
        tick={(at) => String(windows[at]!.first_step)}
        columns={windows.map((window) => ({
          key: String(window.first_step), label: stepsText(window), text: duration(mean(window)),
          parts: STAGE_KINDS.map(({ mark, label, stages }) => ({
            mark, label, value: names.reduce((sum, name, at) => ((stages as readonly string[]).includes(name) ? sum + window.frontier_ns[at]! : sum), 0) / window.step_count,
          })),
        }))}
      />
    </Figure>
  );
}
