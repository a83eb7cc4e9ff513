import { useMemo } from 'preact/hooks';
import { useNumberParam } from '../app/route';
import { MarkGrid } from '../charts/mark_grid';
import { StackedRows } from '../charts/stacked_rows';
import { WaitChain } from '../charts/wait_chain';
import { causesMissing, WAIT_KIND_LABELS, WAIT_KINDS, waitsByRank, words, type RootCause, type WaitHop, type WaitStatesData } from '../data/depth';
import type { AnalyzeData } from '../data/types';
import { capital, count, duration, percent, plural, rankList, shortName } from '../numbers';
import { Answer } from '../parts/answer';
import { countColumn, hostColumn, rankColumn, shareColumn, timeColumn } from '../parts/columns';
import { Legend, Note, Select } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const CAUSES_DRAWN = 20;
const WHEN_DRAWN = 12;

const KIND_MARKS: Record<string, string> = { wait_at_collective: 'communication', late_sender: 'wait', late_receiver: 'host' };

/** "rank 2", and of a slow link the ranks among which it lies. */
function whose(data: AnalyzeData, cause: RootCause): string {
  if (cause.rank_index !== null) return rankLabel(data, cause.rank_index);
  const listed = rankList(cause.rank_indices.map((index) => data.ranks[index]?.rank ?? -1), 3);
  return cause.rank_count > cause.rank_indices.length ? `${listed} and more` : listed;
}
const causeName = (data: AnalyzeData, cause: RootCause) => `${whose(data, cause)}: ${words(cause.cause)}`;
const waited = (cause: RootCause) => cause.direct_wait_ns + cause.propagated_wait_ns;

function First({ data, waits }: { data: AnalyzeData; waits: WaitStatesData }) {
  const causes = waits.causes;
  const drawn = causes.slice(0, CAUSES_DRAWN);
  const known = causes.reduce((sum, cause) => sum + cause.wait_ratio, 0);
  const summary = `${plural(waits.cause_count, 'cause')} ${waits.cause_count === 1 ? 'explains' : 'explain'} ${percent(Math.min(1, known))} of ${duration(waits.wait_ns)} of waiting. Filled: waiting for the rank itself. Hatched: waiting for other ranks that were late because they had waited for it.` +
    (causes.length > drawn.length ? ` The ${CAUSES_DRAWN} largest are drawn, the table has ${waits.cause_count > causes.length ? count(causes.length) : 'all'}.` : '') +
    (waits.rest_causes_ns > 0 ? ` ${count(waits.cause_count - causes.length)} more are not on this page; they hold ${duration(waits.rest_causes_ns)}.` : '');
  return (
    <Figure
      id="causes"
      title="First causes of waiting"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (cause: RootCause) => whose(data, cause) },
        { key: 'cause', title: 'Cause', value: (cause) => words(cause.cause) },
        { key: 'name', title: 'What', width: 44, value: (cause) => cause.name, text: (cause) => (cause.name === null ? '–' : shortName(cause.name)) },
        timeColumn('direct_wait_ns', 'Direct'),
        timeColumn('propagated_wait_ns', 'Passed on'),
        shareColumn('wait_ratio', 'Share'),
        { key: 'pattern', title: 'When', value: (cause) => cause.pattern, text: (cause) => cause.pattern_text },
        timeColumn('own_ns', 'Took', 'In the worst stretch'),
        timeColumn('peers_ns', 'Peers', 'Median of the peers in the same stretch'),
        timeColumn('delay_ns', 'Lost by it'),
        countColumn('collective_count', 'Collectives'),
      ]}
      rows={causes}
      rowKey={(cause) => String(causes.indexOf(cause))}
      sort="-wait_ratio"
      search={['rank', 'cause', 'name']}
    >
      <Legend items={[{ mark: 'communication', label: 'waiting for that rank itself' }, { mark: 'wait', label: 'passed on by ranks that waited' }]} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={drawn.map((cause, at) => ({
          key: String(at), label: causeName(data, cause),
          parts: [
            { mark: 'communication', label: 'waiting for that rank itself', value: cause.direct_wait_ns },
            { mark: 'wait', label: 'passed on', value: cause.propagated_wait_ns },
          ],
          text: `${duration(waited(cause))}, ${percent(cause.wait_ratio)}`,
        }))}
      />
    </Figure>
  );
}

