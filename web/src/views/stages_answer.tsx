import { useMemo } from 'preact/hooks';
import { useParam } from '../app/route';
import { encode } from '../canvas/grid';
import { GridView } from '../canvas/grid_view';
import { StackedRows } from '../charts/stacked_rows';
import { stagesOfStep, type MemoryRank, type Signal, type StagesAnswer, type StagesData } from '../data/stages';
import type { PageSource } from '../data/types';
import { bytes, capital, count, duration, percent, plural, rankList } from '../numbers';
import { Answer } from '../parts/answer';
import { Legend, Select } from '../parts/controls';
import { DataTable, type Column } from '../parts/data_table';
import { Figure } from '../parts/figure';
import { STAGE_KINDS, stageKind, StepsByStage, stepsText } from '../parts/stage_windows';
import type { View, ViewProps } from '../view';
import { answerQualityView, answerTextView } from './answer_views';
import { SeriesOverTime } from './series_over_time';

type Props = ViewProps<StagesData>;

const DRAWN_RANKS = 40;
const SIGNALS: Record<Signal, string> = { resident: 'Memory of each rank’s process', allocated: 'Memory allocated by PyTorch', reserved: 'Memory held by PyTorch' };
const sentence = (text: string) => (text === '' ? '' : `${capital(text)}${/[.!?]$/.test(text) ? '' : '.'}`);

function Verdict({ data }: Props) {
  const { verdict, step_count, changes, memory } = data.answer;
  const rows = stagesOfStep(data.answer);
  const most = rows.reduce((largest, row) => (row.ratio > largest.ratio ? row : largest), rows[0]!);
  const summary = rows.length === 0 ? '' : `${plural(step_count, 'step')} of ${plural(data.answer.ranks.length, 'rank')}, ${duration(data.answer.total_ns / step_count)} a step; most of the job’s time is ${most.stage}, ${percent(most.ratio)}.`;
  const also = [...changes, ...memory.findings].map((each) => each.sentence);
  return (
    <>
      <Answer kind={verdict.answer === 'straggler' || verdict.answer === 'imbalance' ? 'warning' : 'info'} sentence={verdict.sentence}>
        {[data.why, data.next].map(sentence).filter(Boolean).join(' ')}
      </Answer>
      {also.length > 0 && <><h3>Also</h3><ul class="plain-list">{also.map((text) => <li key={text}>{text}</li>)}</ul></>}
      {rows.length > 0 && (
        <Figure
          id="stages"
          title="Stages of a step"
          summary={summary}
          rows={rows}
          rowKey={(row) => row.stage}
          columns={[
            { key: 'stage', title: 'Stage', value: (row) => row.stage },
            { key: 'median_ns', title: 'Median rank', help: 'A step', numeric: true, value: (row) => row.median_ns, text: (row) => duration(row.median_ns) },
            { key: 'slowest_ns', title: 'Slowest rank', help: 'A step', numeric: true, value: (row) => row.slowest_ns, text: (row) => duration(row.slowest_ns) },
            { key: 'slowest_rank', title: 'Who', numeric: true, value: (row) => row.slowest_rank },
            { key: 'ratio', title: 'Of the job', help: 'What the stage adds to the time of all steps, as the job saw it', numeric: true, value: (row) => row.ratio, text: (row) => percent(row.ratio) },
            { key: 'imbalance_ratio', title: 'Imbalance', help: 'What the job would save if every rank took as long as the median rank', numeric: true, value: (row) => row.imbalance_ratio, text: (row) => percent(row.imbalance_ratio) },
            { key: 'cost_rank', title: 'Costs most', numeric: true, value: (row) => row.cost_rank },
            { key: 'cost_ratio', title: 'That is', help: 'Of the job’s time', numeric: true, value: (row) => row.cost_ratio, text: (row) => percent(row.cost_ratio) },
          ]}
        >
          <StackedRows
            kind="ratio"
            format={percent}
            label={summary}
            rows={rows.map((row) => ({
              key: row.stage, label: row.stage, parts: [{ mark: STAGE_KINDS[stageKind(row.stage)]!.mark, label: row.stage, value: row.ratio }],
              text: percent(row.ratio) + (row.cost_rank === null ? '' : `, rank ${row.cost_rank} costs ${percent(row.cost_ratio)}`),
            }))}
          />
        </Figure>
      )}
    </>
  );
}

