import { useEffect, useMemo, useState } from 'preact/hooks';
import { begin } from '../app/pending';
import { useChoice } from '../app/route';
import { meanShares } from '../canvas/lod';
import type { TimeWindow } from '../canvas/window';
import { StackedRows } from '../charts/stacked_rows';
import { CLASS_LABELS } from '../colors';
import { addSums, type NameSum } from '../data/span_sums';
import { TIMELINE_CLASSES, type AnalyzeData, type PageSource, type TimelineLevel, type TrackEvents } from '../data/types';
import { capital, count, duration, percent, plural } from '../numbers';
import { Choice, Legend } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import { rankLabel } from './ranks';

const LANES: Record<TrackEvents['lane'], string> = {
  device: 'device', device_annotation: 'annotation of a device', operators: 'operators', runtime: 'runtime call', python: 'Python', other: 'other',
};

/** Sums of the events of `ranks` in the stretch, rank after rank; null for those that are not done. */
function useSums(source: PageSource, names: readonly string[], ranks: readonly number[], span: TimeWindow): { rows: NameSum[]; done: number } {
  const [state, setState] = useState<{ rows: NameSum[]; done: number }>({ rows: [], done: 0 });
  const key = `${ranks.join(',')} ${span.start_ns} ${span.end_ns}`;
  useEffect(() => {
    let stopped = false;
    const sums = new Map<string, NameSum>();
    setState({ rows: [], done: 0 });
    const busy = begin();
    void (async () => {
      for (let at = 0; at < ranks.length && !stopped; ++at) {
        const tracks = await source.events(ranks[at]!).catch(() => null);
        if (stopped) break;
        if (tracks) addSums(sums, ranks[at]!, tracks, names, span.start_ns, span.end_ns);
        setState({ rows: [...sums.values()], done: at + 1 });
      }
      busy();
    })();
    return () => {
      stopped = true;
    };
  }, [source, names, key]);
  return state;
}

/** Who did what for how long in a stretch of time: classes by rank, and names. `marked`: chosen by the reader, else it is what is in view. */
export function SpanSums({ data, source, levels, names, ranks, row, span, marked, has_events }: {
  data: AnalyzeData; source: PageSource; levels: readonly TimelineLevel[]; names: readonly string[]; ranks: readonly number[]; row: number; span: TimeWindow; marked: boolean; has_events: boolean;
}) {
  const [of, setOf] = useChoice('sums', ['rank', 'all'] as const, 'rank');
  const summed = useMemo(() => (!has_events ? [] : of === 'all' ? ranks : [row]), [of, ranks, row, has_events]);
  const { rows, done } = useSums(source, names, summed, span);
  const long = span.end_ns - span.start_ns;
  const where = marked ? 'the marked span' : 'what is in view';
  const by_rank = useMemo(() => ranks.map((rank_index) => ({ rank_index, shares: meanShares(levels, rank_index, span.start_ns, span.end_ns) })), [ranks, levels, span.start_ns, span.end_ns]);
  const classes = TIMELINE_CLASSES.flatMap((name, k) => (by_rank.some((each) => each.shares[k]! > 0) ? [{ name, k }] : []));
  // The host's time runs beside the device's: on top of it, bars would be longer than the span.
  const stacked = classes.length > 1 ? classes.filter(({ name }) => name !== 'host') : classes;
  const summary = `${capital(where)}: ${duration(long)} from ${duration(span.start_ns)} on, ${plural(ranks.length, 'rank')}. ` +
    (classes.length > 0 ? `Mean: ${classes.map(({ name, k }) => `${CLASS_LABELS[name]} ${percent(by_rank.reduce((sum, each) => sum + each.shares[k]!, 0) / by_rank.length)}`).join(', ')}.` : 'Nothing was recorded in it.');
  return (
    <>
      {marked && (
        <Figure
          id="span"
          title="The marked span, rank by rank"
          summary={summary}
          columns={[
            { key: 'rank', title: 'Rank', value: (each) => rankLabel(data, each.rank_index) },
            ...classes.map(({ name, k }) => ({
              key: `${name}_ns`, title: capital(CLASS_LABELS[name]), numeric: true, value: (each: (typeof by_rank)[number]) => each.shares[k]! * long, text: (each: (typeof by_rank)[number]) => duration(each.shares[k]! * long),
            })),
          ]}
          rows={by_rank}
          rowKey={(each) => String(each.rank_index)}
          search={['rank']}
        >
          <Legend items={stacked.map(({ name }) => ({ mark: name, label: CLASS_LABELS[name] }))} />
          <StackedRows
            kind="ns"
            format={duration}
            label={summary}
            rows={by_rank.map((each) => ({
              key: String(each.rank_index), label: rankLabel(data, each.rank_index),
              parts: stacked.map(({ name, k }) => ({ mark: name, label: CLASS_LABELS[name], value: each.shares[k]! * long })),
            }))}
          />
        </Figure>
      )}
      {has_events && (
        <>
          <p class="choices">
            <Choice name="sums-of" label="Sums of" value={of} onChange={setOf} options={[{ value: 'rank', label: rankLabel(data, row) }, { value: 'all', label: ranks.length === 1 ? 'all' : `all ${count(ranks.length)} ranks` }]} />
          </p>
          <DataTable<NameSum>
            id="sums"
            caption={`Names in ${where}${done < summed.length ? ` (${count(done)} of ${plural(summed.length, 'rank')} so far)` : ''}`}
            rows={rows}
            rowKey={(each) => `${each.lane} ${each.name}`}
            sort="-total_ns"
            search={['name', 'lane']}
            empty={done < summed.length ? 'Unpacking …' : 'No event lies in it.'}
            columns={[
              { key: 'name', title: 'Name', value: (each) => each.name, width: 60 },
              { key: 'lane', title: 'On', value: (each) => LANES[each.lane] },
              { key: 'total_ns', title: 'Time', help: 'Within the span; events within others count for both', numeric: true, value: (each) => each.total_ns, text: (each) => duration(each.total_ns) },
              { key: 'count', title: 'Count', numeric: true, value: (each) => each.count },
              { key: 'mean_ns', title: 'Mean', numeric: true, value: (each) => each.total_ns / each.count, text: (each) => duration(each.total_ns / each.count) },
              { key: 'longest_ns', title: 'Longest', numeric: true, value: (each) => each.longest_ns, text: (each) => duration(each.longest_ns) },
              ...(of === 'all' && ranks.length > 1
                ? [
                    { key: 'rank_count', title: 'Ranks', numeric: true, value: (each: NameSum) => each.rank_count },
                    { key: 'most_rank', title: 'Most on', value: (each: NameSum) => rankLabel(data, each.most_rank_index) },
                    { key: 'most_ns', title: 'That is', numeric: true, value: (each: NameSum) => each.most_ns, text: (each: NameSum) => duration(each.most_ns) },
                  ]
                : []),
            ]}
          />
        </>
      )}
    </>
  );
}
