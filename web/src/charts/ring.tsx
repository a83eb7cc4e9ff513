import type { NcclRing, RingEdge } from '../data/nccl';
import { channelText, ringEdges } from '../data/nccl';
import { cutText } from './scales';

const WIDTH = 600;
/** Without the names of hosts. */
const NARROW = 290;
const HEIGHT = 300;
const RADIUS = 104;
const HOST_RADIUS = 126;
const MOST_LABELS = 40;
const MOST_ARROWS = 200;
const MOST_HOST_NAMES = 16;
const HEAD = 7;

const point = (angle: number, radius: number): [number, number] => [WIDTH / 2 + radius * Math.cos(angle), HEIGHT / 2 + radius * Math.sin(angle)];
const arc = (from: number, to: number, radius: number) => {
  const [x1, y1] = point(from, radius);
  const [x2, y2] = point(to, radius);
  return `M${x1.toFixed(1)} ${y1.toFixed(1)}A${radius} ${radius} 0 ${to - from > Math.PI ? 1 : 0} 1 ${x2.toFixed(1)} ${y2.toFixed(1)}`;
};

/** The tip touches the border of the next rank. */
function head(angle: number): string {
  const [x, y] = point(angle, RADIUS);
  const back = angle - HEAD / RADIUS;
  const [x1, y1] = point(back, RADIUS - HEAD / 2);
  const [x2, y2] = point(back, RADIUS + HEAD / 2);
  return `M${x.toFixed(1)} ${y.toFixed(1)}L${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}Z`;
}

/** Stretches of the ring that stay on one host: first place, and that behind the last one. */
function stretches(edges: readonly RingEdge[]): { from: number; to: number; host: string | null }[] {
  const begins = [...edges.keys()].filter((at) => edges[at]!.host !== edges[(at + edges.length - 1) % edges.length]!.host);
  if (begins.length === 0) return [{ from: 0, to: edges.length, host: edges[0]?.host ?? null }];
  return begins.map((from, i) => ({ from, to: begins[i + 1] ?? begins[0]! + edges.length, host: edges[from]!.host }));
}

/** A ring in its own order, so that no two of its edges cross, with the hosts that it runs through around it; their names stand below it where `width` has no room. */
export function Ring({ ring, hosts, width }: { ring: NcclRing; hosts: ReadonlyMap<number, string>; width: number }) {
  const edges = ringEdges(ring, hosts);
  const count = edges.length;
  const angle = (place: number) => (2 * Math.PI * place) / count - Math.PI / 2;
  const labels = count <= MOST_LABELS;
  const radius = labels ? 11 : Math.min(4, (Math.PI * RADIUS) / count);
  const room = (radius + 1) / RADIUS;
  const parts = stretches(edges);
  const title = `Channel ${channelText(ring.channels)}`;
  const narrow = width < WIDTH;
  const drawn = narrow ? NARROW : WIDTH;
  const names = parts.flatMap(({ host }) => host ?? []).slice(0, MOST_HOST_NAMES);
  return (
    <figure class="ring">
      <svg class="plot" width={drawn} height={HEIGHT} viewBox={`${(WIDTH - drawn) / 2} 0 ${drawn} ${HEIGHT}`} role="img" aria-label={`${title}: ring through ranks ${ring.order.slice(0, 256).join(', ')}`}>
        {parts.map(({ from, to, host }) => {
          const [begin, end] = parts.length === 1 ? [angle(0), angle(count) - 0.001] : [angle(from - 0.35), angle(to - 0.65)];
          const middle = parts.length === 1 ? -Math.PI / 2 : (begin + end) / 2;
          const [x, y] = point(middle, HOST_RADIUS + 9);
          const side = Math.cos(middle);
          return (
            <g key={from}>
              <path class="ring-host" d={arc(begin, end, HOST_RADIUS)}><title>{host ?? 'unknown host'}</title></path>
              {!narrow && host !== null && parts.length <= MOST_HOST_NAMES && (
                <text class="muted" x={x} y={y + 4 + 6 * Math.sin(middle)} text-anchor={side > 0.3 ? 'start' : side < -0.3 ? 'end' : 'middle'}>{cutText(host, Math.abs(side) > 0.3 ? WIDTH / 2 - HOST_RADIUS - 14 : WIDTH / 2)}<title>{host}</title></text>
              )}
            </g>
          );
        })}
        {count > 1 && edges.map((edge) => {
          const [from, to] = [angle(edge.place) + room, angle(edge.place + 1) - room];
          if (to <= from) return null;
          return (
            <g key={edge.place} class={edge.between_hosts ? 'ring-edge between' : 'ring-edge'}>
              <path class="ring-line" d={arc(from, count <= MOST_ARROWS ? Math.max(from, to - HEAD / RADIUS / 2) : to, RADIUS)} />
              {count <= MOST_ARROWS && <path class="ring-head" d={head(to)} />}
              <title>{`${edge.rank} to ${edge.next_rank}${edge.between_hosts ? `, from ${edge.host ?? 'an unknown host'} to ${edge.next_host ?? 'an unknown host'}` : ''}`}</title>
            </g>
          );
        })}
        {edges.map((edge) => {
          const [x, y] = point(angle(edge.place), RADIUS);
          return (
            <g key={edge.place}>
              <circle class="ring-rank" cx={x} cy={y} r={radius} />
              {labels && <text x={x} y={y + 4} text-anchor="middle">{edge.rank}</text>}
            </g>
          );
        })}
      </svg>
      <figcaption class="muted">{title}{narrow && names.length > 0 && `; hosts from the top: ${names.join(', ')}`}</figcaption>
    </figure>
  );
}
