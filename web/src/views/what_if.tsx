import { useMemo } from 'preact/hooks';
import { useChoice } from '../app/route';
import { StackedRows } from '../charts/stacked_rows';
import { StepLines } from '../charts/step_lines';
import { bubblesByStage, simulationError, whatIfMissing, type BubblesData, type Study, type StudyShare, type WhatIfData } from '../data/depth';
import { capital, count, duration, number, percent, plural, rankList } from '../numbers';
import { Answer } from '../parts/answer';
import { bytesColumn, numberColumn, shareColumn, textColumn, timeColumn } from '../parts/columns';
import { Choice, Legend, Note } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';

const LEVERS_DRAWN = 24;
/** Below this a change does nothing that a simulation could tell; the text report draws the line there as well. */
const LEAST_GAIN = 0.0005;

function Levers({ what_if }: { what_if: WhatIfData }) {
  const error = simulationError(what_if);
  const worth = what_if.levers.filter((lever) => lever.gain_ratio >= LEAST_GAIN);
  const drawn = worth.slice(0, LEVERS_DRAWN);
  const sure = worth.filter((lever) => lever.gain_ns > error).length;
  const summary = worth.length === 0
    ? `Of ${plural(what_if.lever_count, 'change')} that were simulated none makes a step shorter.`
    : `${count(worth.length)} of ${plural(what_if.lever_count, 'change')} that were simulated would make a step shorter, ${error > 0 ? `${count(sure)} by more than the simulation’s own error of ${duration(error)} (dashed)` : 'and the simulation has no error of its own here'}. Each is alone: gains do not add up.` +
      (worth.length > drawn.length ? ` The ${LEVERS_DRAWN} largest are drawn.` : '');
  return (
    <Figure
      id="levers"
      title="What each change would gain"
      summary={summary}
      columns={[
        textColumn('title', 'If'),
        { key: 'ranks', title: 'Ranks', width: 28, value: (lever) => (lever.ranks.length === 0 ? 'all' : rankList(lever.ranks)) },
        timeColumn('step_ns', 'Step'),
        timeColumn('gain_ns', 'Gain'),
        shareColumn('gain_ratio', 'Share'),
        { key: 'sure', title: 'Beyond the error', value: (lever) => (lever.gain_ns > error ? 'yes' : 'no') },
        textColumn('id', 'Name'),
      ]}
      rows={what_if.levers}
      rowKey={(lever) => lever.id}
      sort="-gain_ns"
      search={['title', 'ranks', 'id']}
    >
      {drawn.length === 0 ? <Note>No bar to draw: see the table for what was tried.</Note> : (
        <StackedRows
          kind="ns"
          format={duration}
          label={summary}
          rows={drawn.map((lever) => ({
            key: lever.id, label: lever.title, text: `${duration(lever.gain_ns)}, ${percent(lever.gain_ratio)}`,
            parts: [{ mark: lever.gain_ns > error ? 'host' : 'idle', label: 'shorter step', value: lever.gain_ns }], limit: error > 0 ? error : null,
          }))}
        />
      )}
    </Figure>
  );
}

function Simulated({ what_if }: { what_if: WhatIfData }) {
  const { steps } = what_if;
  if (steps.length === 0) return null;
  type Row = WhatIfData['steps'][number];
  const off = (row: Row) => (row.observed_ns > 0 ? (row.simulated_ns - row.observed_ns) / row.observed_ns : null);
  const ideal = steps.some((row) => row.ideal_ns !== null);
  const summary = `A step takes ${duration(what_if.observed_step_ns)} as observed and ${duration(what_if.simulated_step_ns)} as simulated with nothing changed, ${percent(what_if.error_ratio)} off on average; gains are counted from the simulated time.` +
    (steps.length < what_if.step_count ? ` The first ${count(steps.length)} of ${count(what_if.step_count)} steps are drawn.` : '');
  return (
    <Figure
      id="simulated"
      title="How well the simulation fits this job"
      summary={summary}
      columns={[
        numberColumn('step', 'Step'),
        timeColumn('observed_ns', 'Observed'),
        timeColumn('simulated_ns', 'Simulated'),
        { key: 'error_ratio', title: 'Off by', numeric: true, value: off, text: (row) => percent(off(row)) },
        ...(ideal ? [timeColumn('ideal_ns', 'Ideal')] : []),
      ]}
      rows={steps}
      rowKey={(row) => String(row.step)}
      sort="step"
    >
      <Legend items={[{ mark: 'series-1', label: 'observed' }, { mark: 'series-2', label: 'simulated' }, ...(ideal ? [{ mark: 'series-3', label: 'without stragglers (ideal)' }] : [])]} />
      <StepLines
        steps={steps.map((row) => row.step)}
        series={[
          { label: 'observed', series: 1, values: steps.map((row) => row.observed_ns) },
          { label: 'simulated', series: 2, values: steps.map((row) => row.simulated_ns) },
          ...(ideal ? [{ label: 'ideal', series: 3, values: steps.map((row) => row.ideal_ns) }] : []),
        ]}
        label={summary}
      />
    </Figure>
  );
}

const PARTS = ['stage', 'DP rank', 'operation'] as const;

