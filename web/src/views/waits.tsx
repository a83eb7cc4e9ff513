import { useMemo } from 'preact/hooks';
import { href, useChoice } from '../app/route';
import { encode } from '../canvas/grid';
import { GridView } from '../canvas/grid_view';
import { StackedRows } from '../charts/stacked_rows';
import type { AnalyzeData, StragglerRow, WaitPair } from '../data/types';
import { count, duration, percent, plural } from '../numbers';
import { Choice } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const BARS = 40;

/** Victim × culprit over the ranks that have shared a collective; waits of the others are not measured. */
function matrixOf(data: AnalyzeData) {
  const stragglers = [...data.stragglers].sort((a, b) => a.rank_index - b.rank_index);
  const ranks = stragglers.map((row) => row.rank_index);
  const place = new Map(ranks.map((rank, at) => [rank, at]));
  const size = ranks.length;
  const values = new Float64Array(size * size);
  const counts = new Float64Array(size * size);
  const joined = new Uint8Array(size);
  stragglers.forEach((row, at) => (joined[at] = row.collective_count > 0 ? 1 : 0));
  for (let v = 0; v < size; ++v) for (let c = 0; c < size; ++c) if (!joined[v] || !joined[c]) values[v * size + c] = NaN;
  for (const pair of data.waits) {
    const v = place.get(pair.victim_rank_index);
    const c = place.get(pair.culprit_rank_index);
    if (v === undefined || c === undefined) continue;
    values[v * size + c] = pair.wait_ns;
    counts[v * size + c] = pair.count;
  }
  return { stragglers, ranks, size, values, counts };
}

function Matrix({ data }: { data: AnalyzeData }) {
  const [sort, setSort] = useChoice('sort', ['rank', 'value'] as const, 'rank');
  const { stragglers, ranks, size, values, counts } = useMemo(() => matrixOf(data), [data]);
  const most = data.waits.reduce((best, pair) => Math.max(best, pair.wait_ns), 0);
  const codes = useMemo(() => encode(values, 0, most, true), [values, most]);
  const [rows, columns] = useMemo(() => {
    const victims = Uint32Array.from({ length: size }, (_, i) => i);
    const culprits = victims.slice();
    if (sort === 'value') {
      victims.sort((a, b) => stragglers[b]!.wait_ns - stragglers[a]!.wait_ns || a - b);
      culprits.sort((a, b) => stragglers[b]!.wait_given_ns - stragglers[a]!.wait_given_ns || a - b);
    }
    return [victims, culprits];
  }, [data, sort]);
  const sorted = useMemo(() => [...data.waits].sort((a, b) => b.wait_ns - a.wait_ns), [data]);
  const total = data.waits.reduce((sum, pair) => sum + pair.wait_ns, 0);
  const worst = [...data.stragglers].sort((a, b) => b.wait_given_ns - a.wait_given_ns)[0];
  const summary = sorted.length === 0 || worst === undefined
    ? 'No rank waited for another one by more than the clocks can tell.'
    : `${duration(total)} of waiting in all, over ${plural(size, 'rank')}. Most of it for ${rankLabel(data, worst.rank_index)}: ${duration(worst.wait_given_ns)}, ` +
      `${percent(total > 0 ? worst.wait_given_ns / total : null)}. Longest pair: ${rankLabel(data, sorted[0]!.victim_rank_index)} waited ${duration(sorted[0]!.wait_ns)} for ${rankLabel(data, sorted[0]!.culprit_rank_index)}.`;
  const name = (at: number) => rankLabel(data, ranks[at]!);
  return (
    <Figure
      id="waits"
      title="Who waits for whom"
      summary={summary}
      controls={<Choice name="waits-sort" label="Sort" value={sort} onChange={setSort} options={[{ value: 'rank', label: 'rank' }, { value: 'value', label: 'waiting' }]} />}
      columns={[
        { key: 'victim', title: 'Waits', value: (pair: WaitPair) => rankLabel(data, pair.victim_rank_index) },
        { key: 'culprit', title: 'For', value: (pair) => rankLabel(data, pair.culprit_rank_index) },
        { key: 'wait_ns', title: 'Time', numeric: true, value: (pair) => pair.wait_ns, text: (pair) => duration(pair.wait_ns) },
        { key: 'count', title: 'Collectives', numeric: true, value: (pair) => pair.count },
        { key: 'mean_wait_ns', title: 'Each', numeric: true, value: (pair) => (pair.count > 0 ? pair.wait_ns / pair.count : null), text: (pair) => duration(pair.count > 0 ? pair.wait_ns / pair.count : null) },
      ]}
      rows={sorted}
      rowKey={(pair) => `${pair.victim_rank_index},${pair.culprit_rank_index}`}
      sort="-wait_ns"
      search={['victim', 'culprit']}
    >
      <GridView
        id="wait-matrix"
        label={`Matrix of waiting: a row for each rank that waits, a column for each it waits for. ${summary}`}
        codes={codes}
        row_count={size}
        column_count={size}
        rows={rows}
        columns={columns}
        rowLabel={name}
        columnLabel={(at) => String(data.ranks[ranks[at]!]?.rank ?? '?')}
        row_title="waits"
        column_title="for rank (the last to arrive)"
        valueText={(victim, culprit) => duration(values[victim * size + culprit])}
        describe={(victim, culprit) => {
          if (victim === culprit) return `${name(victim)} does not wait for itself`;
          const wait = values[victim * size + culprit]!;
          if (Number.isNaN(wait)) return `${name(victim)} and ${name(culprit)}: not measured, one of them shares no collective with others`;
          return wait === 0
            ? `${name(victim)} never waited for ${name(culprit)}`
            : `${name(victim)} waited ${duration(wait)} for ${name(culprit)}, in ${plural(counts[victim * size + culprit]!, 'collective')}`;
        }}
        onOpen={data.collective_count > 0 ? (_victim, culprit) => void (location.hash = href('waterfall', { last: ranks[culprit]! })) : undefined}
        open_words="opens the collectives that wait for this rank"
        scale={['0', duration(most), 'no waiting']}
      />
    </Figure>
  );
}

