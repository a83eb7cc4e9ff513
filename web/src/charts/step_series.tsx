import { useWidth } from '../parts/measure';
import { duration } from '../numbers';
import { axisFromZero } from './scales';
import { linePath } from './time_lines';

const LEFT = 70;
const TOP = 8;
const HEIGHT = 240;
const BOTTOM = 40;

/** Times of several runs side by side, each from its first value at the left to its last at the right, however many it has. */
export function StepSeries({ series, xTitle, label }: { series: readonly { label: string; values: readonly number[] }[]; xTitle: string; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const plot_width = Math.max(80, width - LEFT - 16);
  const plot_height = HEIGHT - TOP - BOTTOM;
  const axis = axisFromZero(Math.max(1, ...series.flatMap((each) => each.values)), plot_height, 'ns', 50);
  const y = (value: number) => TOP + plot_height - axis.at(value);
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value}>
            <line class="grid" x1={LEFT} x2={LEFT + plot_width} y1={y(tick.value)} y2={y(tick.value)} />
            <text class="muted" x={LEFT - 8} y={y(tick.value) + 4} text-anchor="end">{tick.text}</text>
          </g>
        ))}
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <text key={share} class="muted" x={LEFT + share * plot_width} y={TOP + plot_height + 16} text-anchor={share === 0 ? 'start' : share === 1 ? 'end' : 'middle'}>{`${100 * share} %`}</text>
        ))}
        {series.map((each, at) => (
          <g key={each.label} class={`line-series-${(at % 6) + 1}`}>
            <path class="series-line" d={linePath(each.values, (i) => LEFT + (each.values.length > 1 ? i / (each.values.length - 1) : 0.5) * plot_width, y)} />
            <title>{`${each.label}: ${each.values.length} values, the last ${duration(each.values[each.values.length - 1] ?? null)}`}</title>
          </g>
        ))}
        <line class="axis" x1={LEFT} x2={LEFT + plot_width} y1={TOP + plot_height} y2={TOP + plot_height} />
        <text class="muted" x={LEFT} y={HEIGHT - 4}>{xTitle}</text>
      </svg>
    </div>
  );
}
