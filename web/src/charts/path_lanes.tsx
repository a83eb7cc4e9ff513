import { Tooltip, useTip } from '../parts/tooltip';
import { useWidth } from '../parts/measure';
import { duration } from '../numbers';
import { axisFromZero, cutText, textWidth } from './scales';

export interface PathBar {
  lane: number;
  mark: string;
  label: string;
  start_ns: number;
  duration_ns: number;
}

const ROW = 30;
const BAR = 16;

/**
 * A chain of work over lanes (ranks), in time: bars where it ran, and a line from the end of one to the start of the next where it
 * changes lanes.
 */
export function PathLanes({ lanes, bars, span_ns, label }: { lanes: readonly string[]; bars: readonly PathBar[]; span_ns: number; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const gutter = Math.min(width * 0.25, Math.max(40, ...lanes.map(textWidth)) + 12);
  const plot = Math.max(60, width - gutter - 14);
  const axis = axisFromZero(span_ns, plot, 'ns');
  const height = lanes.length * ROW + 26;
  const x = (ns: number) => gutter + axis.at(ns);
  const middle = (lane: number) => lane * ROW + ROW / 2;
  // One path per mark: thousands of bars are no burden.
  const marks = [...new Set(bars.map((bar) => bar.mark))];
  const paths = marks.map((mark) => ({
    mark,
    d: bars.filter((bar) => bar.mark === mark)
      .map((bar) => `M${x(bar.start_ns).toFixed(2)} ${middle(bar.lane) - BAR / 2}h${Math.max(0.6, axis.at(bar.duration_ns)).toFixed(2)}v${BAR}H${x(bar.start_ns).toFixed(2)}Z`)
      .join(''),
  }));
  let links = '';
  for (let at = 1; at < bars.length; ++at) {
    const [from, to] = [bars[at - 1]!, bars[at]!];
    if (from.lane === to.lane) continue;
    const end = x(from.start_ns + from.duration_ns);
    const down = to.lane > from.lane ? BAR / 2 : -BAR / 2;
    links += `M${end.toFixed(1)} ${middle(from.lane) + down}L${Math.max(end, x(to.start_ns)).toFixed(1)} ${middle(to.lane) - down}`;
  }
  const onMove = (event: MouseEvent) => {
    const box = ref.current!.getBoundingClientRect();
    const time = ((event.clientX - box.left - gutter) / plot) * axis.max;
    const lane = Math.floor((event.clientY - box.top) / ROW);
    const slack = (2 / plot) * axis.max;
    let best: PathBar | null = null;
    for (const bar of bars) {
      if (bar.lane !== lane || time < bar.start_ns - slack || time > bar.start_ns + bar.duration_ns + slack) continue;
      if (best === null || (time >= bar.start_ns && time < bar.start_ns + bar.duration_ns)) best = bar;
    }
    show(best && {
      x: event.clientX - box.left, y: (lane + 1) * ROW,
      content: <><strong>{lanes[best.lane]}</strong><div>{best.label}</div><div class="tip-line"><span>at {duration(best.start_ns)}</span><span class="number">{duration(best.duration_ns)}</span></div></>,
    });
  };
  return (
    <div ref={ref} class="chart" onMouseMove={onMove} onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={height} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value} transform={`translate(${x(tick.value)},0)`}>
            <line class="grid" y1={0} y2={height - 22} />
            <text class="muted" y={height - 7} text-anchor={tick.value === 0 ? 'start' : 'middle'}>{tick.text}</text>
          </g>
        ))}
        {lanes.map((lane, at) => (
          <g key={lane + at}>
            <line class="grid" x1={gutter} x2={gutter + plot} y1={middle(at)} y2={middle(at)} />
            <text x={gutter - 8} y={middle(at) + 4} text-anchor="end">{cutText(lane, gutter - 12)}</text>
          </g>
        ))}
        <path class="path-link" d={links} />
        {paths.map((path) => <path key={path.mark} class={`fill-${path.mark}`} d={path.d} />)}
        <line class="axis" x1={gutter} x2={gutter} y1={0} y2={height - 22} />
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
