import { useMemo, useRef, useState } from 'preact/hooks';
import { labelStride } from '../charts/scales';
import { inkOn, token, type Rgb } from '../colors';
import { useWidth } from '../parts/measure';
import { Tooltip } from '../parts/tooltip';
import { Drawing, fitText, SMALL_FONT, useSettledParam, type Pointer } from './drawing';
import { axisText, gridPixels, moveAxis, parseAxis, pixelEdges, positionAt, showPosition, wholeAxis, zoomAxis, type Axis } from './grid';
import { CODE_MOST, CODE_NOT_MEASURED, codePixels, hatch, inkOnCode, parseColor, pixel, type Palette } from './palette';

export interface GridViewProps {
  id: string;
  label: string;
  /** Row-major over all rows and columns of the matrix; see encode(). */
  codes: Uint8Array;
  row_count: number;
  column_count: number;
  /** Which row (column) of the matrix stands at each position; null = in order. */
  rows: Uint32Array;
  columns: Uint32Array | null;
  rowLabel: (row: number) => string;
  columnLabel: (column: number) => string;
  row_title: string;
  column_title: string;
  /** Short, for a cell: "12.3 ms". */
  valueText: (row: number, column: number) => string;
  /** A sentence for the cell. */
  describe: (row: number, column: number) => string;
  /** Enter or a click on a cell, and what that does. */
  onOpen?: (row: number, column: number) => void;
  open_words: string;
  /** Texts of the ends of the colour scale; not drawn where codes are classes. */
  scale: readonly [string, string, string];
  /** CSS variables of the colours of codes 0, 1, 2, ... where codes are classes: the later one shows where cells share a pixel. */
  classes?: readonly string[];
  /** Cells that must not be overlooked, however small: framed, with an arrow at their columns. */
  marks?: readonly { row: number; column: number }[];
}

const TOP = 4;
const ARROW = 9;
const BOTTOM = 38;
const LEGEND = 30;