function rankTimes({ ranks, stages, step_count }: StagesAnswer) {
  return ranks.map((rank, at) => {
    const parts = stages.map((row) => ({ stage: row.stage, ns: row.rank_ns[at]! / Math.max(1, step_count) }));
    return { ...rank, parts, cost_ns: stages.reduce((sum, row) => sum + row.cost_ns[at]!, 0) / Math.max(1, step_count) };
  });
}

function Ranks({ data }: Props) {
  const rows = rankTimes(data.answer).sort((a, b) => b.cost_ns - a.cost_ns || a.rank - b.rank);
  const first = rows[0]!;
  const summary = (first.cost_ns > 0 ? `Rank ${first.rank} costs the job most: ${duration(first.cost_ns)} of each step.` : 'No rank costs the job more than the median rank does.') +
    (rows.length > DRAWN_RANKS ? ` Drawn: the first, the middle and the last of ${plural(rows.length, 'rank')}, by what they cost.` : ' By what they cost the job.');
  type Row = (typeof rows)[number];
  const stages = data.answer.stages.filter((row) => row.rank_ns.some((ns) => ns > 0)).map((row) => row.stage);
  return (
    <Figure<Row>
      id="ranks"
      title="A step of each rank, by stage"
      summary={summary}
      rows={rows}
      rowKey={(row) => String(row.rank)}
      sort="-cost_ns"
      search={['rank', 'host']}
      columns={[
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
        { key: 'host', title: 'Host', value: (row) => row.host },
        { key: 'cost_ns', title: 'Costs the job', help: 'A step', numeric: true, value: (row) => row.cost_ns, text: (row) => duration(row.cost_ns) },
        ...stages.map((stage): Column<Row> => ({
          key: `${stage}_ns`, title: stage, numeric: true, value: (row) => row.parts.find((part) => part.stage === stage)!.ns, text: (row) => duration(row.parts.find((part) => part.stage === stage)!.ns),
        })),
        { key: 'step_count', title: 'Steps', numeric: true, value: (row) => row.step_count },
        { key: 'lost_record_count', title: 'Lost records', numeric: true, value: (row) => row.lost_record_count },
      ]}
    >
      <Legend items={STAGE_KINDS} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({
          key: String(row.rank), label: `rank ${row.rank}`, text: row.cost_ns > 0 ? `costs ${duration(row.cost_ns)}` : '',
          parts: STAGE_KINDS.map(({ mark, label, stages: of }) => ({ mark, label, value: row.parts.reduce((sum, part) => ((of as readonly string[]).includes(part.stage) ? sum + part.ns : sum), 0) })),
        }))}
      />
    </Figure>
  );
}

function Costs({ answer }: { answer: StagesAnswer }) {
  const { ranks, windows } = answer;
  const share = (row: number, column: number) => (windows[column]!.ns > 0 ? windows[column]!.rank_cost_ns[row]! / windows[column]!.ns : 0);
  const values = useMemo(() => Float64Array.from({ length: ranks.length * windows.length }, (_, at) => share(Math.floor(at / windows.length), at % windows.length)), [answer]);
  const most = values.reduce((largest, value) => Math.max(largest, value), 0);
  const codes = useMemo(() => encode(values, 0, most, true), [values]);
  if (most === 0) return null;
  const at = values.indexOf(most);
  const summary = `By how much each window would have been shorter without what the rank takes longer than the median rank. Most: rank ${ranks[Math.floor(at / windows.length)]!.rank} in ${stepsText(windows[at % windows.length]!)}, ${percent(most)} of the time.`;
  const describe = (row: number, column: number) => `Rank ${ranks[row]!.rank}, ${stepsText(windows[column]!)}: ${values[row * windows.length + column] === 0 ? 'costs the job nothing' : `costs ${percent(values[row * windows.length + column]!)} of the time`}`;
  return (
    <Figure
      id="costs"
      title="What ranks cost the job, over steps"
      summary={summary}
      rows={windows.filter((window) => window.rank !== null)}
      rowKey={(row) => String(row.first_step)}
      sort="-cost_ns"
      columns={[
        { key: 'first_step', title: 'Steps', numeric: true, value: (row) => row.first_step, text: stepsText },
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
        { key: 'stage', title: 'In', value: (row) => row.stage },
        { key: 'cost_ns', title: 'Costs', numeric: true, value: (row) => row.cost_ns, text: (row) => duration(row.cost_ns) },
        { key: 'cost_ratio', title: 'Of the time', numeric: true, value: (row) => row.cost_ns / row.ns, text: (row) => percent(row.cost_ns / row.ns) },
      ]}
    >
      <GridView
        id="costs-grid"
        label={`What ranks cost the job, rank by step. ${summary}`}
        codes={codes}
        row_count={ranks.length}
        column_count={windows.length}
        rows={Uint32Array.from(ranks.keys())}
        columns={null}
        rowLabel={(row) => `rank ${ranks[row]!.rank}`}
        columnLabel={(column) => String(windows[column]!.first_step)}
        row_title=""
        column_title="step"
        valueText={(row, column) => percent(values[row * windows.length + column]!)}
        describe={describe}
        open_words=""
        scale={['0', percent(most), 'nothing']}
      />
    </Figure>
  );
}

