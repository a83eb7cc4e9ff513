/**
 * Colours. The classes have one colour each in every view, set per theme in styles (`--compute` and so on), at least
 * 3:1 against the background; quantities use viridis or cividis, which keep their order in grey and for colour-blind
 * readers. Nothing is told by colour alone: there is always a text, a pattern or a table.
 */

export type ClassName = 'compute' | 'communication' | 'memory' | 'host' | 'idle';

export const CLASS_LABELS: Record<ClassName, string> = {
  compute: 'compute',
  communication: 'communication',
  memory: 'copies',
  host: 'host',
  idle: 'idle',
};

/** A CSS variable's value now, for drawing on a canvas: `token('--grid')`. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function classColor(name: ClassName): string {
  return token(`--${name}`);
}

export type Rgb = readonly [number, number, number];

// Anchors of the two maps at equal distances, as published by their authors (viridis: CC0; cividis: Nuñez et al. 2018).
const VIRIDIS: readonly Rgb[] = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50],
  [253, 231, 37],
];
const CIVIDIS: readonly Rgb[] = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105],
  [254, 232, 56],
];

function ramp(stops: readonly Rgb[]): (t: number) => Rgb {
  return (t) => {
    const at = Math.min(1, Math.max(0, t)) * (stops.length - 1);
    const left = Math.min(stops.length - 2, Math.floor(at));
    const part = at - left;
    const a = stops[left]!;
    const b = stops[left + 1]!;
    return [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * part)) as unknown as Rgb;
  };
}

/** 0 (dark) to 1 (bright). */
export const viridis = ramp(VIRIDIS);
export const cividis = ramp(CIVIDIS);

export function css(color: Rgb): string {
  return `rgb(${color[0]},${color[1]},${color[2]})`;
}

/** Black or white, whichever reads better on the colour. */
export function inkOn(color: Rgb): string {
  const [r, g, b] = color.map((v) => {
    const c = v / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff';
}
