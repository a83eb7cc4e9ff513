import { useChoice } from '../app/route';
import { linear, logarithmic, roundTicks } from '../charts/scales';
import type { BandwidthRow } from '../data/types';
import { bytes, count, plural, rate } from '../numbers';
import { Choice } from '../parts/controls';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import type { View, ViewProps } from '../view';

interface Series {
  label: string;
  at: number;
  rows: BandwidthRow[];
}

function seriesOf(rows: readonly BandwidthRow[]): Series[] {
  const found = new Map<string, BandwidthRow[]>();
  for (const row of rows) {
    const label = row.group_size === null ? row.name : `${row.name}, ${plural(row.group_size, 'rank')}`;
    found.set(label, [...(found.get(label) ?? []), row]);
  }
  return [...found].map(([label, list], at) => ({ label, at, rows: [...list].sort((a, b) => a.bytes - b.bytes) }));
}

/** Six shapes for six colours: told apart without colour, too. Centred on (0, 0), about 9 px. */
const SHAPES = [
  'M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z', 'M-4-4h8v8h-8Z', 'M0-5.2L5 4H-5Z', 'M0-5.6L5.6 0L0 5.6L-5.6 0Z', 'M0 5.2L5-4H-5Z',
  'M-5-1.7h3.3V-5h3.4v3.3H5v3.4H1.7V5h-3.4V1.7H-5Z',
];
const shape = (at: number) => SHAPES[at % SHAPES.length]!;
const mark = (at: number) => `series-${(at % 6) + 1}`;

const LEFT = 76;
const TOP = 10;
const HEIGHT = 400;
const BOTTOM = 44;

function byteTicks(low: number, high: number, most: number): number[] {
  const all: number[] = [];
  for (let power = Math.floor(Math.log2(low)); power <= Math.ceil(Math.log2(high)); ++power) all.push(2 ** power);
  let stride = 1;
  while (all.length / stride > most) stride *= 2;
  return all.filter((value) => Math.log2(value) % stride === 0 && value >= low && value <= high);
}

