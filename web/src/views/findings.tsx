import { useContext } from 'preact/hooks';
import { causesMissing } from '../data/depth';
import type { AnalyzeData, Finding } from '../data/types';
import { Legend, Note, Waiting } from '../parts/controls';
import { Figure } from '../parts/figure';
import { StackedRows } from '../charts/stacked_rows';
import { capital, duration, percent, plural, rankList } from '../numbers';
import { href, ViewContext } from '../app/route';
import { mean, measured, rankLabel, TIME_LEGEND, timeParts, useRankTimes, type RankTimes } from './ranks';
import type { View, ViewProps } from '../view';

/** Rows of single ranks that fit below the mean without scrolling. */
const MOST_DRAWN = 8;
const SEVERITY: Record<Finding['severity'], string> = { critical: 'Critical', warning: 'Warning', info: 'Note' };

/** Where the evidence of a finding is to be seen, by the words of its id. */
const EVIDENCE: readonly [RegExp, readonly (readonly [string, string])[]][] = [
  [/straggler|late_start|spread_waiting|slow_link/, [['causes', 'Causes of waiting'], ['waits', 'Who waits for whom']]],
  [/pipeline|bubble|gather|bucket|gradient|mfu|flops/, [['groups', 'Groups and use of devices']]],
  [/overlap|exposed/, [['overlap', 'Overlap']]],
  [/memory_imbalance|memory|fragment/, [['memory', 'Memory']]],
  [/imbalance|uneven/, [['imbalance', 'Imbalance']]],
  [/host|idle|launch|input|loader|small|short/, [['idle', 'Idle time']]],
  [/bandwidth/, [['bandwidth', 'Bandwidth']]],
  [/missing|clock|coverage|no_device|partial|data/, [['quality', 'Data quality']]],
];

/** A view without anything to show is no evidence: a pass may not have run. */
function evidenceOf(data: AnalyzeData, finding: Finding): readonly (readonly [string, string])[] {
  // What is known of an operation trace is all in one view.
  if (data.what_if?.study || data.bubbles) return [['what-if', 'What if']];
  const found = EVIDENCE.find(([pattern]) => pattern.test(finding.id))?.[1] ?? [];
  return found.filter(([view]) => view !== 'causes' || causesMissing(data) === null);
}

function Gain({ ns, share }: { ns: number; share: number | null }) {
  return (
    <p class="gain">
      <span class="gain-number">{duration(ns)}</span>
      <span class="gain-words">less a step{share !== null && <>, {percent(share)}</>}</span>
      {share !== null && (
        <svg class="gain-bar" width="120" height="8" aria-hidden="true">
          <rect class="gain-whole" width="120" height="8" rx="2" />
          <rect class="gain-part" width={Math.max(2, 120 * share)} height="8" rx="2" />
        </svg>
      )}
    </p>
  );
}

function Card({ data, finding, place }: { data: AnalyzeData; finding: Finding; place: number }) {
  const { ids } = useContext(ViewContext);
  const evidence = evidenceOf(data, finding).filter(([view]) => ids.includes(view));
  return (
    <li class={`finding ${finding.severity}`}>
      <div class="finding-head">
        <div>
          <p class="severity">{place}. {SEVERITY[finding.severity]}{finding.ranks.length > 0 && <span class="muted"> · {rankList(finding.ranks)}</span>}</p>
          <h3>{finding.title}</h3>
        </div>
        {finding.gain_ns_per_step !== null && finding.gain_ns_per_step > 0 && <Gain ns={finding.gain_ns_per_step} share={finding.gain_ratio} />}
      </div>
      <div class="finding-body">
        <div>
          <h4>Why</h4>
          <ul>{finding.evidence.map((each) => <li key={each.name}>{each.text}</li>)}</ul>
          {evidence.length > 0 && <p>See: {evidence.map(([view, title], at) => <>{at > 0 && ', '}<a href={href(view)}>{title}</a></>)}</p>}
        </div>
        <div>
          <h4>Next step</h4>
          <ul>{finding.advice.map((advice) => <li key={advice}>{advice}</li>)}</ul>
        </div>
      </div>
    </li>
  );
}

