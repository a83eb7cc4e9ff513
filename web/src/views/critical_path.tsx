import { useMemo } from 'preact/hooks';
import { useParam } from '../app/route';
import { PathLanes, type PathBar } from '../charts/path_lanes';
import { StackedColumns } from '../charts/stacked_columns';
import { StackedRows, type BarRow, type Part } from '../charts/stacked_rows';
import { categoryMark, longestStep, pathMissing, pathSlice, words, type CategoryTimes, type CriticalPathData, type PathCategory, type PathName, type PathSlice, type PathStep } from '../data/depth';
import type { AnalyzeData } from '../data/types';
import { count, duration, percent, plural, shortName } from '../numbers';
import { Answer } from '../parts/answer';
import { countColumn, hostColumn, rankColumn, timeColumn } from '../parts/columns';
import { Legend, Note, Select } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const MOST_LANES = 24;
const NAMES_DRAWN = 20;
/** A list of more is no choice. */
const MOST_OPTIONS = 400;

const LEGEND = [
  { mark: 'compute', label: 'compute' },
  { mark: 'communication', label: 'transfer (all members are there)' },
  { mark: 'memory', label: 'copies' },
  { mark: 'host', label: 'host' },
  { mark: 'series-5', label: 'data loading' },
  { mark: 'idle', label: 'launches, gaps, delays' },
];

function parts(path: CriticalPathData, times: CategoryTimes): Part[] {
  return path.kinds.flatMap((category) => (times[category] ? [{ mark: categoryMark(category), label: words(category), value: Math.max(0, times[category]!) }] : []));
}
const total = (row: { path_ns: number }, of: number) => (of > 0 ? row.path_ns / of : null);

const explained = (error_ns: number) => (error_ns === 0 ? 'to the nanosecond' : `to within ${duration(Math.abs(error_ns))}`);

/** A step in the address: "7", and "7.1" in the second trace. */
const stepName = (step: PathStep) => (step.window > 0 ? `${step.step}.${step.window}` : String(step.step));
const stepLabel = (step: PathStep) => (step.window > 0 ? `step ${step.step}, trace ${step.window + 1}` : `step ${step.step}`);

function ByRank({ data, path, slice, of }: { data: AnalyzeData; path: CriticalPathData; slice: PathSlice; of: string }) {
  type Row = PathSlice['ranks'][number];
  const on_path = slice.ranks.filter((row) => row.path_ns > 0);
  const tight = slice.ranks.filter((row) => row.path_ns === 0 && row.slack_ns !== null).sort((a, b) => a.slack_ns! - b.slack_ns!)[0];
  const first = on_path[0];
  const summary = first === undefined
    ? 'No rank has part in the path.'
    : `${plural(on_path.length, 'rank')} of ${count(slice.ranks.length)} ${on_path.length === 1 ? 'is' : 'are'} on the path of ${of}; ${rankLabel(data, first.rank_index)} is for ${percent(total(first, slice.path_ns))} of it. ` +
      (tight ? `Of those that are not, ${rankLabel(data, tight.rank_index)} has the least slack: ${duration(tight.slack_ns)} later, and it would hold the job up.` : 'Slack is how much later a rank could do its work before the step ended later.');
  const bars: BarRow[] = [
    { key: 'all', label: 'whole path', parts: parts(path, Object.fromEntries(slice.categories.map((row) => [row.category, row.path_ns]))), text: duration(slice.path_ns) },
    ...slice.ranks.map((row) => ({
      key: String(row.rank_index), label: rankLabel(data, row.rank_index), parts: parts(path, row.category_ns),
      text: row.path_ns > 0 ? `${duration(row.path_ns)}, ${percent(total(row, slice.path_ns))}` : row.slack_ns === null ? 'no work' : `slack ${duration(row.slack_ns)}`,
    })),
  ];
  return (
    <Figure
      id="path-ranks"
      title="By rank and category"
      summary={summary}
      columns={[
        rankColumn(data),
        hostColumn(data),
        timeColumn('path_ns', 'On the path'),
        { key: 'ratio', title: 'Share', numeric: true, value: (row) => total(row, slice.path_ns), text: (row) => percent(total(row, slice.path_ns)) },
        ...slice.categories.map(({ category }) => ({
          key: `${category}_ns`, title: words(category), numeric: true, value: (row: Row) => row.category_ns[category] ?? 0, text: (row: Row) => duration(row.category_ns[category] ?? 0),
        })),
        timeColumn('slack_ns', 'Least slack', 'How much later all of its work could be done before the step ended later'),
      ]}
      rows={slice.ranks}
      rowKey={(row) => String(row.rank_index)}
      sort="-path_ns"
      search={['rank', 'host']}
    >
      <Legend items={LEGEND} />
      <StackedRows kind="ns" format={duration} label={summary} rows={bars} />
    </Figure>
  );
}

interface Piece {
  rank_index: number;
  category: PathCategory;
  name: string;
  start_ns: number;
  duration_ns: number;
}

