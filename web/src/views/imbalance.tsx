import { axisFromZero, textWidth } from '../charts/scales';
import type { AnalyzeData, ImbalanceRow } from '../data/types';
import { bytes, count, duration, percent, plural } from '../numbers';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const WORDS: Record<string, string> = { memory_ns: 'copies and sets', busy_ns: 'busy', peak_allocated_bytes: 'peak of allocated memory' };

function words(quantity: string): string {
  if (WORDS[quantity]) return WORDS[quantity];
  return quantity.replace(/_(ns|bytes|count|ratio)$/, (_, unit: string) => (unit === 'count' ? ' count' : '')).replaceAll('_', ' ');
}

function inUnits(quantity: string, value: number): string {
  if (quantity.endsWith('_ns')) return duration(Math.round(value));
  if (quantity.endsWith('_bytes')) return bytes(Math.round(value));
  return count(value);
}

const ROW = 30;

function Ranges({ data, rows, label }: { data: AnalyzeData; rows: readonly ImbalanceRow[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const gutter = Math.max(...rows.map((row) => textWidth(words(row.quantity)))) + 14;
  const right = 150;
  const plot = Math.max(80, width - gutter - right);
  const axis = axisFromZero(Math.max(1, ...rows.map((row) => row.max / row.mean)), plot, 'ratio', 80);
  const height = rows.length * ROW + 42;
  return (
    <div ref={ref} class="chart" onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value}>
            <line class="grid" x1={gutter + axis.at(tick.value)} x2={gutter + axis.at(tick.value)} y1={0} y2={height - 38} />
            <text class="muted" x={gutter + axis.at(tick.value)} y={height - 22} text-anchor="middle">{tick.text}</text>
          </g>
        ))}
        <line class="axis mean-line" x1={gutter + axis.at(1)} x2={gutter + axis.at(1)} y1={0} y2={height - 38} />
        {rows.map((row, at) => {
          const y = at * ROW + ROW / 2;
          const low = gutter + axis.at(row.min / row.mean);
          const high = gutter + axis.at(row.max / row.mean);
          return (
            <g key={row.quantity} onMouseMove={() => show({
              x: high, y: at * ROW + ROW,
              content: (
                <>
                  <strong>{words(row.quantity)}</strong>
                  <div class="tip-line"><span>{rankLabel(data, row.max_rank_index)}, most</span><span class="number">{inUnits(row.quantity, row.max)}</span></div>
                  <div class="tip-line"><span>mean</span><span class="number">{inUnits(row.quantity, row.mean)}</span></div>
                  <div class="tip-line"><span>{rankLabel(data, row.min_rank_index)}, least</span><span class="number">{inUnits(row.quantity, row.min)}</span></div>
                </>
              ),
            })}>
              <rect class="hover-target" x={0} y={at * ROW} width={width} height={ROW} />
              <text x={gutter - 8} y={y + 4} text-anchor="end">{words(row.quantity)}</text>
              <line class="range" x1={low} x2={high} y1={y} y2={y} />
              <circle class="range-low" cx={low} cy={y} r={4.5} />
              <circle class="range-high" cx={high} cy={y} r={5} />
              <text x={gutter + plot + 12} y={y + 4}>{`${rankLabel(data, row.max_rank_index)} +${percent(row.ratio)}`}</text>
            </g>
          );
        })}
        <text class="muted" x={gutter} y={height - 4}>share of the mean over ranks; open: least, filled: most</text>
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}

function Imbalance({ data }: ViewProps) {
  const known = [...data.imbalance].sort((a, b) => (b.ratio ?? -1) - (a.ratio ?? -1));
  const drawn = known.filter((row) => row.ratio !== null && row.mean > 0);
  const first = drawn[0];
  const summary = !first
    ? 'Nothing to compare: every quantity is zero on every rank.'
    : `Over ${plural(data.ranks.length, 'rank')}, most uneven is ${words(first.quantity)}: ${rankLabel(data, first.max_rank_index)} has ${inUnits(first.quantity, first.max)}, ` +
      `${percent(first.ratio)} more than the mean of ${inUnits(first.quantity, first.mean)}.`;
  const value = (key: 'mean' | 'min' | 'max', title: string) => ({
    key, title, numeric: true, value: (row: ImbalanceRow) => row[key], text: (row: ImbalanceRow) => inUnits(row.quantity, row[key]),
  });
  return (
    <Figure
      id="imbalance"
      title="From the least to the most"
      summary={summary}
      columns={[
        { key: 'quantity', title: 'Quantity', value: (row) => row.quantity, text: (row) => words(row.quantity) },
        { key: 'ratio', title: 'Most over mean', numeric: true, value: (row) => row.ratio, text: (row) => (row.ratio === null ? '–' : `+${percent(row.ratio)}`) },
        value('max', 'Most'), { key: 'max_rank', title: 'On', value: (row) => rankLabel(data, row.max_rank_index) }, value('mean', 'Mean'),
        value('min', 'Least'), { key: 'min_rank', title: 'On rank', value: (row) => rankLabel(data, row.min_rank_index) },
      ]}
      rows={known}
      rowKey={(row) => row.quantity}
      sort="-ratio"
    >
      {drawn.length > 0 && <Ranges data={data} rows={drawn} label={summary} />}
    </Figure>
  );
}

export const imbalanceView: View = {
  id: 'imbalance',
  title: 'Imbalance',
  shows: 'How evenly work, communication and memory are spread over the ranks; most uneven first.',
  group: 'Work',
  missing: (data) => (data.ranks.length < 2 ? 'There is one rank: nothing to compare.' : data.imbalance.length === 0 ? 'Not measured in this run.' : null),
  component: Imbalance,
};
