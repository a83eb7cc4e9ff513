import { useChoice } from '../app/route';
import { axisFromZero } from '../charts/scales';
import { StackedRows } from '../charts/stacked_rows';
import { count, duration, number, percent, plural } from '../numbers';
import { Choice, Legend, Note } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import type { View, ViewProps } from '../view';

type Maybe = number | null;

export interface ScalingPoint {
  label: string; ranks: number; step_count: number; step_ns: number; low_ns: Maybe; high_ns: Maybe; ideal_step_ns: number; fitted_step_ns: Maybe;
  work_ns: number; communication_ns: number; communication_ratio: number; speed_up: number; ideal_speed_up: number;
  strong_efficiency: number; weak_efficiency: number; items_per_s: Maybe; slowest_rank: number; slowest_ratio: number;
}

/** `data` of lockstep.scaling/1 (docs/json.md). */
export interface ScalingData {
  verdict: { sentence: string; kind: 'weak' | 'strong'; confidence: number; notes: string[] };
  points: ScalingPoint[];
  no_sync: { label: string; ranks: number; full_ns: number; no_sync_ns: number; overhead_ns: number; low_ns: Maybe; high_ns: Maybe; overhead_ratio: number }[];
  fit: {
    fitted: boolean; reason: string; serial_ns: Maybe; serial_margin_ns: Maybe; parallel_ns: Maybe; parallel_margin_ns: Maybe; communication_ns: Maybe;
    communication_margin_ns: Maybe; growth: string; growth_known: boolean; next_ranks: Maybe; next_step_ns: Maybe; next_low_ns: Maybe; next_high_ns: Maybe;
    next_efficiency: Maybe; next_bound: string | null;
  };
}

type Props = ViewProps<ScalingData>;

const SHOWN = ['speed-up', 'step', 'efficiency'] as const;
const LEFT = 76;
const HEIGHT = 340;

function efficiency(data: ScalingData, point: ScalingPoint): number {
  return data.verdict.kind === 'weak' ? point.weak_efficiency : point.strong_efficiency;
}

function CurveChart({ data, shown, label }: { data: ScalingData; shown: (typeof SHOWN)[number]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const reached = (point: ScalingPoint) => ({ 'speed-up': point.speed_up, step: point.step_ns, efficiency: efficiency(data, point) })[shown];
  const ideal = (point: ScalingPoint) => ({ 'speed-up': point.ideal_speed_up, step: point.ideal_step_ns, efficiency: 1 })[shown];
  const kind = ({ 'speed-up': 'number', step: 'ns', efficiency: 'ratio' } as const)[shown];
  const axis = axisFromZero(Math.max(...data.points.flatMap((point) => [reached(point), ideal(point), shown === 'step' ? point.high_ns ?? 0 : 0])), HEIGHT - 60, kind, 50);
  const first = Math.log2(data.points[0]!.ranks);
  const span = Math.log2(data.points[data.points.length - 1]!.ranks) - first || 1;
  const x = (ranks: number) => LEFT + 24 + ((Math.log2(ranks) - first) / span) * (width - LEFT - 64);
  const y = (value: number) => HEIGHT - 46 - axis.at(value);
  const line = (of: (point: ScalingPoint) => number) => data.points.map((point, i) => `${i ? 'L' : 'M'}${x(point.ranks).toFixed(1)} ${y(of(point)).toFixed(1)}`).join('');
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value}>
            <line class="grid" x1={LEFT} x2={width - 16} y1={y(tick.value)} y2={y(tick.value)} />
            <text class="muted" x={LEFT - 8} y={y(tick.value) + 4} text-anchor="end">{tick.text}</text>
          </g>
        ))}
        <path class="limit" fill="none" d={line(ideal)} />
        <g class="line-series-1">
          <path class="trend" d={line(reached)} />
          {data.points.map((point) => (
            <g key={point.ranks}>
              {shown === 'step' && point.low_ns !== null && point.high_ns !== null && (
                <line class="whisker" x1={x(point.ranks)} x2={x(point.ranks)} y1={y(point.low_ns)} y2={y(point.high_ns)} />
              )}
              <circle class="dot" cx={x(point.ranks)} cy={y(reached(point))} r="5"><title>{`${point.ranks} ranks: ${duration(point.step_ns)} a step`}</title></circle>
            </g>
          ))}
        </g>
        {data.points.map((point) => <text key={point.ranks} class="muted" x={x(point.ranks)} y={HEIGHT - 26} text-anchor="middle">{point.ranks}</text>)}
        <text class="muted" x={LEFT} y={HEIGHT - 6}>ranks (log scale); dashed: ideal</text>
      </svg>
    </div>
  );
}