function InTime({ data, path, place }: { data: AnalyzeData; path: CriticalPathData; place: number }) {
  const step = path.steps[place]!;
  const pieces = useMemo<Piece[]>(
    () => path.pieces.filter((piece) => piece[0] === place).map(([, rank_index, kind, text, start_ns, duration_ns]) => ({ rank_index, category: path.kinds[kind]!, name: path.texts[text] ?? '', start_ns, duration_ns })),
    [path, place],
  );
  if (pieces.length === 0) return null;
  const ranks = [...new Set(pieces.map((piece) => piece.rank_index))];
  const sums = new Map<number, number>();
  for (const piece of pieces) sums.set(piece.rank_index, (sums.get(piece.rank_index) ?? 0) + piece.duration_ns);
  // Ranks with little of it share a lane.
  const kept = ranks.length <= MOST_LANES ? ranks : [...ranks].sort((a, b) => sums.get(b)! - sums.get(a)!).slice(0, MOST_LANES - 1);
  const lanes = [...kept].sort((a, b) => a - b);
  const bars: PathBar[] = pieces.map((piece) => ({
    lane: kept.includes(piece.rank_index) ? lanes.indexOf(piece.rank_index) : lanes.length, mark: categoryMark(piece.category), start_ns: piece.start_ns, duration_ns: piece.duration_ns,
    label: `${words(piece.category)}${piece.name ? `: ${shortName(piece.name)}` : ''}`,
  }));
  const changes = pieces.filter((piece, at) => at > 0 && piece.rank_index !== pieces[at - 1]!.rank_index).length;
  const last = pieces[pieces.length - 1]!;
  const drawn = pieces.reduce((sum, piece) => sum + piece.duration_ns, 0);
  const cut = path.pieces_per_step !== null && pieces.length >= path.pieces_per_step;
  const summary = `${stepLabel(step)} took ${duration(step.step_ns)}. ${changes === 0 ? `Its path stays on ${rankLabel(data, last.rank_index)}.` : `Its path goes from rank to rank ${changes === 1 ? 'once' : `${count(changes)} times`}, over ${plural(ranks.length, 'rank')}, and ends on ${rankLabel(data, last.rank_index)}.`}` +
    (cut ? ` The ${count(path.pieces_per_step)} longest stretches are drawn: ${percent(step.path_ns > 0 ? drawn / step.path_ns : null)} of the path.` : '') +
    (ranks.length > MOST_LANES ? ` The lowest line has the ${count(ranks.length - kept.length)} ranks with least of it.` : '');
  return (
    <Figure
      id="path-time"
      title={`The path through ${stepLabel(step)}`}
      summary={summary.charAt(0).toUpperCase() + summary.slice(1)}
      columns={[
        timeColumn('start_ns', 'From'),
        timeColumn('duration_ns', 'For'),
        rankColumn(data),
        { key: 'category', title: 'Category', value: (piece) => words(piece.category) },
        { key: 'name', title: 'Mostly', width: 60, value: (piece) => piece.name || null, text: (piece) => (piece.name ? shortName(piece.name) : '–') },
      ]}
      rows={pieces}
      rowKey={(piece) => `${piece.start_ns},${piece.rank_index}`}
      sort="start_ns"
      search={['rank', 'category', 'name']}
    >
      <Legend items={LEGEND} />
      <PathLanes
        lanes={[...lanes.map((rank) => rankLabel(data, rank)), ...(kept.length < ranks.length ? [`${count(ranks.length - kept.length)} others`] : [])]}
        bars={bars}
        span_ns={Math.max(step.step_ns, step.path_ns)}
        label={summary}
      />
    </Figure>
  );
}

function ByName({ path, slice, of }: { path: CriticalPathData; slice: PathSlice; of: string }) {
  const named = slice.names.filter((row) => row.name !== null);
  const drawn = named.slice(0, NAMES_DRAWN);
  const rest = slice.step === null ? path.rest_name_count : 0;
  const first = named[0];
  const summary = first === undefined
    ? 'Nothing on the path has a name.'
    : `${shortName(first.name!)} is the longest: ${duration(first.path_ns)} of ${of}, ${percent(total(first, slice.path_ns))}.` +
      (named.length > drawn.length ? ` ${count(drawn.length)} of ${count(named.length)} are drawn, the table has all.` : '') +
      (rest > 0 ? ` ${count(rest)} more names hold ${duration(slice.rest_ns)}.` : slice.rest_ns > 0 ? ` Smaller parts hold ${duration(slice.rest_ns)}.` : '');
  return (
    <Figure
      id="path-names"
      title="By operator, call and kernel"
      summary={summary}
      columns={[
        { key: 'name', title: 'Name', width: 70, value: (row: PathName) => row.name, text: (row) => (row.name === null ? 'outside all operations' : shortName(row.name)) },
        { key: 'category', title: 'Category', value: (row) => words(row.category) },
        timeColumn('path_ns', 'On the path'),
        { key: 'ratio', title: 'Share', numeric: true, value: (row) => total(row, slice.path_ns), text: (row) => percent(total(row, slice.path_ns)) },
        timeColumn('slack_ns', 'Least slack', 'Over all steps: how much longer it could take before a step ended later'),
      ]}
      rows={slice.names}
      rowKey={(row) => `${row.category} ${row.name ?? ''}`}
      sort="-path_ns"
      search={['name', 'category']}
    >
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={drawn.map((row, at) => ({
          key: String(at), label: shortName(row.name!), parts: [{ mark: categoryMark(row.category), label: words(row.category), value: row.path_ns }],
          text: `${duration(row.path_ns)}, ${percent(total(row, slice.path_ns))}`,
        }))}
      />
    </Figure>
  );
}