function Chart({ series, log, label }: { series: readonly Series[]; log: boolean; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const rows = series.flatMap((each) => each.rows);
  const plotWidth = width - LEFT - 16;
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const sizes = rows.map((row) => Math.max(1, row.bytes));
  const x = logarithmic(Math.min(...sizes) / 1.6, Math.max(...sizes) * 1.6, LEFT, LEFT + plotWidth);
  const highest = Math.max(...rows.map((row) => row.busbw_bytes_per_s[4]));
  const positive = rows.map((row) => row.busbw_bytes_per_s[0]).filter((value) => value > 0);
  const lowest = Math.max(1, Math.min(...positive, highest));
  const yTicks = log
    ? Array.from({ length: 14 }, (_, i) => 10 ** i).filter((value) => value >= lowest / 1.3 && value <= highest * 1.3)
    : roundTicks(0, highest * 1.06, 6);
  const y = log
    ? logarithmic(lowest / 1.3, highest * 1.3, TOP + plotHeight, TOP)
    : linear(0, yTicks[yTicks.length - 1]!, TOP + plotHeight, TOP);
  return (
    <div ref={ref} class="chart" onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {yTicks.map((value) => (
          <g key={value}>
            <line class="grid" x1={LEFT} x2={LEFT + plotWidth} y1={y(value)} y2={y(value)} />
            <text class="muted" x={LEFT - 8} y={y(value) + 4} text-anchor="end">{value === 0 ? '0' : rate(value).replace(/\.0+ /, ' ')}</text>
          </g>
        ))}
        {byteTicks(Math.min(...sizes) / 1.6, Math.max(...sizes) * 1.6, plotWidth / 70).map((value) => (
          <g key={value}>
            <line class="grid" x1={x(value)} x2={x(value)} y1={TOP} y2={TOP + plotHeight} />
            <text class="muted" x={x(value)} y={TOP + plotHeight + 16} text-anchor="middle">{bytes(value).replace(/\.0+ /, ' ')}</text>
          </g>
        ))}
        <line class="axis" x1={LEFT} x2={LEFT + plotWidth} y1={TOP + plotHeight} y2={TOP + plotHeight} />
        <text class="muted" x={LEFT} y={HEIGHT - 6}>message size (log scale)</text>
        {series.map((each) => (
          <g key={each.label} class={`line-${mark(each.at)}`}>
            <path class="trend" d={each.rows.map((row, i) => `${i ? 'L' : 'M'}${x(Math.max(1, row.bytes)).toFixed(1)} ${y(row.busbw_bytes_per_s[2]).toFixed(1)}`).join('')} />
            {each.rows.map((row) => {
              const at = x(Math.max(1, row.bytes));
              const [low, quarter, middle, upper, high] = row.busbw_bytes_per_s;
              return (
                <g
                  key={row.bytes}
                  onMouseEnter={() => show({
                    x: at, y: y(middle),
                    content: (
                      <>
                        <strong>{each.label}</strong>
                        <div>{bytes(row.bytes)}, {plural(row.count, 'time')}</div>
                        <div class="tip-line"><span>median</span><span class="number">{rate(middle)}</span></div>
                        <div class="tip-line"><span>half between</span><span class="number">{rate(quarter)} … {rate(upper)}</span></div>
                        <div class="tip-line"><span>all between</span><span class="number">{rate(low)} … {rate(high)}</span></div>
                      </>
                    ),
                  })}
                >
                  <line class="whisker" x1={at} x2={at} y1={y(low)} y2={y(high)} />
                  <line class="quartile" x1={at} x2={at} y1={y(quarter)} y2={y(upper)} />
                  <path class="dot" transform={`translate(${at},${y(middle)})`} d={shape(each.at)} />
                </g>
              );
            })}
          </g>
        ))}
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}

function Keys({ series }: { series: readonly Series[] }) {
  return (
    <ul class="legend">
      {series.map((each) => (
        <li key={each.label}>
          <svg class={`line-${mark(each.at)}`} width="16" height="14" aria-hidden="true"><path class="dot" transform="translate(8,7)" d={shape(each.at)} /></svg>
          {each.label}
        </li>
      ))}
      <li class="muted">symbol: median; thick: half of the instances; thin: all</li>
    </ul>
  );
}

function Bandwidth({ data }: ViewProps) {
  const [scale, setScale] = useChoice('scale', ['linear', 'log'] as const, 'linear');
  const series = seriesOf(data.bandwidth);
  const best = data.bandwidth.reduce((a, b) => (b.busbw_bytes_per_s[2] > a.busbw_bytes_per_s[2] ? b : a));
  const large = [...data.bandwidth].sort((a, b) => b.bytes * b.count - a.bytes * a.count)[0]!;
  const summary =
    `${plural(data.bandwidth.length, 'message size')} of ${plural(series.length, 'operation')}. Fastest: ${best.name} of ${bytes(best.bytes)} with a median of ${rate(best.busbw_bytes_per_s[2])}; ` +
    `most bytes go through ${large.name} of ${bytes(large.bytes)} at ${rate(large.busbw_bytes_per_s[2])}. Waiting for late ranks is not included.`;
  const quantile = (at: number, key: string, title: string) => ({
    key, title, numeric: true, value: (row: BandwidthRow) => row.busbw_bytes_per_s[at]!, text: (row: BandwidthRow) => rate(row.busbw_bytes_per_s[at]),
  });
  return (
    <Figure
      id="bandwidth"
      title="Bus bandwidth by message size"
      summary={summary}
      controls={<Choice name="bandwidth-scale" label="Scale" value={scale} onChange={setScale} options={[{ value: 'linear', label: 'linear' }, { value: 'log', label: 'log' }]} />}
      columns={[
        { key: 'name', title: 'Operation', value: (row) => row.name },
        { key: 'group_size', title: 'Ranks', numeric: true, value: (row) => row.group_size, text: (row) => count(row.group_size) },
        { key: 'bytes', title: 'Size', numeric: true, value: (row) => row.bytes, text: (row) => bytes(row.bytes) },
        { key: 'count', title: 'Count', numeric: true, value: (row) => row.count, text: (row) => count(row.count) },
        quantile(2, 'busbw_median_bytes_per_s', 'busbw, median'), quantile(0, 'busbw_min_bytes_per_s', 'Min'),
        quantile(1, 'busbw_quartile_bytes_per_s', 'Quartile'), quantile(3, 'busbw_third_quartile_bytes_per_s', '3rd quartile'), quantile(4, 'busbw_max_bytes_per_s', 'Max'),
        { key: 'algbw_median_bytes_per_s', title: 'algbw, median', numeric: true, value: (row) => row.algbw_median_bytes_per_s, text: (row) => rate(row.algbw_median_bytes_per_s) },
      ]}
      rows={data.bandwidth}
      rowKey={(row) => `${row.name} ${row.group_size} ${row.bytes}`}
      sort="-bytes"
      search={['name']}
    >
      <Keys series={series} />
      <Chart series={series} log={scale === 'log'} label={summary} />
    </Figure>
  );
}

export const bandwidthView: View = {
  id: 'bandwidth',
  title: 'Bandwidth',
  shows: 'Whether the network delivers: bus bandwidth of each collective against the size of its message.',
  group: 'Communication',
  missing: (data) => (data.bandwidth.length === 0 ? 'No collective could be timed: sizes were not recorded, or members are missing.' : null),
  component: Bandwidth,
};
