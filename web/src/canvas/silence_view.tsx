import { useMemo, useState } from 'preact/hooks';
import { axisFromZero, textWidth } from '../charts/scales';
import { useWidth } from '../parts/measure';
import { Tooltip } from '../parts/tooltip';
import { Drawing, fitText, SMALL_FONT, useSettledParam, type Pointer } from './drawing';
import { hatch, type Palette } from './palette';

export interface SilenceRow {
  rank: number;
  label: string;
  role: string;
  /** Before the collection; null = not known. */
  silent_ns: number | null;
  open: readonly { text: string; since_ns: number }[];
  /** A sentence for the row. */
  words: string;
}

export interface SilenceViewProps {
  id: string;
  label: string;
  /** In the order they are drawn. */
  rows: readonly SilenceRow[];
  /** What the picture's left edge is: nanoseconds before the collection. */
  from_ns: number;
  /** Its right edge: 0 is the collection. */
  to_ns: number;
}

const TOP = 6;
const BOTTOM = 36;
const MOST_HEIGHT = 560;

/** A line per rank up to the moment of the collection: when it last issued something, and what is open since when. */
export function SilenceView({ id, label, rows, from_ns, to_ns }: SilenceViewProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [at_text, setAt] = useSettledParam(`${id}.rank`, '');
  const [hover, setHover] = useState<{ row: number; x: number; y: number } | null>(null);
  const left = useMemo(() => Math.min(width * 0.3, 18 + Math.max(30, ...rows.slice(0, 200).map((row) => textWidth(row.label)))), [rows, width]);
  const row_height = Math.max(0.4, Math.min(24, MOST_HEIGHT / Math.max(1, rows.length)));
  const plot = { width: Math.max(60, width - left - 10), height: Math.max(24, Math.round(rows.length * row_height)) };
  const span = Math.max(1, from_ns - to_ns);
  const x_of = (before_ns: number) => left + Math.max(0, Math.min(1, (from_ns - before_ns) / span)) * plot.width;
  const cursor = rows.findIndex((row) => String(row.rank) === at_text);

  const paint = (draw: CanvasRenderingContext2D, palette: Palette) => {
    draw.fillStyle = palette.panel;
    draw.fillRect(left, TOP, plot.width, plot.height);
    const axis = axisFromZero(span, plot.width, 'ns');
    draw.font = SMALL_FONT;
    draw.textAlign = 'center';
    for (const tick of axis.ticks) {
      if (tick.value > span) continue;
      // From the collection backwards, unless a part of the time is looked at.
      const x = to_ns === 0 ? x_of(tick.value) : x_of(from_ns - tick.value);
      draw.fillStyle = palette.grid;
      draw.fillRect(x, TOP, 1, plot.height);
      draw.fillStyle = palette.muted;
      const text = to_ns === 0 ? (tick.value === 0 ? 'collected' : `−${tick.text}`) : `+${tick.text}`;
      draw.fillText(text, Math.min(x, left + plot.width - textWidth(text) / 2), TOP + plot.height + 10);
    }
    draw.fillText(to_ns === 0 ? 'before the collection' : 'after the first rank fell silent', left + plot.width / 2, TOP + plot.height + 26);
    const color = (row: SilenceRow) => (row.role === 'culprit' ? palette.critical : row.role === 'victim' ? palette.classes[0]! : palette.muted);
    // Culprits last and not too low, so that one among a thousand is seen.
    const order = [...rows.keys()].sort((a, b) => Number(rows[a]!.role === 'culprit') - Number(rows[b]!.role === 'culprit'));
    for (const at of order) {
      const row = rows[at]!;
      const height = row.role === 'culprit' ? Math.max(3, row_height) : row_height;
      const y = TOP + at * row_height + (row_height - height) / 2;
      const inner = height > 8 ? 4 : 0;
      if (row.silent_ns === null && row.open.length === 0) {
        draw.fillStyle = hatch(draw, palette.muted);
        draw.fillRect(left, y + inner, plot.width, height - 2 * inner);
        continue;
      }
      draw.fillStyle = color(row);
      if (row.silent_ns !== null) {
        const x = x_of(row.silent_ns);
        if (height > 8 && row.open.length === 0) draw.fillRect(x, y + height / 2 - 1, x_of(to_ns) - x, 2);
        else if (height <= 8) {
          draw.globalAlpha = row.open.length === 0 ? 1 : 0.45;
          draw.fillRect(x, y, x_of(to_ns) - x, height);
          draw.globalAlpha = 1;
        }
      }
      const lane = (height - 2 * inner) / Math.max(1, height > 8 ? row.open.length : 1);
      row.open.forEach((open, k) => {
        const x = x_of(open.since_ns);
        const top = y + inner + (height > 8 ? k * lane : 0);
        draw.globalAlpha = height > 8 ? 0.4 : 0.75;
        draw.fillRect(x, top, Math.max(1, x_of(to_ns) - x), Math.max(0.4, lane - (row.open.length > 1 && height > 8 ? 1 : 0)));
        draw.globalAlpha = 1;
      });
      if (row.silent_ns !== null && height > 8) {
        draw.beginPath();
        draw.arc(x_of(row.silent_ns), y + height / 2, 4.5, 0, 7);
        draw.fill();
      }
      if (height >= 14 && row.open.length === 1) {
        draw.fillStyle = palette.text;
        draw.textAlign = 'left';
        const x = x_of(row.open[0]!.since_ns) + 10;
        draw.fillText(fitText(draw, row.open[0]!.text, left + plot.width - x - 4), x, y + height / 2);
      }
    }
    draw.textAlign = 'right';
    const named = [...order].reverse();
    const used: number[] = [];
    for (const at of named) {
      const y = TOP + (at + 0.5) * row_height;
      if (row_height < 13 && used.some((other) => Math.abs(other - y) < 13)) continue;
      if (row_height < 13) used.push(y);
      if (used.length > 60) break;
      draw.fillStyle = rows[at]!.role === 'culprit' ? palette.critical : at === cursor ? palette.text : palette.muted;
      draw.fillText(fitText(draw, rows[at]!.label, left - 10), left - 6, Math.max(TOP + 6, y));
    }
    if (cursor >= 0) {
      draw.strokeStyle = palette.text;
      draw.lineWidth = 1.5;
      draw.strokeRect(left, TOP + cursor * row_height, plot.width, Math.max(3, row_height));
    }
  };
  const rowAt = (at: Pointer): number | null => {
    const row = Math.floor((at.y - TOP) / row_height);
    return at.y < TOP || row < 0 || row >= rows.length ? null : row;
  };
  const moveTo = (at: number) => setAt(String(rows[Math.max(0, Math.min(rows.length - 1, at))]!.rank));
  const said = cursor >= 0 ? rows[cursor] : hover ? rows[hover.row] : undefined;
  return (
    <div ref={box} class="chart">
      <Drawing
        id={id}
        width={width}
        height={TOP + plot.height + BOTTOM}
        label={label}
        keys="↑ and ↓ go from rank to rank, Home and End to the first and the last."
        status={said?.words ?? ''}
        paint={paint}
        onKey={(key, event) => {
          const step = event.shiftKey ? 10 : 1;
          if (key === 'ArrowDown') moveTo(cursor < 0 ? 0 : cursor + step);
          else if (key === 'ArrowUp') moveTo(cursor < 0 ? 0 : cursor - step);
          else if (key === 'Home') moveTo(0);
          else if (key === 'End') moveTo(rows.length - 1);
          else if (key === 'Escape' && cursor >= 0) setAt('');
          else return false;
          return true;
        }}
        onHover={(at) => {
          const row = at && rowAt(at);
          setHover(at && row !== null ? { row, x: at.x, y: at.y + 12 } : null);
        }}
        onClick={(at) => {
          const row = rowAt(at);
          if (row !== null) setAt(String(rows[row]!.rank));
        }}
      />
      {hover && <Tooltip width={width} tip={{ x: hover.x, y: hover.y, content: rows[hover.row]!.words }} />}
    </div>
  );
}
