import { useWidth } from '../parts/measure';
import { cutText } from './scales';

export interface ChainLink {
  /** Who is waited for. */
  node: string;
  /** Two short lines on the arrow to it: how long, in what. */
  wait: string;
  where: string;
}

const BOX = { width: 92, height: 34 };
const STEP = 250;
const ROW = 66;

/** Who waited for whom, from left to right, to where it began: boxes with arrows, on as many lines as it takes. */
export function WaitChain({ first, links, label }: { first: string; links: readonly ChainLink[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const per_row = Math.max(1, Math.floor((width - BOX.width - 4) / STEP));
  const nodes = [first, ...links.map((link) => link.node)];
  const at = (index: number) => ({ x: (index % (per_row + 1)) * STEP + 2, y: Math.floor(index / (per_row + 1)) * ROW + 6 });
  const rows = Math.floor((nodes.length - 1) / (per_row + 1)) + 1;
  const height = rows * ROW - 10;
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        <defs>
          <marker id="chain-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="wait-head" d="M0 0 10 5 0 10z" /></marker>
        </defs>
        {links.map((link, index) => {
          const a = at(index);
          const b = at(index + 1);
          const y = a.y + BOX.height / 2;
          if (a.y !== b.y) {
            // The next one begins a line below.
            return (
              <g key={index}>
                <path class="wait-edge" d={`M${a.x + BOX.width / 2} ${a.y + BOX.height}v8H${b.x + BOX.width / 2}V${b.y - 2}`} marker-end="url(#chain-arrow)" />
                <text class="muted" x={b.x + BOX.width / 2 + 12} y={a.y + BOX.height + 22}>{cutText(`${link.wait}, ${link.where}`, width - BOX.width)}</text>
              </g>
            );
          }
          return (
            <g key={index}>
              <path class="wait-edge" d={`M${a.x + BOX.width} ${y}H${b.x - 2}`} marker-end="url(#chain-arrow)" />
              <text x={(a.x + BOX.width + b.x) / 2 - 3} y={y - 6} text-anchor="middle">{cutText(link.wait, STEP - BOX.width - 14)}</text>
              <text class="muted" x={(a.x + BOX.width + b.x) / 2 - 3} y={y + 16} text-anchor="middle">{cutText(link.where, STEP - BOX.width - 14)}</text>
            </g>
          );
        })}
        {nodes.map((node, index) => {
          const p = at(index);
          return (
            <g key={index}>
              <rect class={index === nodes.length - 1 ? 'wait-node culprit' : 'wait-node'} x={p.x} y={p.y} width={BOX.width} height={BOX.height} rx="5" />
              <text x={p.x + BOX.width / 2} y={p.y + BOX.height / 2 + 4} text-anchor="middle">{cutText(node, BOX.width - 8)}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
