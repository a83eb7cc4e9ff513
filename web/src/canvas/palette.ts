import { classColor, inkOn, token, viridis, type Rgb } from '../colors';
import { TIMELINE_CLASSES } from '../data/types';

/** What a canvas draws with: the colours of the theme that is on, as CSS text and as pixels. */
export interface Palette {
  text: string;
  muted: string;
  background: string;
  panel: string;
  grid: string;
  line: string;
  focus: string;
  select: string;
  critical: string;
  /** In the order of TIMELINE_CLASSES, and one more for events without a class. */
  classes: string[];
  class_rgb: Rgb[];
  background_rgb: Rgb;
}

/** "#rrggbb" or "rgb(r, g, b)". */
export function parseColor(text: string): Rgb {
  const hex = /^#([0-9a-f]{6})$/i.exec(text.trim());
  if (hex) {
    const value = parseInt(hex[1]!, 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  }
  const numbers = text.match(/\d+(\.\d+)?/g);
  return numbers && numbers.length >= 3 ? [Number(numbers[0]), Number(numbers[1]), Number(numbers[2])] : [128, 128, 128];
}

export function mix(from: Rgb, to: Rgb, part: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(from[i]! + (to[i]! - from[i]!) * part)) as unknown as Rgb;
}

/** A pixel of ImageData seen as Uint32Array; every machine that runs a browser stores the low byte first. */
export function pixel(color: Rgb, alpha = 255): number {
  return ((alpha << 24) | (color[2] << 16) | (color[1] << 8) | color[0]) >>> 0;
}

/** Reads the theme that is on. */
export function readPalette(): Palette {
  const classes = [...TIMELINE_CLASSES.map((name) => classColor(name)), token('--idle')];
  return {
    text: token('--text'), muted: token('--muted'), background: token('--background'), panel: token('--panel'),
    grid: token('--grid'), line: token('--strong-line'), focus: token('--focus'), select: token('--select'),
    critical: token('--critical'),
    classes, class_rgb: classes.map(parseColor), background_rgb: parseColor(token('--background')),
  };
}

/** Codes of the cells of a grid. */
export const CODE_MOST = 253;
/** Measured, and none of it. */
export const CODE_NONE = 254;
export const CODE_NOT_MEASURED = 255;

/** Colour of each code: viridis, nothing for "none" and for "not measured" (hatched below). */
export function codePixels(): Uint32Array {
  const pixels = new Uint32Array(256);
  for (let code = 0; code <= CODE_MOST; ++code) pixels[code] = pixel(viridis(code / CODE_MOST));
  return pixels;
}

export function inkOnCode(code: number): string {
  return inkOn(viridis(code / CODE_MOST));
}

const hatches = new Map<string, CanvasPattern | null>();

/** Oblique lines: "not measured". */
export function hatch(draw: CanvasRenderingContext2D, color: string): CanvasPattern | string {
  if (!hatches.has(color)) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const on = tile.getContext('2d')!;
    on.strokeStyle = color;
    on.lineWidth = 1;
    on.beginPath();
    for (const shift of [-6, 0, 6]) {
      on.moveTo(shift - 1, 7);
      on.lineTo(shift + 7, -1);
    }
    on.stroke();
    hatches.set(color, draw.createPattern(tile, 'repeat'));
  }
  return hatches.get(color) ?? color;
}