function Curve({ data }: Props) {
  const [shown, setShown] = useChoice('show', SHOWN, 'speed-up');
  return (
    <>
      <Note><strong>{data.verdict.sentence}</strong></Note>
      <Figure
        id="curve"
        title="Scaling curve"
        summary={`Reached against ideal ${data.verdict.kind} scaling, over ${data.points.map((point) => point.ranks).join(', ')} ranks.`}
        controls={<Choice name="show" label="Show" value={shown} onChange={setShown} options={SHOWN.map((value) => ({ value, label: value }))} />}
        columns={[
          { key: 'ranks', title: 'Ranks', numeric: true, value: (row: ScalingPoint) => row.ranks },
          { key: 'step_ns', title: 'Step', numeric: true, value: (row) => row.step_ns, text: (row) => duration(row.step_ns) },
          { key: 'low_ns', title: 'From', numeric: true, value: (row) => row.low_ns, text: (row) => duration(row.low_ns) },
          { key: 'high_ns', title: 'To', numeric: true, value: (row) => row.high_ns, text: (row) => duration(row.high_ns) },
          { key: 'ideal_step_ns', title: 'Ideal step', numeric: true, value: (row) => row.ideal_step_ns, text: (row) => duration(row.ideal_step_ns) },
          { key: 'speed_up', title: 'Speed-up', numeric: true, value: (row) => row.speed_up, text: (row) => row.speed_up.toFixed(2) },
          { key: 'ideal_speed_up', title: 'Ideal', numeric: true, value: (row) => row.ideal_speed_up, text: (row) => number(row.ideal_speed_up) },
          { key: 'efficiency', title: 'Efficiency', numeric: true, value: (row) => efficiency(data, row), text: (row) => percent(efficiency(data, row)) },
          { key: 'communication_ratio', title: 'Exposed comm', numeric: true, value: (row) => row.communication_ratio, text: (row) => percent(row.communication_ratio) },
          { key: 'items_per_s', title: 'Items/s', numeric: true, value: (row) => row.items_per_s, text: (row) => number(row.items_per_s) },
          { key: 'step_count', title: 'Steps', numeric: true, value: (row) => row.step_count, text: (row) => count(row.step_count) },
          { key: 'label', title: 'Run', value: (row) => row.label },
        ]}
        rows={data.points}
        rowKey={(row) => String(row.ranks)}
      >
        <CurveChart data={data} shown={shown} label={data.verdict.sentence} />
      </Figure>
      <ul class="plain-list">{data.verdict.notes.map((note) => <li key={note}>{note}</li>)}</ul>
    </>
  );
}

/** f(n) of the fit, as analysis/comparison/scaling_fit.h names it. */
function growth(name: string, ranks: number): number {
  return name === 'log2(n)' ? Math.log2(ranks) : name === 'n-1' ? ranks - 1 : (2 * (ranks - 1)) / ranks;
}