function When({ data, waits }: { data: AnalyzeData; waits: WaitStatesData }) {
  const drawn = waits.causes.slice(0, WHEN_DRAWN);
  const steps = useMemo(() => {
    const known = new Set<number>(data.step_matrix?.step_numbers ?? []);
    for (const cause of waits.causes) for (const step of cause.steps) known.add(step);
    return [...known].sort((a, b) => a - b);
  }, [data, waits]);
  if (steps.length < 2 || drawn.every((cause) => cause.steps.length === 0)) return null;
  const place = new Map(steps.map((step, at) => [step, at]));
  const counts = (pattern: RootCause['pattern']) => waits.causes.filter((cause) => cause.pattern === pattern).length;
  const told = (['chronic', 'periodic', 'one_off', 'irregular'] as const).filter((pattern) => counts(pattern) > 0).map((pattern) => `${count(counts(pattern))} ${pattern === 'one_off' ? 'one-off' : pattern}`);
  const summary = `In which steps each cause showed, of ${count(steps.length)}: ${told.join(', ')}. Chronic is in more than half of the steps, periodic every k-th and no other, one-off in a single one.` +
    (waits.causes.length > drawn.length ? ` The ${WHEN_DRAWN} largest are drawn.` : '');
  return (
    <Figure
      id="when"
      title="When it happens"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (cause: RootCause) => whose(data, cause) },
        { key: 'cause', title: 'Cause', value: (cause) => words(cause.cause) },
        { key: 'pattern', title: 'Pattern', value: (cause) => words(cause.pattern) },
        countColumn('period_steps', 'Every … steps'),
        countColumn('late_step_count', 'Steps with it'),
        countColumn('step_count', 'Steps'),
        { key: 'steps', title: 'Which', width: 40, value: (cause) => cause.steps.join(' ') + (cause.late_step_count > cause.steps.length ? ' …' : '') },
      ]}
      rows={waits.causes}
      rowKey={(cause) => String(waits.causes.indexOf(cause))}
      search={['rank', 'cause', 'pattern']}
    >
      <MarkGrid
        rows={drawn.map((cause, at) => ({
          key: String(at), label: causeName(data, cause), mark: 'communication', text: cause.pattern_text,
          at: cause.steps.map((step) => place.get(step)!),
        }))}
        column_count={steps.length}
        tick={(column) => String(steps[column])}
        xTitle="step"
        label={summary}
      />
    </Figure>
  );
}

function Chains({ data, waits }: { data: AnalyzeData; waits: WaitStatesData }) {
  const [wanted, choose] = useNumberParam('cause');
  const with_chains = waits.causes.map((cause, at) => ({ cause, at })).filter(({ cause }) => cause.chains.length > 0);
  if (with_chains.length === 0) return null;
  const chosen = with_chains.find(({ at }) => at === wanted) ?? with_chains[0]!;
  const { cause } = chosen;
  const chains = cause.chains;
  const longest = [...chains].sort((a, b) => b.hops.length - a.hops.length)[0]!;
  const rows = chains.flatMap((chain, at) => chain.hops.map((hop, place) => ({ chain: at + 1, place: place + 1, victim: rankLabel(data, chain.rank_index), wait_ns: chain.wait_ns, hop })));
  const node = (rank: number) => `rank ${rank}`;
  const where = (hop: WaitHop) => `${hop.name} ${hop.sequence} of ${hop.group || 'a group'}`;
  return (
    <Figure
      id="chains"
      title="How it reached others"
      summary={`${capital(longest.text)}. Arrows go from who waited to who was waited for; the last box is where it began. The worst wait of each rank is drawn, the largest first.`}
      controls={with_chains.length > 1 && (
        <Select
          label="Cause"
          value={String(chosen.at)}
          onChange={(value) => choose(value === String(with_chains[0]!.at) ? null : Number(value))}
          options={with_chains.map(({ cause: each, at }) => ({ value: String(at), label: `${at + 1}. ${causeName(data, each)}` }))}
        />
      )}
      columns={[
        countColumn('chain', 'Chain'),
        { key: 'link', title: 'Link', numeric: true, value: (row) => row.place },
        { key: 'waits', title: 'Waits', value: (row) => node(row.hop.rank) },
        { key: 'for', title: 'For', value: (row) => node(row.hop.late_rank) },
        { key: 'wait_ns', title: 'There', numeric: true, value: (row) => row.hop.wait_ns, text: (row) => duration(row.hop.wait_ns) },
        { key: 'name', title: 'Operation', value: (row) => row.hop.name },
        { key: 'sequence', title: 'Number', numeric: true, value: (row) => row.hop.sequence },
        { key: 'group', title: 'Group', width: 30, value: (row) => row.hop.group || null },
        { key: 'victim_wait_ns', title: 'In all', numeric: true, value: (row) => row.wait_ns, text: (row) => duration(row.wait_ns), help: 'All waiting of the chain’s rank that goes back to the cause' },
      ]}
      rows={rows}
      rowKey={(row) => `${row.chain}.${row.place}`}
    >
      {chains.map((chain, at) => (
        <WaitChain
          key={at}
          first={node(chain.hops[0]!.rank)}
          links={chain.hops.map((hop) => ({ node: node(hop.late_rank), wait: duration(hop.wait_ns), where: where(hop) }))}
          label={capital(chain.text)}
        />
      ))}
    </Figure>
  );
}

