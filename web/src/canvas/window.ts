/** A stretch of the run: [start_ns, end_ns) from the page's zero. Fractions are allowed; nothing narrower than MIN_NS. */
export interface TimeWindow {
  start_ns: number;
  end_ns: number;
}

/** Wide enough for one kernel of a nanosecond to fill a third of the picture. */
export const MIN_NS = 100;

/** Keeps a window within the run and not narrower than MIN_NS. */
export function clampWindow(window: TimeWindow, span_ns: number): TimeWindow {
  const whole = Math.max(span_ns, MIN_NS);
  const width = Math.min(whole, Math.max(MIN_NS, window.end_ns - window.start_ns));
  const start = Math.min(Math.max(0, window.start_ns), whole - width);
  return { start_ns: start, end_ns: start + width };
}

/** `factor` below 1 zooms in; the time at `at_ratio` (0 = left edge, 1 = right) stays where it is. */
export function zoomWindow(window: TimeWindow, span_ns: number, factor: number, at_ratio: number): TimeWindow {
  const width = window.end_ns - window.start_ns;
  const fixed = window.start_ns + width * at_ratio;
  const next = Math.min(Math.max(span_ns, MIN_NS), Math.max(MIN_NS, width * factor));
  return clampWindow({ start_ns: fixed - next * at_ratio, end_ns: fixed + next * (1 - at_ratio) }, span_ns);
}

/** `ratio` of the window's width to the right. */
export function panWindow(window: TimeWindow, span_ns: number, ratio: number): TimeWindow {
  const shift = (window.end_ns - window.start_ns) * ratio;
  return clampWindow({ start_ns: window.start_ns + shift, end_ns: window.end_ns + shift }, span_ns);
}

/** "1200-3400" in the address; anything else is null. Within the run, and not empty. */
export function parseSpan(text: string, span_ns: number): TimeWindow | null {
  const match = /^(\d{1,18})-(\d{1,18})$/.exec(text);
  if (!match) return null;
  const [start_ns, end_ns] = [Math.max(0, Number(match[1])), Math.min(Math.max(span_ns, MIN_NS), Number(match[2]))];
  return end_ns > start_ns ? { start_ns, end_ns } : null;
}

/** The same as what is in view; anything else is the whole run. */
export function parseWindow(text: string, span_ns: number): TimeWindow {
  return clampWindow(parseSpan(text, span_ns) ?? { start_ns: 0, end_ns: span_ns }, span_ns);
}

export function windowText(window: TimeWindow, span_ns: number): string {
  if (window.start_ns <= 0 && window.end_ns >= span_ns) return '';
  return `${Math.round(window.start_ns)}-${Math.round(window.end_ns)}`;
}

/** Round times in the window, about one per `space` pixels, and the distance between two of them. */
export function timeTicks(window: TimeWindow, width: number, space = 110): { values: number[]; step_ns: number } {
  const wanted = ((window.end_ns - window.start_ns) / Math.max(1, width)) * space;
  const scale = 10 ** Math.floor(Math.log10(Math.max(1, wanted)));
  const step = [1, 2, 5, 10].map((n) => n * scale).find((n) => n >= wanted)!;
  const values: number[] = [];
  for (let k = Math.ceil(window.start_ns / step); k * step <= window.end_ns; ++k) values.push(k * step);
  return { values, step_ns: step };
}

/** An instant with as many digits as the distance of the ticks asks for: "12.34 ms". */
export function tickText(time_ns: number, step_ns: number, span_ns: number): string {
  const [unit, name] = span_ns >= 1e9 ? [1e9, 's'] : span_ns >= 1e6 ? [1e6, 'ms'] : span_ns >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step_ns / (unit as number)) - 1e-9));
  return `${(time_ns / (unit as number)).toFixed(digits)} ${name}`;
}