function OverTime({ data }: Props) {
  const { windows, step_count, stages, changes } = data.answer;
  return (
    <>
      {changes.length > 0 && <Answer kind="warning" sentence={changes[0]!.sentence}>{changes.slice(1).map((change) => change.sentence).join(' ') || undefined}</Answer>}
      <StepsByStage windows={windows} step_count={step_count} names={stages.map((row) => row.stage)} />
      <Costs answer={data.answer} />
    </>
  );
}

function Steps({ data }: Props) {
  type Row = StagesAnswer['steps'][number];
  return (
    <DataTable<Row>
      id="steps"
      caption="Steps, those first in which one rank cost most"
      rows={data.answer.steps}
      rowKey={(row) => String(row.step)}
      sort="-cost_ns"
      search={['step', 'rank', 'stage']}
      columns={[
        { key: 'step', title: 'Step', numeric: true, value: (row) => row.step, text: (row) => String(row.step) },
        { key: 'ns', title: 'Took', numeric: true, value: (row) => row.ns, text: (row) => duration(row.ns) },
        { key: 'cost_ns', title: 'One rank cost', numeric: true, value: (row) => row.cost_ns, text: (row) => duration(row.cost_ns) },
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
        { key: 'stage', title: 'In', value: (row) => row.stage },
      ]}
    />
  );
}

function Groups({ data }: Props) {
  type Row = StagesAnswer['groups'][number];
  const longest = (row: Row) => Math.max(0, ...row.wait_ns) / Math.max(1, data.answer.step_count);
  return (
    <DataTable<Row>
      id="groups"
      caption="Process groups, those first in which a rank costs most"
      rows={data.answer.groups}
      rowKey={(row) => `${row.name} ${row.ranks.join()}`}
      sort="-cost_ratio"
      search={['name', 'ranks', 'stage']}
      columns={[
        { key: 'name', title: 'Group', value: (row) => row.name },
        { key: 'ranks', title: 'Ranks', value: (row) => rankList(row.ranks) },
        { key: 'wait_ns', title: 'Longest wait', help: 'Of the member that waits longest for this group, a step', numeric: true, value: longest, text: (row) => duration(longest(row)) },
        { key: 'rank', title: 'Costs most', numeric: true, value: (row) => row.rank },
        { key: 'stage', title: 'In', value: (row) => row.stage },
        { key: 'cost_ratio', title: 'That is', help: 'Of the group’s time', numeric: true, value: (row) => (row.total_ns > 0 ? row.cost_ns / row.total_ns : null), text: (row) => percent(row.total_ns > 0 ? row.cost_ns / row.total_ns : null) },
        { key: 'round_count', title: 'Rounds', numeric: true, value: (row) => row.round_count },
      ]}
    />
  );
}