/** A matrix of coloured cells: zoomed by wheel with Ctrl, keys or a dragged frame; with a cursor that says the cell's value. */
export function GridView(props: GridViewProps) {
  const { id, codes, row_count, column_count, rows, columns } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const [row_text, setRowText] = useSettledParam(`${id}.rows`, '');
  const [column_text, setColumnText] = useSettledParam(`${id}.columns`, '');
  const [cell_text, setCell] = useSettledParam(`${id}.cell`, '');
  const [hover, setHover] = useState<{ row: number; column: number; x: number; y: number } | null>(null);
  const [frame, setFrame] = useState<{ from: Pointer; to: Pointer } | null>(null);
  const row_axis = parseAxis(row_text, row_count);
  const column_axis = parseAxis(column_text, column_count);
  const gutter = useMemo(() => {
    let longest = 4;
    for (let at = 0; at < row_count; at += Math.max(1, Math.floor(row_count / 50))) longest = Math.max(longest, props.rowLabel(rows[at]!).length);
    return Math.min(width * 0.3, 16 + longest * 6.6);
  }, [rows, row_count, width]);
  const plot = { left: gutter, width: Math.max(40, width - gutter - 6), height: Math.round(Math.min(560, Math.max(row_count < 3 ? 64 : 120, row_count * 26))) };
  const { classes, marks = [] } = props;
  const top = (classes ? 0 : LEGEND) + TOP + (marks.length > 0 ? ARROW : 0);
  const height = top + plot.height + BOTTOM;
  // The cursor is kept by rank and step, not by place: sorting does not move it off its cell.
  const match = /^(\d{1,7}),(\d{1,7})$/.exec(cell_text);
  const at_row = match ? rows.indexOf(Number(match[1])) : -1;
  const at_column = match ? (columns ? columns.indexOf(Number(match[2])) : Number(match[2]) < column_count ? Number(match[2]) : -1) : -1;
  const cursor = at_row >= 0 && at_column >= 0 ? { row: at_row, column: at_column } : null;
  const column_of = (position: number) => (columns ? columns[position]! : position);

  const class_colors = useRef<{ palette: Palette; colors: Rgb[] } | null>(null);
  /** Of the theme that is drawn in; null where codes are quantities. */
  const classColors = (palette: Palette): Rgb[] | null => {
    if (!classes) return null;
    if (class_colors.current?.palette !== palette) class_colors.current = { palette, colors: classes.map((name) => parseColor(token(name))) };
    return class_colors.current.colors;
  };
  const image = useRef<{ key: unknown[]; canvas: HTMLCanvasElement } | null>(null);
  const makeImage = (ratio: number, palette: Palette) => {
    const w = Math.min(column_axis.count, Math.round(plot.width * ratio));
    const h = Math.min(row_axis.count, Math.round(plot.height * ratio));
    const key = [codes, rows, columns, row_text, column_text, w, h, palette];
    if (image.current && image.current.key.every((part, i) => part === key[i])) return image.current.canvas;
    const canvas = image.current?.canvas ?? document.createElement('canvas');
    canvas.width = w;
    canvas.height = h;
    const merged = gridPixels(codes, column_count, pixelEdges(row_axis, h), pixelEdges(column_axis, w), rows, columns);
    const colors = codePixels();
    classColors(palette)?.forEach((color, code) => (colors[code] = pixel(color)));
    const data = new ImageData(w, h);
    const pixels = new Uint32Array(data.data.buffer);
    for (let i = 0; i < merged.length; ++i) pixels[i] = colors[merged[i]!]!;
    canvas.getContext('2d')!.putImageData(data, 0, 0);
    image.current = { key, canvas };
    return canvas;
  };

  const paint = (draw: CanvasRenderingContext2D, palette: Palette, ratio: number) => {
    const cell_width = plot.width / column_axis.count;
    const cell_height = plot.height / row_axis.count;
    const x_of = (position: number) => plot.left + (position - column_axis.first) * cell_width;
    const y_of = (position: number) => top + (position - row_axis.first) * cell_height;
    if (!classes) drawScale(draw, palette, plot.left, props.scale);
    const picture = makeImage(ratio, palette);
    draw.fillStyle = palette.panel;
    draw.fillRect(plot.left, top, plot.width, plot.height);
    // What is not measured is transparent in the picture: only there the hatching is laid.
    draw.save();
    draw.fillStyle = hatch(draw, palette.muted);
    if (cell_width * cell_height > 30) {
      for (let r = row_axis.first; r < row_axis.first + row_axis.count; ++r) {
        for (let c = column_axis.first; c < column_axis.first + column_axis.count; ++c) {
          if (codes[rows[r]! * column_count + column_of(c)] === CODE_NOT_MEASURED) draw.fillRect(x_of(c), y_of(r), cell_width, cell_height);
        }
      }
    } else if (codes.includes(CODE_NOT_MEASURED)) {
      draw.fillRect(plot.left, top, plot.width, plot.height);
    }
    draw.restore();
    draw.imageSmoothingEnabled = false;
    draw.drawImage(picture, plot.left, top, plot.width, plot.height);
    if (cell_width >= 8 && cell_height >= 8) drawLines(draw, palette, cell_width, cell_height);
    if (cell_width >= 50 && cell_height >= 16) {
      draw.font = SMALL_FONT;
      draw.textAlign = 'center';
      for (let r = row_axis.first; r < row_axis.first + row_axis.count; ++r) {
        for (let c = column_axis.first; c < column_axis.first + column_axis.count; ++c) {
          const code = codes[rows[r]! * column_count + column_of(c)]!;
          if (code > CODE_MOST) continue;
          const color = classColors(palette)?.[code];
          draw.fillStyle = color ? inkOn(color) : inkOnCode(code);
          draw.fillText(fitText(draw, props.valueText(rows[r]!, column_of(c)), cell_width - 4), x_of(c + 0.5), y_of(r + 0.5));
        }
      }
    }
    drawLabels(draw, palette, cell_width, cell_height, x_of, y_of);
    const frameCell = (row: number, column: number, color: string) => {
      draw.save();
      draw.beginPath();
      draw.rect(plot.left - 3, top - 3, plot.width + 6, plot.height + 6);
      draw.clip();
      const w = Math.max(6, cell_width);
      const h = Math.max(6, cell_height);
      const x = x_of(column + 0.5) - w / 2;
      const y = y_of(row + 0.5) - h / 2;
      draw.lineWidth = 4;
      draw.strokeStyle = palette.background;
      draw.strokeRect(x, y, w, h);
      draw.lineWidth = 2;
      draw.strokeStyle = color;
      draw.strokeRect(x, y, w, h);
      draw.restore();
    };
    for (const mark of marks) {
      const row = rows.indexOf(mark.row);
      const column = columns ? columns.indexOf(mark.column) : mark.column;
      if (row < row_axis.first || row >= row_axis.first + row_axis.count) continue;
      if (column < column_axis.first || column >= column_axis.first + column_axis.count) continue;
      frameCell(row, column, palette.critical);
      const x = x_of(column + 0.5);
      draw.fillStyle = palette.critical;
      draw.beginPath();
      draw.moveTo(x - 5, top - 11);
      draw.lineTo(x + 5, top - 11);
      draw.lineTo(x, top - 3);
      draw.fill();
    }
    if (cursor) frameCell(cursor.row, cursor.column, palette.text);
    if (frame) {
      draw.strokeStyle = palette.focus;
      draw.lineWidth = 1.5;
      draw.setLineDash([4, 3]);
      draw.strokeRect(frame.from.x, frame.from.y, frame.to.x - frame.from.x, frame.to.y - frame.from.y);
      draw.setLineDash([]);
    }
  };

  const drawLines = (draw: CanvasRenderingContext2D, palette: Palette, cell_width: number, cell_height: number) => {
    draw.strokeStyle = palette.background;
    draw.lineWidth = 1;
    draw.beginPath();
    for (let c = 1; c < column_axis.count; ++c) {
      draw.moveTo(plot.left + c * cell_width, top);
      draw.lineTo(plot.left + c * cell_width, top + plot.height);
    }
    for (let r = 1; r < row_axis.count; ++r) {
      draw.moveTo(plot.left, top + r * cell_height);
      draw.lineTo(plot.left + plot.width, top + r * cell_height);
    }
    draw.stroke();
  };

  const drawLabels = (draw: CanvasRenderingContext2D, palette: Palette, cell_width: number, cell_height: number, x_of: (p: number) => number, y_of: (p: number) => number) => {
    draw.font = SMALL_FONT;
    draw.fillStyle = palette.muted;
    draw.textAlign = 'right';
    const every_row = Math.max(1, Math.ceil(14 / cell_height));
    for (let r = row_axis.first; r < row_axis.first + row_axis.count; r += every_row) {
      draw.fillStyle = cursor?.row === r ? palette.text : palette.muted;
      draw.fillText(fitText(draw, props.rowLabel(rows[r]!), plot.left - 10), plot.left - 6, y_of(r + 0.5));
    }
    draw.textAlign = 'center';
    draw.fillStyle = palette.muted;
    const every_column = labelStride(column_axis.count, plot.width, 44);
    for (let c = Math.ceil(column_axis.first / every_column) * every_column; c < column_axis.first + column_axis.count; c += every_column) {
      draw.fillText(props.columnLabel(column_of(c)), x_of(c) + cell_width / 2, top + plot.height + 10);
    }
    draw.font = SMALL_FONT;
    draw.fillText(props.column_title, plot.left + plot.width / 2, top + plot.height + 27);
    draw.textAlign = 'left';
    if (props.row_title !== '') draw.fillText(props.row_title, 2, LEGEND - 12);
  };

  const cellAt = (at: Pointer) => {
    const column = positionAt(column_axis, plot.width, at.x - plot.left);
    const row = positionAt(row_axis, plot.height, at.y - top);
    return row === null || column === null ? null : { row, column };
  };
  const setAxes = (next_rows: Axis, next_columns: Axis) => {
    setRowText(axisText(next_rows, row_count));
    setColumnText(axisText(next_columns, column_count));
  };
  const moveTo = (row: number, column: number) => {
    const r = Math.max(0, Math.min(row_count - 1, row));
    const c = Math.max(0, Math.min(column_count - 1, column));
    setCell(`${rows[r]},${column_of(c)}`);
    setAxes(showPosition(row_axis, row_count, r), showPosition(column_axis, column_count, c));
  };
  const zoom = (factor: number, x: number, y: number) =>
    setAxes(zoomAxis(row_axis, row_count, row_count > 12 ? factor : 1, y), zoomAxis(column_axis, column_count, factor, x));
  const center = () => (cursor ?? { row: row_axis.first, column: column_axis.first });
  const onKey = (key: string, event: KeyboardEvent): boolean => {
    const now = center();
    const stride = event.shiftKey || event.ctrlKey ? 10 : 1;
    const arrows: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const arrow = arrows[key];
    if (arrow) moveTo(now.row + (cursor ? arrow[0] * stride : 0), now.column + (cursor ? arrow[1] * stride : 0));
    else if (key === 'Home') moveTo(now.row, 0);
    else if (key === 'End') moveTo(now.row, column_count - 1);
    else if (key === 'PageUp') moveTo(now.row - row_axis.count, now.column);
    else if (key === 'PageDown') moveTo(now.row + row_axis.count, now.column);
    else if (key === '+' || key === '=') zoom(0.6, (now.column - column_axis.first + 0.5) / column_axis.count, (now.row - row_axis.first + 0.5) / row_axis.count);
    else if (key === '-' || key === '_') zoom(1 / 0.6, 0.5, 0.5);
    else if (key === '0' || key === 'Escape') setAxes(wholeAxis(row_count), wholeAxis(column_count));
    else if (key === 'Enter' && cursor && props.onOpen) props.onOpen(rows[cursor.row]!, column_of(cursor.column));
    else return false;
    return true;
  };
  const said = cursor ?? hover;
  return (
    <div ref={box} class="chart">
      <Drawing
        id={id}
        width={width}
        height={height}
        label={props.label}
        keys={`Arrow keys move the cursor, + and − zoom, 0 shows all${props.onOpen ? `, Enter ${props.open_words}` : ''}. Mouse: drag a frame or turn the wheel with Ctrl to zoom${props.onOpen ? `, click ${props.open_words}` : ''}.`}
        status={said ? props.describe(rows[said.row]!, column_of(said.column)) : ''}
        paint={paint}
        pointer={props.onOpen ? 'pointer' : 'crosshair'}
        onKey={onKey}
        onHover={(at) => {
          const cell = at && cellAt(at);
          setHover(cell ? { ...cell, x: at.x, y: at.y } : null);
        }}
        onClick={(at) => {
          const cell = cellAt(at);
          if (!cell) return;
          setCell(`${rows[cell.row]},${column_of(cell.column)}`);
          props.onOpen?.(rows[cell.row]!, column_of(cell.column));
        }}
        onDrag={(_dx, _dy, from, now, done) => {
          setHover(null);
          if (!done) return setFrame({ from, to: now });
          setFrame(null);
          const inside = (x: number, most: number) => Math.max(0, Math.min(most - 1e-6, x));
          const columns_from = positionAt(column_axis, plot.width, inside(Math.min(from.x, now.x) - plot.left, plot.width))!;
          const columns_to = positionAt(column_axis, plot.width, inside(Math.max(from.x, now.x) - plot.left, plot.width))!;
          const rows_from = positionAt(row_axis, plot.height, inside(Math.min(from.y, now.y) - top, plot.height))!;
          const rows_to = positionAt(row_axis, plot.height, inside(Math.max(from.y, now.y) - top, plot.height))!;
          setAxes({ first: rows_from, count: rows_to - rows_from + 1 }, { first: columns_from, count: columns_to - columns_from + 1 });
        }}
        onWheel={(at, dx, dy) => {
          if (at.control) {
            zoom(Math.exp(Math.max(-1, Math.min(1, dy / 300))), (at.x - plot.left) / plot.width, (at.y - top) / plot.height);
            return true;
          }
          const sideways = at.shift ? dy : dx;
          if (sideways === 0 || column_axis.count >= column_count) return false;
          const by = Math.round((sideways / plot.width) * column_axis.count) || Math.sign(sideways);
          setAxes(row_axis, moveAxis(column_axis, column_count, by));
          return true;
        }}
      />
      {hover && <Tooltip width={width} tip={{ x: hover.x, y: hover.y + 12, content: props.describe(rows[hover.row]!, column_of(hover.column)) }} />}
    </div>
  );
}

