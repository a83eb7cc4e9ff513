import { useMemo } from 'preact/hooks';
import { useParam } from '../app/route';
import { axisFromZero } from '../charts/scales';
import { StackedRows } from '../charts/stacked_rows';
import type { AnalyzeData, MemoryRow, MemorySeries } from '../data/types';
import { bytes, count, duration, percent, plural } from '../numbers';
import { Legend, Select } from '../parts/controls';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import type { View, ViewProps } from '../view';
import { median, rankLabel } from './ranks';

function deviceLabel(data: AnalyzeData, row: { rank_index: number; device: number }): string {
  const several = data.memory.filter((other) => other.rank_index === row.rank_index).length > 1;
  return several ? `${rankLabel(data, row.rank_index)}, device ${row.device}` : rankLabel(data, row.rank_index);
}

const keyOf = (row: { rank_index: number; device: number }) => `${row.rank_index}-${row.device}`;

function ByRank({ data }: { data: AnalyzeData }) {
  const rows = useMemo(() => [...data.memory].sort((a, b) => (b.peak_allocated_bytes ?? -1) - (a.peak_allocated_bytes ?? -1)), [data]);
  const known = rows.filter((row) => row.peak_allocated_bytes !== null);
  const first = known[0];
  const middle = median(known.map((row) => row.peak_allocated_bytes!));
  const summary = !first
    ? 'Peaks were not recorded.'
    : `Peak of allocated memory: most on ${rankLabel(data, first.rank_index)} with ${bytes(first.peak_allocated_bytes)}` +
      (first.device_memory_bytes ? ` of ${bytes(first.device_memory_bytes)} (${percent(first.peak_allocated_bytes! / first.device_memory_bytes)})` : '') +
      (known.length > 1 ? `; the median rank has ${bytes(middle)}.` : '.');
  const column = (key: keyof MemoryRow, title: string, help?: string) => ({
    key, title, help, numeric: true, value: (row: MemoryRow) => row[key], text: (row: MemoryRow) => bytes(row[key]),
  });
  return (
    <Figure
      id="peaks"
      title="Peaks, rank by rank"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => deviceLabel(data, row) },
        column('peak_allocated_bytes', 'Allocated, peak', 'Held by tensors'), column('peak_reserved_bytes', 'Reserved, peak', 'Held by the caching allocator'),
        column('device_memory_bytes', 'Device memory'),
        { key: 'allocation_count', title: 'Allocations', numeric: true, value: (row) => row.allocation_count, text: (row) => count(row.allocation_count) },
        column('net_bytes', 'Net growth', 'Allocated less freed within the window'),
      ]}
      rows={rows}
      rowKey={keyOf}
      sort="-peak_allocated_bytes"
    >
      <Legend items={[{ mark: 'memory', label: 'allocated: held by tensors' }, { mark: 'absent', label: 'reserved by the allocator beyond that' }]} />
      <StackedRows
        kind="bytes"
        format={bytes}
        label={summary}
        rows={rows.map((row) => ({
          key: keyOf(row), label: deviceLabel(data, row),
          parts: row.peak_allocated_bytes === null ? null : [
            { mark: 'memory', label: 'allocated', value: row.peak_allocated_bytes },
            { mark: 'absent', label: 'reserved beyond', value: Math.max(0, (row.peak_reserved_bytes ?? row.peak_allocated_bytes) - row.peak_allocated_bytes) },
          ],
          text: row.peak_allocated_bytes === null ? 'not measured' : `${bytes(row.peak_allocated_bytes)}${row.device_memory_bytes ? ` · ${percent(row.peak_allocated_bytes / row.device_memory_bytes)} of the device` : ''}`,
        }))}
      />
    </Figure>
  );
}

/** Smallest and largest over all series in equal pieces of time; a series holds its value until its next point. */
function envelope(series: readonly MemorySeries[], pieces: number, end: number): { low: number; high: number }[] {
  const bands = Array.from({ length: pieces }, () => ({ low: Infinity, high: -Infinity }));
  for (const each of series) {
    let at = 0;
    for (let piece = 0; piece < pieces; ++piece) {
      const until = ((piece + 1) / pieces) * end;
      const band = bands[piece]!;
      if (at > 0) {
        band.low = Math.min(band.low, each.min_bytes[at - 1]!);
        band.high = Math.max(band.high, each.min_bytes[at - 1]!);
      }
      for (; at < each.time_ns.length && each.time_ns[at]! < until; ++at) {
        band.low = Math.min(band.low, each.min_bytes[at]!);
        band.high = Math.max(band.high, each.max_bytes[at]!);
      }
    }
  }
  return bands;
}

const LEFT = 76;
const TOP = 8;
const HEIGHT = 280;
const BOTTOM = 40;

