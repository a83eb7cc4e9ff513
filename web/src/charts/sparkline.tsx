import { linePath } from './time_lines';

/** A line without axes, from its least to its largest value; the newest at the right. Its words stand beside it. */
export function Sparkline({ values, width = 110, height = 26, label }: { values: readonly (number | null)[]; width?: number; height?: number; label?: string }) {
  const measured = values.filter((value): value is number => value !== null);
  const least = Math.min(...measured);
  const most = Math.max(...measured);
  // What hardly changes is to look as if it hardly changed.
  const room = Math.max(0, most * 0.1 - (most - least)) / 2;
  const [low, high] = [least - room, Math.max(most + room, least + 1e-9)];
  const x = (at: number) => (at / Math.max(1, values.length - 1)) * (width - 2) + 1;
  const y = (value: number) => height - 2 - ((value - low) / (high - low)) * (height - 4);
  return (
    <svg class="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role={label ? 'img' : undefined} aria-label={label} aria-hidden={label ? undefined : 'true'}>
      {measured.length === 0
        ? <rect class="fill-absent" x={0} y={height / 2 - 4} width={width} height={8} />
        : <path class="time-line line-series-1" d={linePath(values, x, y)} />}
    </svg>
  );
}