/** What the first causes of waiting say of a rank that comes late. */
function lateWords(row: StragglerRow): string {
  if (row.last_count === 0) return '';
  if (row.role === 'none') return 'not named';
  return row.role === 'passes_on' ? 'passes it on' : row.chronic ? 'straggler, chronic' : 'straggler, at times';
}

function LastArrivals({ data }: { data: AnalyzeData }) {
  const rows = useMemo(() => [...data.stragglers].sort((a, b) => b.last_ratio - a.last_ratio || b.wait_given_ns - a.wait_given_ns), [data]);
  const known = rows.filter((row) => row.collective_count > 0);
  const first = known[0];
  const fair = known.length > 0 ? 1 / known.length : 0;
  const summary = first === undefined
    ? 'No rank shares a collective with others.'
    : `Share of its collectives that a rank enters last, by more than the clocks’ uncertainty. ${rankLabel(data, first.rank_index)}: ${percent(first.last_ratio)} (${count(first.last_count)} of ${count(first.collective_count)}); ` +
      `by chance alone, each rank would have at most ${percent(fair)}.` + (rows.length > BARS ? ` The ${BARS} highest are drawn, all are in the table.` : '');
  return (
    <Figure
      id="last"
      title="Last to arrive"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (row: StragglerRow) => rankLabel(data, row.rank_index) },
        { key: 'host', title: 'Host', value: (row) => data.ranks[row.rank_index]?.host ?? null },
        { key: 'last_ratio', title: 'Last', numeric: true, value: (row) => (row.collective_count > 0 ? row.last_ratio : null), text: (row) => percent(row.collective_count > 0 ? row.last_ratio : null) },
        { key: 'last_count', title: 'Times', numeric: true, value: (row) => row.last_count },
        { key: 'collective_count', title: 'Collectives', numeric: true, value: (row) => row.collective_count },
        { key: 'wait_given_ns', title: 'Made others wait', numeric: true, value: (row) => row.wait_given_ns, text: (row) => duration(row.wait_given_ns) },
        { key: 'wait_ns', title: 'Waited', numeric: true, value: (row) => row.wait_ns, text: (row) => duration(row.wait_ns) },
        { key: 'role', title: 'Late', value: (row) => lateWords(row) },
      ]}
      rows={rows}
      rowKey={(row) => String(row.rank_index)}
      sort="-last_ratio"
      search={['rank', 'host']}
    >
      <StackedRows
        kind="ratio"
        format={percent}
        label={summary}
        rows={rows.slice(0, BARS).map((row) => ({
          key: String(row.rank_index), label: rankLabel(data, row.rank_index),
          parts: row.collective_count > 0 ? [{ mark: 'communication', label: 'last to arrive', value: row.last_ratio }] : null,
          text: row.collective_count > 0 ? `${percent(row.last_ratio)}${row.last_count > 0 ? `, ${lateWords(row)}` : ''}` : 'not measured',
        }))}
      />
    </Figure>
  );
}

function Waits({ data }: ViewProps) {
  return (
    <>
      <Matrix data={data} />
      <LastArrivals data={data} />
    </>
  );
}

export const waitsView: View = {
  id: 'waits',
  title: 'Who waits for whom',
  shows: 'Which rank makes which others wait in collectives, and how often each rank is the last to arrive.',
  group: 'Communication',
  missing: (data) => (data.stragglers.length < 2 || data.stragglers.every((row) => row.collective_count === 0)
    ? 'No collective was recorded on two ranks, so waiting between ranks is not known.' : null),
  component: Waits,
};