function States({ data, waits }: { data: AnalyzeData; waits: WaitStatesData }) {
  const rows = useMemo(() => waitsByRank(waits), [waits]);
  const used = WAIT_KINDS.filter((kind) => rows.some((row) => row.kinds.has(kind)));
  const first = rows[0]!;
  const summary = `${duration(waits.wait_ns)} of waiting in all, over ${plural(rows.length, 'rank')}: ` +
    used.map((kind) => `${duration(rows.reduce((sum, row) => sum + (row.kinds.get(kind) ?? 0), 0))} ${WAIT_KIND_LABELS[kind]}`).join('; ') +
    `. ${capital(rankLabel(data, first.rank_index))} waits most: ${duration(first.wait_ns)}.`;
  return (
    <Figure
      id="states"
      title="Wait states by rank"
      summary={summary}
      columns={[
        rankColumn(data),
        hostColumn(data),
        timeColumn('wait_ns', 'Waits'),
        countColumn('count', 'Times'),
        ...used.map((kind) => ({ key: `${kind}_ns`, title: capital(words(kind)), numeric: true, value: (row: (typeof rows)[number]) => row.kinds.get(kind) ?? 0, text: (row: (typeof rows)[number]) => duration(row.kinds.get(kind) ?? 0) })),
      ]}
      rows={rows}
      rowKey={(row) => String(row.rank_index)}
      sort="-wait_ns"
      search={['rank', 'host']}
    >
      <Legend items={used.map((kind) => ({ mark: KIND_MARKS[kind]!, label: WAIT_KIND_LABELS[kind]! }))} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({
          key: String(row.rank_index), label: rankLabel(data, row.rank_index), text: duration(row.wait_ns),
          parts: used.map((kind) => ({ mark: KIND_MARKS[kind]!, label: WAIT_KIND_LABELS[kind]!, value: row.kinds.get(kind) ?? 0 })),
        }))}
      />
    </Figure>
  );
}

function Causes({ data }: ViewProps) {
  const waits = data.wait_states!;
  const first = waits.causes[0];
  const named = waits.culprits[0];
  return (
    <>
      {first === undefined ? (
        <Answer sentence={waits.text} />
      ) : (
        <Answer kind={named === undefined ? 'info' : named.wait_ratio >= 0.5 ? 'critical' : 'warning'} sentence={waits.text}>
          {named === undefined ? <>The largest cause: {first.text}. {capital(first.pattern_text)}. It</> : 'The largest cause'} cost others {duration(waited(first))} of waiting, in {plural(first.collective_count, 'collective')}{first.delay_ns > 0 && <>; the rank itself lost {duration(first.delay_ns)} by it</>}.
        </Answer>
      )}
      {first !== undefined && <First data={data} waits={waits} />}
      {first !== undefined && <Chains data={data} waits={waits} />}
      {first !== undefined && <When data={data} waits={waits} />}
      {first === undefined && <Note>What is left is waiting without a single cause; every job has a little of it.</Note>}
      <States data={data} waits={waits} />
    </>
  );
}

export const causesView: View = {
  id: 'causes',
  title: 'Causes of waiting',
  shows: 'What made ranks wait first of all, from whom to whom it was passed on, and whether it happens in every step, now and then, or once.',
  group: 'Why',
  missing: causesMissing,
  component: Causes,
};
