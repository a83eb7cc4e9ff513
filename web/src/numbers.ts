/**
 * Numbers for people, as lockstep's text report writes them (src/present/report/format.h): three significant digits and a
 * unit. `null` is "not measured" and is never shown as 0.
 */

export const NOT_MEASURED = 'not measured';
/** In the cells of a table, where the long form would be noise. Cells carry NOT_MEASURED as their title. */
export const ABSENT = '–';

type Maybe = number | null | undefined;

function threeDigits(value: number): string {
  if (value < 9.995) return value.toFixed(2);
  if (value < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}

function withUnit(value: number, units: readonly (readonly [number, string])[]): string {
  const magnitude = Math.abs(value);
  let chosen = 0;
  while (chosen + 1 < units.length) {
    const limit = units[chosen + 1]![0] / units[chosen]![0];
    if (magnitude / units[chosen]![0] < limit - 0.5) break;
    ++chosen;
  }
  const sign = value < 0 ? '-' : '';
  const [size, name] = units[chosen]!;
  if (chosen === 0) return `${sign}${magnitude.toFixed(0)} ${name}`;
  return `${sign}${threeDigits(magnitude / size)} ${name}`;
}

const TIME = [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']] as const;
const BYTES = [[1, 'B'], [1024, 'KiB'], [1024 ** 2, 'MiB'], [1024 ** 3, 'GiB'], [1024 ** 4, 'TiB'], [1024 ** 5, 'PiB']] as const;
const RATES = [[1, 'B/s'], [1e3, 'kB/s'], [1e6, 'MB/s'], [1e9, 'GB/s'], [1e12, 'TB/s']] as const;

function missing(value: Maybe): value is null | undefined {
  return value === null || value === undefined || !Number.isFinite(value);
}

/** "0", "812 ns", "1.23 us", "45.6 ms", "12.0 s", "21.3 min", "13.1 h", "20.1 d". */
export function duration(ns: Maybe): string {
  if (missing(ns)) return ABSENT;
  if (ns === 0) return '0';
  const magnitude = Math.abs(ns);
  const sign = ns < 0 ? '-' : '';
  if (magnitude >= 172800e9) return `${sign}${threeDigits(magnitude / 86400e9)} d`;
  if (magnitude >= 36000e9) return `${sign}${threeDigits(magnitude / 3600e9)} h`;
  if (magnitude >= 600e9) return `${sign}${threeDigits(magnitude / 60e9)} min`;
  return withUnit(ns, TIME);
}

/** "512 B", "1.50 KiB": powers of 1024. */
export function bytes(value: Maybe): string {
  if (missing(value)) return ABSENT;
  return value === 0 ? '0' : withUnit(value, BYTES);
}

/** "12.3 GB/s": powers of 1000. */
export function rate(bytes_per_s: Maybe): string {
  return missing(bytes_per_s) ? ABSENT : withUnit(bytes_per_s, RATES);
}

const FLOP_RATES = [[1, 'FLOP/s'], [1e3, 'kFLOP/s'], [1e6, 'MFLOP/s'], [1e9, 'GFLOP/s'], [1e12, 'TFLOP/s'], [1e15, 'PFLOP/s']] as const;

/** "312 TFLOP/s": powers of 1000. */
export function flopRate(flops_per_s: Maybe): string {
  return missing(flops_per_s) ? ABSENT : flops_per_s === 0 ? '0' : withUnit(flops_per_s, FLOP_RATES);
}

/** "1,234,567". */
export function count(value: Maybe): string {
  if (missing(value)) return ABSENT;
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "42 %", "3.1 %", "<0.1 %"; 1 = 100 %. */
export function percent(ratio: Maybe): string {
  if (missing(ratio)) return ABSENT;
  const value = ratio * 100;
  const magnitude = Math.abs(value);
  if (magnitude === 0) return '0 %';
  if (magnitude < 0.1) return '<0.1 %';
  return magnitude < 9.95 ? `${value.toFixed(1)} %` : `${value.toFixed(0)} %`;
}

/** A mean or length without unit: "2.40", "134". */
export function number(value: Maybe): string {
  if (missing(value)) return ABSENT;
  if (Math.abs(value) >= 1e6) return value.toExponential(2);
  return (value < 0 ? '-' : '') + threeDigits(Math.abs(value));
}

/** "1 rank", "3 ranks". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** "ranks 3 to 5, 8 and 12": numbers in order, runs joined, at most `most` pieces. */
export function rankList(ranks: readonly number[], most = 6): string {
  const sorted = [...ranks].sort((a, b) => a - b);
  const pieces: string[] = [];
  for (let at = 0; at < sorted.length; ) {
    let end = at;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end]! + 1) ++end;
    if (end - at >= 2) pieces.push(`${sorted[at]} to ${sorted[end]}`);
    else for (let i = at; i <= end; ++i) pieces.push(String(sorted[i]));
    at = end + 1;
  }
  if (sorted.length === 0) return 'no rank';
  const word = sorted.length === 1 ? 'rank' : 'ranks';
  if (pieces.length > most) {
    return `${word} ${pieces.slice(0, most).join(', ')} … (${count(sorted.length)} in all)`;
  }
  const last = pieces.pop()!;
  return pieces.length === 0 ? `${word} ${last}` : `${word} ${pieces.join(', ')} and ${last}`;
}

/** As the beginning of a sentence. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A kernel's name without what does not tell it apart: "void ", anonymous namespaces, the parameter list; namespaces go where it is longer than `width`. */
export function shortName(name: string, width = 44): string {
  let text = name.startsWith('void ') ? name.slice(5) : name;
  text = text.replaceAll('(anonymous namespace)::', '');
  if (text.endsWith(')')) {
    let depth = 0;
    for (let at = text.length - 1; at > 0; --at) {
      if (text[at] === ')') ++depth;
      else if (text[at] === '(' && --depth === 0) {
        if (/[A-Za-z0-9_>]/.test(text[at - 1]!)) text = text.slice(0, at);
        break;
      }
    }
  }
  // What is behind namespaces tells names apart.
  return text.length > width ? text.replace(/\b(?:[A-Za-z_]\w*::)+(?=[A-Za-z_~])/g, '') : text;
}
