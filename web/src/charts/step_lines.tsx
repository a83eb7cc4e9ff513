import { Tooltip, useTip } from '../parts/tooltip';
import { useWidth } from '../parts/measure';
import { duration } from '../numbers';
import { axisFromZero, labelStride } from './scales';

export interface StepSeries {
  label: string;
  /** 1 to 6: colours of .line-series-N. */
  series: number;
  /** One value a step; null = none. */
  values: readonly (number | null)[];
}

const LEFT = 64;
const TOP = 8;
const BOTTOM = 40;
const HEIGHT = 240;

/** Times of steps as dots with a line through them, several series above each other. */
export function StepLines({ steps, series, label }: { steps: readonly number[]; series: readonly StepSeries[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [tip, show] = useTip();
  const plot_width = Math.max(80, width - LEFT - 14);
  const plot_height = HEIGHT - TOP - BOTTOM;
  const most = Math.max(0, ...series.flatMap((each) => each.values.map((value) => value ?? 0)));
  const axis = axisFromZero(most, plot_height, 'ns', 46);
  const pitch = Math.min(80, plot_width / Math.max(1, steps.length));
  const x = (at: number) => LEFT + (at + 0.5) * pitch;
  const y = (value: number) => TOP + plot_height - axis.at(value);
  const stride = labelStride(steps.length, steps.length * pitch, 56);
  const onMove = (event: MouseEvent) => {
    const at = Math.floor((event.clientX - ref.current!.getBoundingClientRect().left - LEFT) / pitch);
    show(steps[at] === undefined ? null : {
      x: x(at), y: TOP + 4,
      content: (
        <>
          <strong>step {steps[at]}</strong>
          {series.map((each) => <div key={each.label} class="tip-line"><span>{each.label}</span><span class="number">{duration(each.values[at])}</span></div>)}
        </>
      ),
    });
  };
  return (
    <div ref={ref} class="chart" onMouseMove={onMove} onMouseLeave={() => show(null)}>
      <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={label}>
        {axis.ticks.map((tick) => (
          <g key={tick.value}>
            <line class="grid" x1={LEFT} x2={LEFT + plot_width} y1={y(tick.value)} y2={y(tick.value)} />
            <text class="muted" x={LEFT - 8} y={y(tick.value) + 4} text-anchor="end">{tick.text}</text>
          </g>
        ))}
        {series.map((each, layer) => (
          <g key={each.label} class={`line-series-${each.series}`}>
            <path class="trend" d={each.values.map((value, at) => (value === null ? '' : `${at > 0 && each.values[at - 1] !== null ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`)).join('')} />
            {pitch >= 5 && each.values.map((value, at) => value !== null && <circle key={at} class="dot" cx={x(at)} cy={y(value)} r={Math.min(6 - Math.min(3, 2 * layer), pitch / 3)} />)}
          </g>
        ))}
        <line class="axis" x1={LEFT} x2={LEFT + plot_width} y1={TOP + plot_height} y2={TOP + plot_height} />
        {steps.map((step, at) => at % stride === 0 && (
          <text key={at} class="muted" x={x(at)} y={TOP + plot_height + 16} text-anchor="middle">{step}</text>
        ))}
        <text class="muted" x={LEFT} y={HEIGHT - 4}>step</text>
      </svg>
      <Tooltip tip={tip} width={width} />
    </div>
  );
}
