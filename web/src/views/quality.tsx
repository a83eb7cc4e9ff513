import { labelStride, linear, plain, roundTicks } from '../charts/scales';
import { useWidth } from '../parts/measure';
import { Tooltip, useTip } from '../parts/tooltip';
import type { AnalyzeData, PageDocument, RankFacts } from '../data/types';
import { count, duration, number, plural, rankList } from '../numbers';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import { LedgerTable, SEVERITY_ORDER } from '../parts/ledger_table';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const BASIS: Record<string, string> = {
  reference: 'the reference', collectives: 'shared collectives', wall_clock: 'wall clock only',
};

interface Clock extends RankFacts {
  index: number;
}

const LEFT = 86;
const TOP = 8;
const HEIGHT = 260;
const BOTTOM = 40;

function Offsets({ data, rows, label }: { data: AnalyzeData; rows: readonly Clock[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const plotWidth = Math.max(80, width - LEFT - 16);
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const ends = rows.flatMap((row) => {
    const reach = row.clock.uncertainty_ns ?? 0;
    return [row.clock.offset_ns - reach, row.clock.offset_ns + reach];
  });
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  const ticks = low === high ? roundTicks(-1000, 1000, 5) : roundTicks(low, high, 5);
  const y = linear(ticks[0]!, ticks[ticks.length - 1]!, TOP + plotHeight, TOP);
  const pitch = Math.min(60, plotWidth / rows.length);
  const x = (at: number) => LEFT + (at + 0.5) * pitch;
  const stride = labelStride(rows.length, rows.length * pitch, 40);
  const crowded = pitch < 5;
  let above = '';
  let below = '';
  rows.forEach((row, at) => {
    const reach = row.clock.uncertainty_ns ?? 0;
    above += `${at ? 'L' : 'M'}${x(at).toFixed(1)} ${y(row.clock.offset_ns + reach).toFixed(1)}`;
    below = `L${x(at).toFixed(1)} ${y(row.clock.offset_ns - reach).toFixed(1)}${below}`;
  });
  return (
    <div ref={ref} class="chart" onMouseLeave={() => show(null)} onMouseMove={(event) => {
      const at = Math.floor((event.clientX - ref.current!.getBoundingClientRect().left - LEFT) / pitch);
      const row = rows[at];
      show(!row ? null : {
        x: x(at), y: y(row.clock.offset_ns),
        content: (
          <>
            <strong>{rankLabel(data, row.index)}</strong>
            <div class="tip-line"><span>offset</span><span class="number">{duration(row.clock.offset_ns)}</span></div>
            <div class="tip-line"><span>uncertainty</span><span class="number">{row.clock.uncertainty_ns === null ? 'not known' : `± ${duration(row.clock.uncertainty_ns)}`}</span></div>
            <div>{BASIS[row.clock.basis] ?? row.clock.basis}</div>
          </>
        ),
      });
    }}>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {ticks.map((value) => (
          <g key={value}>
            <line class={value === 0 ? 'axis' : 'grid'} x1={LEFT} x2={LEFT + plotWidth} y1={y(value)} y2={y(value)} />
            <text class="muted" x={LEFT - 8} y={y(value) + 4} text-anchor="end">{plain(duration(value))}</text>
          </g>
        ))}
        {crowded && <path class="error-band" d={`${above}${below}Z`} />}
        {rows.map((row, at) => {
          const reach = row.clock.uncertainty_ns;
          const cap = Math.min(5, pitch / 3);
          return (
            <g key={row.index}>
              {crowded ? null : reach === null ? (
                <text class="muted" x={x(at)} y={y(row.clock.offset_ns) - 8} text-anchor="middle">?</text>
              ) : (
                <path class="error-bar" d={`M${x(at) - cap} ${y(row.clock.offset_ns - reach)}h${2 * cap}m${-cap} 0V${y(row.clock.offset_ns + reach)}m${-cap} 0h${2 * cap}`} />
              )}
              <circle class={row.clock.basis === 'wall_clock' ? 'range-low' : 'range-high'} cx={x(at)} cy={y(row.clock.offset_ns)} r={Math.min(4, Math.max(1.2, pitch / 3))} />
              {at % stride === 0 && <text class="muted" x={x(at)} y={TOP + plotHeight + 16} text-anchor="middle">{row.rank}</text>}
            </g>
          );
        })}
        <text class="muted" x={LEFT} y={HEIGHT - 4}>rank; {crowded ? 'band' : 'bars'}: uncertainty; open: as the wall clock of the file says, not corrected</text>
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}

function Clocks({ data }: { data: AnalyzeData }) {
  const rows: Clock[] = data.ranks.map((rank, index) => ({ ...rank, index }));
  const others = rows.filter((row) => row.clock.basis !== 'reference');
  const known = others.filter((row) => row.clock.uncertainty_ns !== null);
  const unknown = others.length - known.length;
  const least = known.reduce((worst, row) => Math.max(worst, row.clock.uncertainty_ns!), 0);
  const farthest = rows.reduce((a, b) => (Math.abs(b.clock.offset_ns) > Math.abs(a.clock.offset_ns) ? b : a));
  const summary = others.length === 0
    ? 'One clock: nothing to compare.'
    : (farthest.clock.offset_ns === 0 ? 'No offset between the clocks was found. ' : `Largest offset: ${rankLabel(data, farthest.index)} with ${duration(farthest.clock.offset_ns)}. `) +
      (known.length > 0 ? `Uncertainty at most ± ${duration(least)}: ranks that are closer than that have no known order. ` : '') +
      (unknown > 0 ? `Not known for ${plural(unknown, 'trace')}: they share no collective, so their order against others is not known.` : '');
  return (
    <Figure
      id="clocks"
      title="Clocks"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', value: (row) => rankLabel(data, row.index) },
        { key: 'offset_ns', title: 'Offset', numeric: true, value: (row) => row.clock.offset_ns, text: (row) => duration(row.clock.offset_ns), help: 'How far this clock is ahead of the reference' },
        { key: 'uncertainty_ns', title: 'Uncertainty', numeric: true, value: (row) => row.clock.uncertainty_ns, text: (row) => (row.clock.uncertainty_ns === null ? '–' : `± ${duration(row.clock.uncertainty_ns)}`) },
        { key: 'drift_ppm', title: 'Drift', numeric: true, value: (row) => row.clock.drift_ppm, text: (row) => `${number(row.clock.drift_ppm)} ppm` },
        { key: 'sample_count', title: 'Collectives used', numeric: true, value: (row) => row.clock.sample_count },
        { key: 'basis', title: 'Basis', value: (row) => row.clock.basis, text: (row) => BASIS[row.clock.basis] ?? row.clock.basis },
      ]}
      rows={rows}
      rowKey={(row) => String(row.index)}
      sort="-uncertainty_ns"
    >
      <Offsets data={data} rows={rows} label={summary} />
    </Figure>
  );
}

function Quality({ data, source }: ViewProps) {
  const page = source.document as PageDocument<AnalyzeData>;
  const ledger = [...page.ledger].sort((a, b) => SEVERITY_ORDER[b.severity] - SEVERITY_ORDER[a.severity] || b.count - a.count);
  const { job } = data;
  const facts: [string, string][] = [
    ['Ranks', job.world_size === null ? `${count(job.rank_count)} read; the files do not say how many there were` : `${count(job.rank_count)} of ${count(job.world_size)} read`],
    ['Missing', job.missing_ranks.length === 0 ? 'none known' : rankList(job.missing_ranks, 12)],
    ['Ledger', ledger.length === 0 ? 'nothing was repaired, skipped or guessed' : `${plural(ledger.length, 'entry', 'entries')}, below`],
    ['Left out of this page', page.reductions.length === 0 ? 'nothing' : page.reductions.map((each) => each.message).join(' ')],
  ];
  return (
    <>
      <section aria-label="In short">
        <dl class="facts-list">
          {facts.map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}
        </dl>
      </section>
      <LedgerTable ledger={ledger} />
      {data.ranks.length > 0 && <Clocks data={data} />}
      <DataTable
        id="files"
        caption="Files"
        columns={[
          { key: 'rank', title: 'Rank', value: (row) => rankLabel(data, data.ranks.indexOf(row)) },
          { key: 'host', title: 'Host', value: (row) => row.host },
          { key: 'device', title: 'Device', value: (row) => row.device },
          { key: 'step_count', title: 'Steps', numeric: true, value: (row) => row.step_count },
          { key: 'event_count', title: 'Events', numeric: true, value: (row) => row.event_count },
          { key: 'source', title: 'File', value: (row) => row.source, width: 80 },
        ]}
        rows={data.ranks}
        rowKey={(row) => `${row.rank}-${row.window}`}
        search={['rank', 'host', 'device', 'source']}
      />
    </>
  );
}

export const qualityView: View = {
  id: 'quality',
  title: 'Data quality',
  shows: 'Whether this page can be trusted: what is missing, what was repaired, and how well the clocks agree.',
  group: 'Data',
  component: Quality,
};