function StudyFigures({ study }: { study: Study }) {
  const [part, setPart] = useChoice('part', PARTS, 'stage');
  const shares = part === 'stage' ? study.by_stage : part === 'DP rank' ? study.by_dp_rank : study.by_operation;
  const rows = [...shares].sort((a, b) => b.slowdown - a.slowdown);
  const first = rows[0];
  const summary = `Stragglers slow the job down ${number(study.slowdown)} times, delayed launches ${number(study.launch_slowdown)} times. The slowest 3 % of the workers (${rankList(study.slow_workers)}) explain ${percent(study.slow_workers_ratio)} of what stragglers cost, the last stage (${study.last_stage}) ${percent(study.last_stage_ratio)}.` +
    (first ? ` Alone, the real work of ${part} ${first.name} slows the ideal job down ${number(first.slowdown)} times.` : '');
  return (
    <Figure
      id="study"
      title="Who slows the job down"
      summary={summary}
      controls={<Choice name="study-part" label="By" value={part} onChange={setPart} options={PARTS.map((value) => ({ value, label: value }))} />}
      columns={[
        { key: 'name', title: part, value: (row: StudyShare) => row.name },
        { key: 'slowdown', title: 'Slowdown', numeric: true, value: (row) => row.slowdown, text: (row) => row.slowdown.toFixed(3), help: 'Of the ideal job, when only this part does its real work' },
      ]}
      rows={rows}
      rowKey={(row) => row.name}
      sort="-slowdown"
      search={['name']}
    >
      <StackedRows
        kind="number"
        format={(value) => value.toFixed(3)}
        label={summary}
        rows={rows.map((row) => ({ key: row.name, label: part === 'operation' ? row.name : `${part} ${row.name}`, parts: [{ mark: 'communication', label: 'slowdown', value: row.slowdown }], text: row.slowdown.toFixed(3) }))}
      />
    </Figure>
  );
}

function bubbleSentence(bubbles: BubblesData): string {
  const steady = bubbles.steps.filter((row) => !row.warm_up);
  if (steady.length === 0) return 'There is no pipeline of two stages or more to tell of.';
  const mean = (pick: (row: BubblesData['steps'][number]) => number) => steady.reduce((sum, row) => sum + pick(row), 0) / steady.length;
  return `Pipelines idle ${percent(mean((row) => row.bubble_ratio))} of an iteration; even ones of this size would idle ${percent(mean((row) => row.ideal_bubble_ratio))}.`;
}

function Bubbles({ bubbles }: { bubbles: BubblesData }) {
  const rows = useMemo(() => bubblesByStage(bubbles), [bubbles]);
  if (rows.length === 0) return <Note>No pipeline of two stages or more, so there are no bubbles.</Note>;
  const steady = bubbles.steps.filter((row) => !row.warm_up);
  const mean = (pick: (row: BubblesData['steps'][number]) => number) => (steady.length > 0 ? steady.reduce((sum, row) => sum + pick(row), 0) / steady.length : null);
  const warm = [...new Set(bubbles.steps.filter((row) => row.warm_up).map((row) => row.step))];
  const worst = [...rows].sort((a, b) => b.bubble_ratio - a.bubble_ratio)[0]!;
  const summary = `Over all stages ${percent(mean((row) => row.bubble_ratio))} of an iteration is bubble; an even pipeline of this size has ${percent(mean((row) => row.ideal_bubble_ratio))}. Stage ${worst.stage} idles most: ${percent(worst.bubble_ratio)}.` +
    (warm.length > 0 ? ` Step ${warm.join(', ')} is warm-up and not in the means.` : '');
  return (
    <Figure
      id="bubbles"
      title="Bubbles of the pipeline"
      summary={summary}
      columns={[
        numberColumn('stage', 'Stage'),
        timeColumn('window_ns', 'Window'),
        timeColumn('busy_ns', 'Busy'),
        shareColumn('bubble_ratio', 'Bubble'),
        bytesColumn('memory_bytes', 'Memory'),
      ]}
      rows={rows}
      rowKey={(row) => String(row.stage)}
      sort="stage"
    >
      <Legend items={[{ mark: 'compute', label: 'forward and backward work' }, { mark: 'idle', label: 'bubble' }]} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({
          key: String(row.stage), label: `stage ${row.stage}`, text: `bubble ${percent(row.bubble_ratio)}`,
          parts: [{ mark: 'compute', label: 'work', value: row.busy_ns }, { mark: 'idle', label: 'bubble', value: Math.max(0, row.window_ns - row.busy_ns) }],
        }))}
      />
    </Figure>
  );
}

function WhatIf({ data }: ViewProps) {
  const { what_if, bubbles } = data;
  const best = what_if?.levers[0];
  const error = what_if ? simulationError(what_if) : 0;
  return (
    <>
      {what_if && (best && best.gain_ratio >= LEAST_GAIN ? (
        <Answer kind={best.gain_ns > error && best.gain_ratio >= 0.1 ? 'warning' : 'info'} sentence={`“${capital(best.title)}” would make a step ${duration(best.gain_ns)} shorter: ${duration(best.step_ns)} in place of ${duration(what_if.simulated_step_ns)}, ${percent(best.gain_ratio)} less.`}>
          {error === 0
            ? 'With nothing changed the simulation takes as long as the job did, to the nanosecond.'
            : best.gain_ns > error
            ? `The simulation is ${percent(what_if.error_ratio)} off for this job with nothing changed, ${duration(error)}: the gain is beyond that.`
            : `The simulation is ${percent(what_if.error_ratio)} off for this job with nothing changed, ${duration(error)}: more than this gain. Do not rely on it.`}
        </Answer>
      ) : <Answer sentence="No change that was simulated makes a step shorter." />)}
      {!what_if && bubbles && <Answer sentence={bubbleSentence(bubbles)} />}
      {what_if && <Levers what_if={what_if} />}
      {what_if && <Simulated what_if={what_if} />}
      {what_if?.study && <StudyFigures study={what_if.study} />}
      {bubbles && <Bubbles bubbles={bubbles} />}
    </>
  );
}

export const whatIfView: View = {
  id: 'what-if',
  title: 'What if',
  shows: 'How long a step would take if one thing were different, by simulation: which change is worth the work.',
  group: 'Why',
  missing: whatIfMissing,
  component: WhatIf,
};