function WhereTheTimeGoes({ data, times }: { data: AnalyzeData; times: RankTimes }) {
  const { words } = times;
  const rows = times.rows.filter(measured);
  if (rows.length === 0) return null;
  const average = {
    compute_ns: mean(rows.map((row) => row.compute_ns)),
    exposed_communication_ns: mean(rows.map((row) => row.exposed_communication_ns)),
    exposed_memory_ns: mean(rows.map((row) => row.exposed_memory_ns)),
    idle_ns: mean(rows.map((row) => row.idle_ns)),
  };
  const parts = timeParts(average);
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  const communication = rows.reduce((sum, row) => sum + row.communication_ns, 0);
  const hidden = rows.reduce((sum, row) => sum + row.overlapped_communication_ns, 0);
  const singles = drawn(data, times);
  const summary =
    `${duration(total)} ${words}, mean of ${plural(rows.length, 'rank')}: ` +
    parts.filter((part) => part.value > 0).map((part) => `${part.label} ${percent(part.value / total)}`).join(', ') +
    (communication > 0 ? `. ${percent(hidden / communication)} of the communication is hidden under compute.` : '.') +
    (singles.length > 0 && singles.length < rows.length ? ` Drawn: the mean, and ${singles.length} of ${plural(rows.length, 'rank')}, those that the findings name.` : '');
  return (
    <Figure
      id="time"
      title="Where the time goes"
      summary={summary}
      columns={[
        { key: 'part', title: 'Part', value: (part) => part.label },
        { key: 'ns', title: 'Time', numeric: true, value: (part) => part.value, text: (part) => duration(part.value) },
        { key: 'ratio', title: 'Share', numeric: true, value: (part) => part.value / total, text: (part) => percent(part.value / total) },
      ]}
      rows={parts}
      rowKey={(part) => part.label}
    >
      <Legend items={TIME_LEGEND} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={[
          { key: 'mean', label: 'mean', parts, text: duration(total) },
          ...singles.map((row) => ({
            key: String(row.rank_index), label: rankLabel(data, row.rank_index), parts: timeParts(row),
            text: duration(row.span_ns),
          })),
        ]}
      />
    </Figure>
  );
}

/** All ranks where they are few, else those that the first findings name, at most three. */
function drawn(data: AnalyzeData, times: RankTimes) {
  const known = times.rows.filter(measured);
  if (known.length < 2) return [];
  if (known.length <= MOST_DRAWN) return known;
  const named = [...new Set(data.findings.filter((finding) => finding.gain_ns_per_step !== null).flatMap((finding) => finding.ranks.slice(0, 1)))].slice(0, 3);
  return named
    .map((rank) => times.rows.find((row) => data.ranks[row.rank_index]?.rank === rank && measured(row)))
    .filter((row) => row !== undefined);
}

function Findings({ data, source }: ViewProps) {
  const times = useRankTimes(source, data);
  const first = data.findings[0];
  return (
    <>
      <section class={`verdict ${first?.severity ?? 'info'}`} aria-label="Verdict">
        {data.verdict.map(({ title, gain }) => <p key={title}>{title}{gain !== null && <span class="verdict-gain">{capital(gain)}</span>}</p>)}
      </section>
      {times.loading ? <Waiting what="the steps" /> : <WhereTheTimeGoes data={data} times={times} />}
      <section aria-labelledby="findings-heading">
        <h3 id="findings-heading" class="section-title">Findings</h3>
        {data.findings.length === 0 && <Note>Nothing stands out: no rule found a loss worth naming.</Note>}
        <ol class="findings">
          {data.findings.map((finding, at) => <Card key={finding.id + at} data={data} finding={finding} place={at + 1} />)}
        </ol>
      </section>
    </>
  );
}

export const findingsView: View = {
  id: 'verdict',
  title: 'Verdict and findings',
  shows: 'What is wrong with this run, what it costs, and what to do about it; largest gain first.',
  group: 'Answer',
  component: Findings,
};