function Memory({ data }: Props) {
  const { memory } = data.answer;
  const signals = (Object.keys(SIGNALS) as Signal[]).filter((signal) => data.memory_lines.some((line) => line.signal === signal));
  const [text, choose] = useParam('signal', signals[0] ?? 'resident');
  const signal = signals.find((each) => each === text) ?? signals[0];
  const lines = data.memory_lines.filter((line) => line.signal === signal);
  const peak = (of: Signal, title: string): Column<MemoryRank> => ({ key: `${of}_peak_bytes`, title, numeric: true, value: (row) => row[of]?.peak_bytes ?? null, text: (row) => bytes(row[of]?.peak_bytes ?? null) });
  const size = (key: 'device_bytes' | 'host_bytes', title: string): Column<MemoryRank> => ({ key, title, numeric: true, value: (row) => row[key], text: (row) => bytes(row[key]) });
  return (
    <>
      <Answer kind={memory.findings.length > 0 ? 'warning' : 'info'} sentence={memory.findings[0]?.sentence ?? 'No rank needs more memory than the others, and none’s grows.'}>
        {memory.findings.slice(1).map((finding) => finding.sentence).join(' ') || undefined}
      </Answer>
      {signals.length > 1 && <p class="choices"><Select label="Memory" value={signal!} onChange={choose} options={signals.map((value) => ({ value, label: SIGNALS[value] }))} /></p>}
      {signal && lines.length > 0 && (
        <SeriesOverTime
          key={signal}
          what={SIGNALS[signal]}
          kind="bytes"
          format={bytes}
          series={lines.map((line) => ({ key: String(line.rank), label: `rank ${line.rank}`, time_ns: line.time_ns, low: line.bytes, high: line.bytes }))}
        />
      )}
      <DataTable<MemoryRank>
        id="memory"
        caption="Memory at its most"
        rows={memory.ranks}
        rowKey={(row) => String(row.rank)}
        sort="-resident_peak_bytes"
        search={['rank']}
        columns={[
          { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
          peak('resident', 'Process'), peak('allocated', 'Allocated by PyTorch'), peak('reserved', 'Held by PyTorch'),
          size('device_bytes', 'Device has'), size('host_bytes', 'Host has'),
          { key: 'allocation_retry_count', title: 'Retries', help: 'Allocations that had to free memory first', numeric: true, value: (row) => row.allocation_retry_count },
        ]}
      />
    </>
  );
}

const NO_STEPS = 'The ranks share no step whose stages are known.';

const verdictView: View<StagesData> = {
  id: 'verdict',
  title: 'Verdict',
  shows: 'Which rank and which stage of the step cost the job time, why that is said, and what to do next.',
  group: 'Answer',
  component: Verdict,
};

const ranksView: View<StagesData> = {
  id: 'ranks',
  title: 'Ranks',
  shows: 'What each rank spends in each stage, and what it costs the job.',
  group: 'Why',
  missing: (data) => (data.answer.step_count === 0 || data.answer.ranks.length === 0 ? NO_STEPS : null),
  component: Ranks,
};

const groupsView: View<StagesData> = {
  id: 'groups',
  title: 'Process groups',
  shows: 'Which rank holds which process group up, counted by the ranks that wait for it.',
  group: 'Why',
  missing: (data) => (data.answer.groups.length === 0 ? 'All ranks meet as one: there are no groups to tell apart.' : null),
  component: Groups,
};

const overTimeView: View<StagesData> = {
  id: 'over-time',
  title: 'Steps over time',
  shows: 'When did steps grow slower, in which stage, and which rank cost the job time then?',
  group: 'Time',
  missing: (data) => (data.answer.windows.length === 0 ? NO_STEPS : null),
  component: OverTime,
};

const stepsView: View<StagesData> = {
  id: 'steps',
  title: 'Single steps',
  shows: 'Every step: how long it took, and which rank cost most in it.',
  group: 'Time',
  missing: (data) => (data.answer.steps.length === 0 ? NO_STEPS : null),
  component: Steps,
};

const memoryView: View<StagesData> = {
  id: 'memory',
  title: 'Memory',
  shows: 'Which rank needs more memory than the others, and whose memory grows through the run.',
  group: 'Work',
  missing: (data) => (data.answer.memory.ranks.length === 0 ? 'No memory was recorded.' : null),
  component: Memory,
};

export function stagesFacts(source: PageSource): readonly string[] {
  const { job, ranks, step_count, total_ns } = (source.document.data as unknown as StagesData).answer;
  const hosts = new Set(ranks.map((rank) => rank.host).filter(Boolean));
  return [
    job.world_size > ranks.length ? `${count(ranks.length)} of ${plural(job.world_size, 'rank')}` : plural(ranks.length, 'rank'),
    ...(hosts.size > 0 ? [hosts.size === 1 ? [...hosts][0]! : plural(hosts.size, 'host')] : []),
    ...(step_count > 0 ? [plural(step_count, 'step'), `${duration(total_ns / step_count)} a step`] : ['no steps']),
    ...Object.entries(job.workload).slice(0, 4).map(([key, value]) => `${key}=${value}`),
  ];
}

export const stagesViews = [verdictView, ranksView, groupsView, overTimeView, stepsView, memoryView, answerQualityView, answerTextView] as readonly View<unknown>[];
