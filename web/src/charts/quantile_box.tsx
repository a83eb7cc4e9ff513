/** Minimum, quartiles and maximum on a line from 0 to `max`: a row's spread at a glance. The words are beside it. */
export function QuantileBox({ values, max, width = 130 }: { values: readonly [number, number, number, number, number]; max: number; width?: number }) {
  const x = (value: number) => 3 + (max > 0 ? (Math.max(0, value) / max) * (width - 6) : 0);
  const [low, quarter, middle, upper, high] = values;
  return (
    <svg class="quantile-box" width={width} height={16} viewBox={`0 0 ${width} 16`} aria-hidden="true">
      <line class="base" x1={3} x2={width - 3} y1={8} y2={8} />
      <line class="whisker" x1={x(low)} x2={x(high)} y1={8} y2={8} />
      <rect class="box" x={x(quarter)} y={4} width={Math.max(1, x(upper) - x(quarter))} height={8} />
      <line class="middle" x1={x(middle)} x2={x(middle)} y1={2} y2={14} />
      <circle class="end" cx={x(low)} cy={8} r={1.5} />
      <circle class="end" cx={x(high)} cy={8} r={1.5} />
    </svg>
  );
}
