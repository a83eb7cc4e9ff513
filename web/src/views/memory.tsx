import { useMemo } from 'preact/hooks';
import { useParam } from '../app/route';
import { axisFromZero } from '../charts/scales';
import { StackedRows } from '../charts/stacked_rows';
import type { AnalyzeData, MemoryRow, MemorySeries } from '../data/types';
import { bytes, count, duration, percent } from '../numbers';
import { Legend, Note, Select } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import type { View, ViewProps } from '../view';
import { median, rankLabel } from './ranks';

function deviceLabel(data: AnalyzeData, row: { rank_index: number; device: number }): string {
  const several = data.memory.filter((other) => other.rank_index === row.rank_index).length > 1;
  // PyTorch counts the host's allocations as device -1.
  const device = row.device < 0 ? 'CPU' : `device ${row.device}`;
  return several ? `${rankLabel(data, row.rank_index)}, ${device}` : rankLabel(data, row.rank_index);
}

const keyOf = (row: { rank_index: number; device: number }) => `${row.rank_index}-${row.device}`;

/** Without the allocator's counters: what the single allocations say. */
function Changes({ data }: { data: AnalyzeData }) {
  return (
    <>
      <Note>The trace has single allocations, but not how much was held in all: peaks are not measured.</Note>
      <DataTable
        id="allocations"
        caption="Allocations, rank by rank"
        columns={[
          { key: 'rank', title: 'Rank', value: (row) => deviceLabel(data, row) },
          { key: 'allocation_count', title: 'Allocations', numeric: true, value: (row) => row.allocation_count, text: (row) => count(row.allocation_count) },
          { key: 'net_bytes', title: 'Net growth', numeric: true, value: (row) => row.net_bytes, text: (row) => bytes(row.net_bytes), help: 'Allocated less freed within the window' },
        ]}
        rows={data.memory}
        rowKey={keyOf}
        sort="-net_bytes"
      />
    </>
  );
}

function ByRank({ data }: { data: AnalyzeData }) {
  const rows = useMemo(() => [...data.memory].sort((a, b) => (b.peak_allocated_bytes ?? -1) - (a.peak_allocated_bytes ?? -1)), [data]);
  const known = rows.filter((row) => row.peak_allocated_bytes !== null);
  const first = known[0];
  const devices = known.filter((row) => row.device >= 0);
  const middle = median(devices.map((row) => row.peak_allocated_bytes!));
  const summary = !first
    ? ''
    : `Peak of allocated memory: most on ${deviceLabel(data, first)} with ${bytes(first.peak_allocated_bytes)}` +
      (first.device_memory_bytes ? ` of ${bytes(first.device_memory_bytes)} (${percent(first.peak_allocated_bytes! / first.device_memory_bytes)})` : '') +
      (devices.length > 1 ? `; the median device has ${bytes(middle)}.` : '.');
  if (!first) return <Changes data={data} />;
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

/**
 * Smallest and largest over all series in equal pieces of [start, end); a series holds its value until its next point,
 * and is not known before its first and after its last.
 */
function envelope(series: readonly MemorySeries[], pieces: number, start: number, end: number): { low: number; high: number }[] {
  const bands = Array.from({ length: pieces }, () => ({ low: Infinity, high: -Infinity }));
  for (const each of series) {
    let at = 0;
    while (at < each.time_ns.length && each.time_ns[at]! < start) ++at;
    for (let piece = 0; piece < pieces; ++piece) {
      const until = start + ((piece + 1) / pieces) * (end - start);
      const band = bands[piece]!;
      if (at > 0 && at < each.time_ns.length) {
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
  const all = data.memory_series;
  const peak = (each: MemorySeries) => each.max_bytes.reduce((most, value) => Math.max(most, value), 0);
  const fullest = useMemo(() => all.reduce((a, b) => (peak(b) > peak(a) ? b : a)), [all]);
  const [text, setText] = useParam('rank', keyOf(fullest));
  const chosen = all.find((each) => keyOf(each) === text) ?? fullest;
  // Devices are compared with devices, hosts with hosts, over the time of the one chosen: files may be days apart.
  const series = useMemo(() => all.filter((each) => each.device < 0 === chosen.device < 0), [all, chosen]);
  const start = chosen.time_ns[0] ?? 0;
  const end = Math.max(start + 1, chosen.time_ns[chosen.time_ns.length - 1] ?? 1);
  const plotWidth = Math.max(80, width - LEFT - 16);
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const pieces = Math.max(20, Math.min(400, Math.floor(plotWidth / 3)));
  const bands = useMemo(() => envelope(series, pieces, start, end), [series, pieces, start, end]);
  const top = Math.max(...series.map(peak));
  const y = axisFromZero(top, plotHeight, 'bytes', 50);
  const x = axisFromZero(end - start, plotWidth, 'ns', 110);
  const px = (ns: number) => LEFT + ((ns - start) / (end - start)) * plotWidth;
  const py = (value: number) => TOP + plotHeight - y.at(value);
  const summary =
    `Allocated memory of ${deviceLabel(data, chosen)} over ${duration(end - start)}: between ${bytes(Math.min(...chosen.min_bytes))} and ${bytes(peak(chosen))}` +
    (series.length > 1 ? `; none of ${count(series.length)} goes above ${bytes(top)}.` : '.');

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
    const ns = start + ((event.clientX - box.left - LEFT) / plotWidth) * (end - start);
    let at = chosen.time_ns.findIndex((value) => value > ns) - 1;
    if (at === -2) at = chosen.time_ns.length - 1;
    const band = bands[Math.floor(((ns - start) / (end - start)) * pieces)];
    show(ns < start || ns > end || at < 0 ? null : {
      x: event.clientX - box.left, y: TOP + 6,
      content: (
        <>
          <strong>at {duration(Math.round(ns - start))}</strong>
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
      controls={all.length > 1 && (
        <Select label="Rank" value={keyOf(chosen)} onChange={setText} options={all.map((each) => ({ value: keyOf(each), label: deviceLabel(data, each) }))} />
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
          {x.ticks.filter((tick) => tick.value <= end - start).map((tick) => (
            <text key={tick.value} class="muted" x={px(start + tick.value)} y={TOP + plotHeight + 16} text-anchor="middle">{tick.text}</text>
          ))}
          {series.length > 1 && up.length > 0 && <path class="fill-band" d={`M${up.join('L')}L${down.reverse().join('L')}Z`} />}
          <path class="memory-line" d={line} />
          <line class="axis" x1={LEFT} x2={LEFT + plotWidth} y1={TOP + plotHeight} y2={TOP + plotHeight} />
          <text class="muted" x={LEFT} y={HEIGHT - 4}>{start === 0 ? 'time since the start of the run' : `time since ${duration(start)} into the run`}</text>
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
