/** Files that the page hands to the reader. Nothing leaves the machine: they are made here and saved by the browser. */
import { decodeBase64 } from '../data/bytes';

function save(name: string, blob: Blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined || value === '') return '';
  const text = String(value);
  // A spreadsheet takes a cell that begins so for a formula; a trace's names are not to be run.
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** RFC 4180; null is an empty cell. */
export function csvText(header: readonly string[], rows: Iterable<readonly (string | number | null | undefined)[]>): string {
  const lines = [header.map(cell).join(',')];
  for (const row of rows) lines.push(row.map(cell).join(','));
  return lines.join('\r\n') + '\r\n';
}

export function saveCsv(name: string, text: string) {
  save(`${name}.csv`, new Blob([text], { type: 'text/csv;charset=utf-8' }));
}

// Presentation that an SVG takes from the page's style sheet and would lose outside of it.
const STYLES = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-opacity', 'opacity', 'stroke-linejoin', 'font-size', 'font-family',
  'font-weight', 'text-anchor', 'dominant-baseline', 'shape-rendering', 'visibility',
];

function standAlone(svg: SVGSVGElement, width: number, height: number): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg as Element, ...svg.querySelectorAll('*')];
  const to = [copy as Element, ...copy.querySelectorAll('*')];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) to[i]!.setAttribute(name, style.getPropertyValue(name));
    to[i]!.removeAttribute('class');
  });
  // Patterns are referred to by id, in the page's one list of them.
  const patterns = document.getElementById('patterns');
  if (patterns) {
    const defs = patterns.querySelector('defs')!;
    const own = defs.cloneNode(true) as SVGDefsElement;
    const source = [...defs.querySelectorAll('*')];
    [...own.querySelectorAll('*')].forEach((element, i) => {
      const style = getComputedStyle(source[i]!);
      for (const name of ['fill', 'stroke', 'stroke-width']) element.setAttribute(name, style.getPropertyValue(name));
    });
    copy.prepend(own);
  }
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  return new XMLSerializer().serializeToString(copy);
}

/** Not decode(): that waits for a frame of the page's, which a busy browser may not come to draw; an SVG needs none. */
function loaded(source: string): Promise<HTMLImageElement> {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = () => reject(new Error('a part of the picture could not be drawn'));
    image.src = source;
  });
}

/** Draws every <svg> and <canvas> inside, where it is, twice as fine as CSS pixels, and saves that as a PNG. */
export async function savePng(name: string, box: HTMLElement, title: string): Promise<void> {
  const scale = 2;
  const frame = box.getBoundingClientRect();
  const top = 28;
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(frame.width * scale);
  canvas.height = Math.ceil((frame.height + top) * scale);
  const draw = canvas.getContext('2d')!;
  const style = getComputedStyle(document.documentElement);
  draw.scale(scale, scale);
  draw.fillStyle = style.getPropertyValue('--background').trim();
  draw.fillRect(0, 0, frame.width, frame.height + top);
  draw.fillStyle = style.getPropertyValue('--text').trim();
  draw.font = '600 14px system-ui, sans-serif';
  draw.fillText(title, 4, 18);
  for (const part of box.querySelectorAll<SVGSVGElement | HTMLCanvasElement>('svg, canvas')) {
    const at = part.getBoundingClientRect();
    if (at.width === 0 || at.height === 0) continue;
    let image: CanvasImageSource;
    if (part instanceof HTMLCanvasElement) {
      image = part;
    } else {
      image = await loaded(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(standAlone(part, at.width, at.height))}`);
    }
    draw.drawImage(image, at.left - frame.left, at.top - frame.top + top, at.width, at.height);
  }
  // toBlob waits until the browser is idle, which after a click is a second; encoding itself takes a few milliseconds.
  const [kind, base64] = canvas.toDataURL('image/png').split(',') as [string, string];
  if (kind.startsWith('data:image/png')) save(`${name}.png`, new Blob([decodeBase64(base64) as Uint8Array<ArrayBuffer>], { type: 'image/png' }));
}