function OverTime({ data }: { data: AnalyzeData }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const series = data.memory_series;
  const peak = (each: MemorySeries) => each.max_bytes.reduce((most, value) => Math.max(most, value), 0);
  const fullest = useMemo(() => series.reduce((a, b) => (peak(b) > peak(a) ? b : a)), [series]);
  const [text, setText] = useParam('rank', keyOf(fullest));
  const chosen = series.find((each) => keyOf(each) === text) ?? fullest;
  const plotWidth = Math.max(80, width - LEFT - 16);
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const pieces = Math.max(20, Math.min(400, Math.floor(plotWidth / 3)));
  const bands = useMemo(() => envelope(series, pieces, data.job.span_ns), [series, pieces]);
  const top = Math.max(...series.map(peak));
  const y = axisFromZero(top, plotHeight, 'bytes', 50);
  const x = axisFromZero(data.job.span_ns, plotWidth, 'ns', 110);
  const px = (ns: number) => LEFT + (ns / data.job.span_ns) * plotWidth;
  const py = (value: number) => TOP + plotHeight - y.at(value);
  const summary =
    `Allocated memory of ${deviceLabel(data, chosen)} over ${duration(data.job.span_ns)}: between ${bytes(Math.min(...chosen.min_bytes))} and ${bytes(peak(chosen))}` +
    (series.length > 1 ? `; all ${plural(series.length, 'rank')} stay below ${bytes(top)}.` : '.');

  const up: string[] = [];
  const down: string[] = [];
  bands.forEach((band, at) => {
    if (band.high < 0 || !Number.isFinite(band.low)) return;
    const left = LEFT + (at / pieces) * plotWidth;
    const right = LEFT + ((at + 1) / pieces) * plotWidth;
    up.push(`${left.toFixed(1)} ${py(band.high).toFixed(1)}`, `${right.toFixed(1)} ${py(band.high).toFixed(1)}`);
    down.push(`${left.toFixed(1)} ${py(band.low).toFixed(1)}`, `${right.toFixed(1)} ${py(band.low).toFixed(1)}`);
  });
  let line = '';
  chosen.time_ns.forEach((ns, at) => {
    line += `${at ? 'H' : 'M'}${px(ns).toFixed(1)}${at ? 'V' : ' '}${py(chosen.max_bytes[at]!).toFixed(1)}V${py(chosen.min_bytes[at]!).toFixed(1)}`;
  });
  const onMove = (event: MouseEvent) => {
    const box = ref.current!.getBoundingClientRect();
    const ns = ((event.clientX - box.left - LEFT) / plotWidth) * data.job.span_ns;
    let at = chosen.time_ns.findIndex((value) => value > ns) - 1;
    if (at === -2) at = chosen.time_ns.length - 1;
    const band = bands[Math.floor((ns / data.job.span_ns) * pieces)];
    show(ns < 0 || ns > data.job.span_ns || at < 0 ? null : {
      x: event.clientX - box.left, y: TOP + 6,
      content: (
        <>
          <strong>at {duration(Math.round(ns))}</strong>
          <div class="tip-line"><span>{deviceLabel(data, chosen)}</span><span class="number">{bytes(chosen.max_bytes[at])}</span></div>
          {series.length > 1 && band && band.high >= 0 && <div class="tip-line"><span>all ranks</span><span class="number">{bytes(band.low)} … {bytes(band.high)}</span></div>}
        </>
      ),
    });
  };
  return (
    <Figure
      id="over-time"
      title="Over time"
      summary={summary}
      controls={series.length > 1 && (
        <Select label="Rank" value={keyOf(chosen)} onChange={setText} options={series.map((each) => ({ value: keyOf(each), label: deviceLabel(data, each) }))} />
      )}
      columns={[
        { key: 'time_ns', title: 'From', numeric: true, value: (at: number) => chosen.time_ns[at]!, text: (at: number) => duration(chosen.time_ns[at]) },
        { key: 'min_bytes', title: 'Smallest', numeric: true, value: (at: number) => chosen.min_bytes[at]!, text: (at: number) => bytes(chosen.min_bytes[at]) },
        { key: 'max_bytes', title: 'Largest', numeric: true, value: (at: number) => chosen.max_bytes[at]!, text: (at: number) => bytes(chosen.max_bytes[at]) },
      ]}
      rows={chosen.time_ns.map((_, at) => at)}
      rowKey={String}
      sort="time_ns"
    >
      <Legend items={[{ mark: 'memory', label: deviceLabel(data, chosen) }, ...(series.length > 1 ? [{ mark: 'band', label: 'smallest to largest of all ranks' }] : [])]} />
      <div ref={ref} class="chart" onMouseMove={onMove} onMouseLeave={() => show(null)}>
        <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={summary}>
          {y.ticks.map((tick) => (
            <g key={tick.value}>
              <line class="grid" x1={LEFT} x2={LEFT + plotWidth} y1={py(tick.value)} y2={py(tick.value)} />
              <text class="muted" x={LEFT - 8} y={py(tick.value) + 4} text-anchor="end">{tick.text}</text>
            </g>
          ))}
          {x.ticks.filter((tick) => tick.value <= data.job.span_ns).map((tick) => (
            <text key={tick.value} class="muted" x={px(tick.value)} y={TOP + plotHeight + 16} text-anchor="middle">{tick.text}</text>
          ))}
          {series.length > 1 && up.length > 0 && <path class="fill-band" d={`M${up.join('L')}L${down.reverse().join('L')}Z`} />}
          <path class="memory-line" d={line} />
          <line class="axis" x1={LEFT} x2={LEFT + plotWidth} y1={TOP + plotHeight} y2={TOP + plotHeight} />
          <text class="muted" x={LEFT} y={HEIGHT - 4}>time since the start of the run</text>
        </svg>
        <Tooltip tip={tip} width={width} />
      </div>
    </Figure>
  );
}

function Memory({ data }: ViewProps) {
  return (
    <>
      {data.memory.length > 0 && <ByRank data={data} />}
      {data.memory_series.length > 0 && <OverTime data={data} />}
    </>
  );
}

export const memoryView: View = {
  id: 'memory',
  title: 'Memory',
  shows: 'Which rank is fullest, how close it is to the limit, and when that happens.',
  group: 'Work',
  missing: (data) => (data.memory.length + data.memory_series.length === 0 ? 'Memory was not recorded. Profile with profile_memory=True.' : null),
  component: Memory,
};