function ByStep({ path }: { path: CriticalPathData }) {
  if (path.steps.length < 2) return null;
  const worst = path.steps[longestStep(path)!]!;
  const summary = `Each step’s path by category. The longest, ${stepLabel(worst)}, takes ${duration(worst.step_ns)}` +
    (path.steps.length < path.step_count ? `; the ${count(path.steps.length)} longest of ${count(path.step_count)} steps are drawn.` : '.');
  const used = path.kinds.filter((category) => path.steps.some((step) => step.category_ns[category]));
  return (
    <Figure
      id="path-steps"
      title="Step by step"
      summary={summary}
      columns={[
        { key: 'step', title: 'Step', numeric: true, value: (step: PathStep) => step.step, text: stepName },
        timeColumn('step_ns', 'Step'),
        timeColumn('path_ns', 'Path'),
        ...used.map((category) => ({ key: `${category}_ns`, title: words(category), numeric: true, value: (step: PathStep) => step.category_ns[category] ?? 0, text: (step: PathStep) => duration(step.category_ns[category] ?? 0) })),
        countColumn('unmatched_count', 'Unmatched', 'Collectives that no other rank’s trace answers'),
      ]}
      rows={path.steps}
      rowKey={stepName}
      sort="-step_ns"
    >
      <Legend items={LEGEND} />
      <StackedColumns
        columns={path.steps.map((step) => ({
          key: stepName(step), label: stepLabel(step),
          parts: used.map((category) => ({ mark: categoryMark(category), label: words(category), value: Math.max(0, step.category_ns[category] ?? 0) })),
        }))}
        tick={(at) => stepName(path.steps[at]!)}
        xTitle="step"
        many="the longest of"
        kind="ns"
        format={duration}
        label={summary}
      />
    </Figure>
  );
}

function CriticalPath({ data }: ViewProps) {
  const path = data.critical_path!;
  const [chosen, choose] = useParam('step', '');
  const found = path.steps.findIndex((step) => stepName(step) === chosen);
  const place = found >= 0 ? found : null;
  const slice = useMemo(() => pathSlice(path, place), [path, place]);
  const shown = place ?? longestStep(path);
  const of = place === null ? (path.step_count > 1 ? 'a mean step' : 'the step') : stepLabel(path.steps[place]!);
  const top = slice.categories.slice(0, 3).map((row) => `${percent(total(row, slice.path_ns))} ${words(row.category)}`);
  const first = slice.ranks[0];
  const one = first !== undefined && first.path_ns > 0 ? ` ${percent(total(first, slice.path_ns))} of it is on ${rankLabel(data, first.rank_index)}.` : '';
  const longest = [...path.steps].sort((a, b) => b.step_ns - a.step_ns);
  const options = path.steps.length <= MOST_OPTIONS ? path.steps : longest.slice(0, MOST_OPTIONS);
  return (
    <>
      <Answer sentence={`The chain of work that fixes ${of} takes ${duration(slice.path_ns)}: ${top.join(', ')}.${one}`}>
        {place === null
          ? `${plural(path.step_count, 'step')}; the path explains each ${explained(path.largest_error_ns)}. Only what is on the path makes a step shorter.`
          : `The step took ${duration(slice.step!.step_ns)} as recorded; the path explains it ${explained(slice.step!.path_ns - slice.step!.step_ns)}.`}
      </Answer>
      {path.steps.length > 1 && (
        <p class="screen-only view-choice">
          <Select
            label="Step"
            value={place === null ? '' : chosen}
            onChange={choose}
            options={[{ value: '', label: 'mean of all' }, ...options.map((step) => ({ value: stepName(step), label: `${stepLabel(step).replace(/^step /, '')}: ${duration(step.step_ns)}${step === longest[0] ? ', the longest' : ''}` }))]}
          />
        </p>
      )}
      {slice.step !== null && slice.step.unmatched_count > 0 && <Note>{plural(slice.step.unmatched_count, 'collective')} of this step {slice.step.unmatched_count === 1 ? 'has' : 'have'} no answer in another rank’s trace: waiting there cannot be followed.</Note>}
      <ByRank data={data} path={path} slice={slice} of={of} />
      {shown !== null && <InTime data={data} path={path} place={shown} />}
      <ByName path={path} slice={slice} of={of} />
      <ByStep path={path} />
    </>
  );
}

export const criticalPathView: View = {
  id: 'critical-path',
  title: 'Critical path',
  shows: 'Which chain of work over all ranks fixes how long a step takes: what is not on it could take longer for nothing.',
  group: 'Why',
  missing: pathMissing,
  component: CriticalPath,
};