/** The colours from low to high with their values, and the hatching. */
function drawScale(draw: CanvasRenderingContext2D, palette: Palette, left: number, texts: readonly [string, string, string]) {
  const bar = 120;
  const colors = codePixels();
  draw.font = SMALL_FONT;
  draw.textAlign = 'left';
  draw.fillStyle = palette.muted;
  const begin = left + 4 + draw.measureText(texts[0]).width + 6;
  draw.fillText(texts[0], left + 4, 10);
  for (let i = 0; i < bar; ++i) {
    const color = colors[Math.round((i / (bar - 1)) * CODE_MOST)]!;
    draw.fillStyle = `rgb(${color & 255},${(color >> 8) & 255},${(color >> 16) & 255})`;
    draw.fillRect(begin + i, 4, 1.5, 12);
  }
  draw.fillStyle = palette.muted;
  draw.fillText(texts[1], begin + bar + 6, 10);
  let at = begin + bar + 6 + draw.measureText(texts[1]).width + 20;
  draw.fillStyle = hatch(draw, palette.muted);
  draw.fillRect(at, 4, 18, 12);
  draw.strokeStyle = palette.line;
  draw.lineWidth = 1;
  draw.strokeRect(at, 4, 18, 12);
  draw.fillStyle = palette.muted;
  draw.fillText('not measured', at + 24, 10);
  at += 24 + draw.measureText('not measured').width + 18;
  if (texts[2]) {
    draw.fillStyle = palette.panel;
    draw.fillRect(at, 4, 18, 12);
    draw.strokeRect(at, 4, 18, 12);
    draw.fillStyle = palette.muted;
    draw.fillText(texts[2], at + 24, 10);
  }
}