function Parts({ data }: Props) {
  const { fit } = data;
  const strong = data.verdict.kind === 'strong';
  const sizes = [...data.points.map((point) => point.ranks), ...(fit.next_ranks === null ? [] : [fit.next_ranks])];
  const rows = sizes.map((ranks) => ({
    ranks, serial: fit.serial_ns ?? 0, parallel: (fit.parallel_ns ?? 0) / ranks, communication: (fit.communication_ns ?? 0) * growth(fit.growth, ranks),
    next: ranks === fit.next_ranks,
  }));
  type Row = (typeof rows)[number];
  const work = strong ? 'serial work' : 'work of a rank';
  const next = fit.next_ranks === null ? '' :
    ` At ${fit.next_ranks} ranks: ${duration(fit.next_step_ns)} a step (${duration(fit.next_low_ns)} to ${duration(fit.next_high_ns)}), ${percent(fit.next_efficiency)} efficiency, bound by ${fit.next_bound}.`;
  const time = (key: 'serial' | 'parallel' | 'communication', title: string) => ({
    key: `${key}_ns`, title, numeric: true, value: (row: Row) => row[key], text: (row: Row) => duration(row[key]),
  });
  return (
    <>
      <Figure
        id="fit"
        title="Fitted parts of a step"
        summary={`Communication grows like ${fit.growth}${fit.growth_known ? '' : ' (assumed)'}; ${fit.reason}.${next}`}
        columns={[
          { key: 'ranks', title: 'Ranks', numeric: true, value: (row: Row) => row.ranks, text: (row: Row) => `${row.ranks}${row.next ? ' (predicted)' : ''}` },
          time('serial', work), ...(strong ? [time('parallel', 'parallel work')] : []), time('communication', 'communication'),
        ]}
        rows={rows}
        rowKey={(row) => String(row.ranks)}
      >
        <Legend items={[{ mark: 'host', label: work }, ...(strong ? [{ mark: 'compute', label: 'parallel work' }] : []), { mark: 'communication', label: 'communication' }]} />
        <StackedRows
          kind="ns"
          format={duration}
          label={`Fitted parts of a step by number of ranks.${next}`}
          rows={rows.map((row) => ({
            key: String(row.ranks), label: `${plural(row.ranks, 'rank')}${row.next ? ', predicted' : ''}`, text: duration(row.serial + row.parallel + row.communication),
            parts: [{ mark: 'host', label: work, value: row.serial }, { mark: 'compute', label: 'parallel work', value: row.parallel }, { mark: 'communication', label: 'communication', value: row.communication }],
          }))}
        />
      </Figure>
    </>
  );
}

function Direct({ data }: Props) {
  type Row = ScalingData['no_sync'][number];
  return (
    <DataTable
      id="direct"
      caption="A run without exchange of gradients against the run of its size"
      columns={[
        { key: 'ranks', title: 'Ranks', numeric: true, value: (row: Row) => row.ranks },
        { key: 'full_ns', title: 'Full', numeric: true, value: (row) => row.full_ns, text: (row) => duration(row.full_ns) },
        { key: 'no_sync_ns', title: 'No sync', numeric: true, value: (row) => row.no_sync_ns, text: (row) => duration(row.no_sync_ns) },
        { key: 'overhead_ns', title: 'Overhead', numeric: true, value: (row) => row.overhead_ns, text: (row) => duration(row.overhead_ns) },
        { key: 'low_ns', title: 'From', numeric: true, value: (row) => row.low_ns, text: (row) => duration(row.low_ns) },
        { key: 'high_ns', title: 'To', numeric: true, value: (row) => row.high_ns, text: (row) => duration(row.high_ns) },
        { key: 'overhead_ratio', title: 'Of step', numeric: true, value: (row) => row.overhead_ratio, text: (row) => percent(row.overhead_ratio) },
      ]}
      rows={data.no_sync}
      rowKey={(row) => row.label}
    />
  );
}

export const scalingViewList: readonly View<ScalingData>[] = [
  { id: 'curve', title: 'Curve', shows: 'Is adding ranks worth it? Speed-up, step time and efficiency against the ideal.', group: 'Scaling', component: Curve },
  { id: 'parts', title: 'Fitted parts', shows: 'What a step is made of at each size, and what bounds the next doubling.', group: 'Scaling', missing: (data) => (data.fit.fitted ? null : `There is no fit: ${data.fit.reason}.`), component: Parts },
  { id: 'direct', title: 'Without synchronisation', shows: 'What exchanging gradients costs, measured directly.', group: 'Scaling', missing: (data) => (data.no_sync.length > 0 ? null : 'No run without synchronisation was given (--no-sync).'), component: Direct },
];
