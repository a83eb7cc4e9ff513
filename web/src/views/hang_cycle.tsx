import { groupLabel, groupShort, type HangData, type WaitEdge } from '../data/hang';
import { plural, rankList } from '../numbers';
import { Note } from '../parts/controls';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import type { View, ViewProps } from '../view';

const MOST_NODES = 12;

function cycleOf(data: HangData): readonly WaitEdge[] {
  return [data.verdict, ...data.context].find((verdict) => verdict.cycle.length > 0)?.cycle ?? [];
}

function operationWords(edge: WaitEdge): string {
  return `${edge.operation || 'operation'}${edge.sequence === null ? '' : ` #${edge.sequence}`}`;
}
function groupWords(data: HangData, edge: WaitEdge, label = groupLabel): string {
  const group = data.groups.find((each) => each.name === edge.group);
  return edge.group ? `of ${group ? label(group) : edge.group}` : '';
}
function edgeWords(data: HangData, edge: WaitEdge): string {
  return `${operationWords(edge)} ${groupWords(data, edge)}`.trim();
}
function cut(text: string): string {
  return text.length > 34 ? `${text.slice(0, 33)}…` : text;
}

/** Ranks around a circle; an arrow goes from who waits to who is waited for. */
function Circle({ data, cycle, label }: { data: HangData; cycle: readonly WaitEdge[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const nodes = [...new Set(cycle.map((edge) => edge.rank))];
  const culprits = new Set(data.verdict.culprit_ranks);
  const radius = Math.min(190, 80 + nodes.length * 12);
  const height = nodes.length === 2 ? 190 : 2 * radius + 110;
  const middle = { x: width / 2, y: height / 2 };
  const at = (index: number) => {
    const angle = -Math.PI / 2 + (index / nodes.length) * 2 * Math.PI + (nodes.length === 2 ? Math.PI / 2 : 0);
    return { x: middle.x + radius * Math.cos(angle), y: middle.y + radius * Math.sin(angle) };
  };
  const edges = cycle.flatMap((edge) => {
    const from = nodes.indexOf(edge.rank);
    return edge.waits_for.map((rank) => nodes.indexOf(rank)).filter((to) => to >= 0 && to !== from).map((to) => ({ edge, from, to }));
  });
  const named = new Set<number>();
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        <defs>
          <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="wait-head" d="M0 0 10 5 0 10z" /></marker>
        </defs>
        {edges.map(({ edge, from, to }, index) => {
          const a = at(from);
          const b = at(to);
          const long = Math.hypot(b.x - a.x, b.y - a.y);
          const [ux, uy] = [(b.x - a.x) / long, (b.y - a.y) / long];
          // To the left of its way, so that two that wait for each other have two arrows.
          const bend = Math.min(46, long * 0.22);
          const control = { x: (a.x + b.x) / 2 + uy * bend, y: (a.y + b.y) / 2 - ux * bend };
          const toward = (p: { x: number; y: number }, r: number) => {
            const d = Math.hypot(control.x - p.x, control.y - p.y);
            return `${(p.x + ((control.x - p.x) / d) * r).toFixed(1)} ${(p.y + ((control.y - p.y) / d) * r).toFixed(1)}`;
          };
          const first = !named.has(from);
          named.add(from);
          const text = { x: (a.x + b.x) / 2 + uy * (bend * 0.5 + 14), y: (a.y + b.y) / 2 - ux * (bend * 0.5 + 18) };
          return (
            <g key={index}>
              <path class="wait-edge" d={`M${toward(a, 24)}Q${control.x.toFixed(1)} ${control.y.toFixed(1)} ${toward(b, 26)}`} marker-end="url(#arrow)" />
              {first && (
                <text class="muted" x={text.x} y={text.y + (text.y < middle.y - 8 ? -10 : 2)} text-anchor={Math.abs(uy) < 0.3 ? 'middle' : uy > 0 ? 'start' : 'end'}>
                  <tspan x={text.x}>{cut(operationWords(edge))}</tspan>
                  <tspan x={text.x} dy="14">{cut(groupWords(data, edge, groupShort))}</tspan>
                </text>
              )}
            </g>
          );
        })}
        {nodes.map((rank, index) => {
          const p = at(index);
          return (
            <g key={rank}>
              <circle class={culprits.has(rank) ? 'wait-node culprit' : 'wait-node'} cx={p.x} cy={p.y} r="22" />
              <text x={p.x} y={p.y + 4} text-anchor="middle">{rank}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Cycle({ data }: ViewProps<HangData>) {
  const cycle = cycleOf(data);
  const ranks = [...new Set(cycle.map((edge) => edge.rank))];
  const summary = `${cycle.slice(0, 4).map((edge) => `Rank ${edge.rank} waits in ${edgeWords(data, edge)} for ${rankList(edge.waits_for)}`).join('; ')}${cycle.length > 4 ? '; and so on' : ''}: none of the ${ranks.length} can go first.`;
  return (
    <Figure
      id="cycle"
      title="Who waits for whom"
      summary={summary}
      columns={[
        { key: 'rank', title: 'Rank', numeric: true, value: (row: WaitEdge) => row.rank, text: (row) => String(row.rank) },
        { key: 'operation', title: 'Waits in', value: (row) => edgeWords(data, row), width: 60 },
        { key: 'waits_for', title: 'For', value: (row) => rankList(row.waits_for) },
      ]}
      rows={cycle}
      rowKey={(row) => `${row.rank} ${row.group} ${row.sequence} ${row.operation}`}
    >
      {ranks.length > MOST_NODES ? <Note>{plural(ranks.length, 'rank')} are in it; the table has them all. Drawn: the first {MOST_NODES}.</Note> : null}
      <Circle data={data} cycle={cycle.filter((edge) => ranks.indexOf(edge.rank) < MOST_NODES)} label={summary} />
    </Figure>
  );
}

export const cycleView: View<HangData> = {
  id: 'cycle',
  title: 'Wait-for cycle',
  shows: 'Ranks that wait for each other in a circle: each in which operation, for whom.',
  group: 'Evidence',
  missing: (data) => (cycleOf(data).length > 0 ? null : 'No ranks wait for each other in a circle.'),
  component: Cycle,
};
