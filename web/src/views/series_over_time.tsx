import { useMemo } from 'preact/hooks';
import { useParam } from '../app/route';
import { highest, lowest, RangeOverTime, type RangeOverTimeProps, type RangeSeries } from '../charts/range_over_time';
import { count, duration } from '../numbers';
import { Legend, Select } from '../parts/controls';
import { Figure } from '../parts/figure';

interface SeriesOverTimeProps<Series> extends Pick<RangeOverTimeProps, 'kind' | 'format'> {
  /** What is measured: "Allocated memory". */
  what: string;
  /** At least one. */
  series: readonly Series[];
  /** Whether two are compared with each other; all are where it is not given. */
  alike?: (a: Series, b: Series) => boolean;
}

/** A quantity of one rank over time, before all ranks': files may be days apart, so the time is that of the one chosen. */
export function SeriesOverTime<Series extends RangeSeries>({ what, series, alike, kind, format }: SeriesOverTimeProps<Series>) {
  const fullest = useMemo(() => series.reduce((a, b) => (highest(b) > highest(a) ? b : a)), [series]);
  const [text, setText] = useParam('rank', fullest.key);
  const chosen = series.find((each) => each.key === text) ?? fullest;
  const all = useMemo(() => series.filter((each) => !alike || alike(each, chosen)), [series, chosen]);
  const start = chosen.time_ns[0] ?? 0;
  const end = Math.max(start + 1, chosen.time_ns[chosen.time_ns.length - 1] ?? 1);
  const summary =
    `${what} of ${chosen.label} over ${duration(end - start)}: between ${format(lowest(chosen))} and ${format(highest(chosen))}` +
    (all.length > 1 ? `; none of ${count(all.length)} goes above ${format(Math.max(...all.map(highest)))}.` : '.');
  return (
    <Figure
      id="over-time"
      title="Over time"
      summary={summary}
      controls={series.length > 1 && (
        <Select label="Rank" value={chosen.key} onChange={setText} options={series.map((each) => ({ value: each.key, label: each.label }))} />
      )}
      columns={[
        { key: 'time_ns', title: 'From', numeric: true, value: (at: number) => chosen.time_ns[at]!, text: (at: number) => duration(chosen.time_ns[at]) },
        { key: 'low', title: 'Smallest', numeric: true, value: (at: number) => chosen.low[at]!, text: (at: number) => format(chosen.low[at]) },
        { key: 'high', title: 'Largest', numeric: true, value: (at: number) => chosen.high[at]!, text: (at: number) => format(chosen.high[at]) },
      ]}
      rows={chosen.time_ns.map((_, at) => at)}
      rowKey={String}
      sort="time_ns"
    >
      <Legend items={[{ mark: 'memory', label: chosen.label }, ...(all.length > 1 ? [{ mark: 'band', label: 'smallest to largest of all ranks' }] : [])]} />
      <RangeOverTime chosen={chosen} all={all} kind={kind} format={format} label={summary} />
    </Figure>
  );
}
