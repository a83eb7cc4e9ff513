import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { begin } from '../app/pending';
import { useParam, ViewContext } from '../app/route';
import { useTheme } from '../app/theme';
import { readPalette, type Palette } from './palette';

export const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
export const SMALL_FONT = FONT.replace('12px', '11px');

export interface Pointer {
  /** CSS pixels from the canvas's corner. */
  x: number;
  y: number;
  shift: boolean;
  control: boolean;
}

export interface DrawingProps {
  /** Unique on the page. */
  id: string;
  width: number;
  height: number;
  /** What the picture is, for readers who do not see it; the keys are said in `keys`. */
  label: string;
  /** Which keys do what, in a sentence below the picture. */
  keys: string;
  /** What is under the cursor: shown below the picture and read out when it changes. */
  status: string;
  paint: (draw: CanvasRenderingContext2D, palette: Palette, ratio: number) => void;
  /** True: the key was for the picture. */
  onKey?: (key: string, event: KeyboardEvent) => boolean;
  onHover?: (at: Pointer | null) => void;
  onClick?: (at: Pointer) => void;
  onDouble?: (at: Pointer) => void;
  /** By how much the pointer was dragged since the last call, and where the drag began; `done` when it ends. */
  onDrag?: (dx: number, dy: number, from: Pointer, now: Pointer, done: boolean) => void;
  /** True: the wheel was for the picture, the page does not scroll. */
  onWheel?: (at: Pointer, dx: number, dy: number) => boolean;
  pointer?: string;
}

/** One pixel of a drag is no drag: hands shake. */
const CLICK_SLACK = 4;

/**
 * A canvas as sharp as the screen, painted again in the next frame after anything changed. Focusable; says what is under
 * its cursor. `data-draw-ms` has the time of the last painting, `data-most-ms` the longest so far, `data-draws` how many.
 */
export function Drawing(props: DrawingProps) {
  const { width, height } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { stacked } = useContext(ViewContext);
  const theme = useTheme();
  const palette = useMemo(readPalette, [theme]);
  const [ratio, setRatio] = useState(() => window.devicePixelRatio || 1);
  const latest = useRef({ props, ratio, palette });
  latest.current = { props, ratio, palette };
  const drag = useRef<{ from: Pointer; last: Pointer; moved: boolean } | null>(null);

  useEffect(() => {
    const changed = () => setRatio(window.devicePixelRatio || 1);
    window.addEventListener('resize', changed); // Zooming the page changes it, and the size with it.
    return () => window.removeEventListener('resize', changed);
  }, []);

  const paint = () => {
    const element = canvas.current;
    const draw = element?.getContext('2d');
    if (!element || !draw) return;
    const begin = performance.now();
    // Of the latest rendering: several may come before one frame.
    const { props: { width, height, paint: fill }, ratio, palette } = latest.current;
    const columns = Math.max(1, Math.round(width * ratio));
    const rows = Math.max(1, Math.round(height * ratio));
    if (element.width !== columns || element.height !== rows) {
      element.width = columns;
      element.height = rows;
    }
    draw.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw.clearRect(0, 0, width, height);
    draw.font = FONT;
    draw.textBaseline = 'middle';
    fill(draw, palette, ratio);
    const took = performance.now() - begin;
    element.dataset['drawMs'] = took.toFixed(2);
    element.dataset['mostMs'] = Math.max(took, Number(element.dataset['mostMs'] ?? 0)).toFixed(2);
    element.dataset['draws'] = String(Number(element.dataset['draws'] ?? 0) + 1);
  };
  const frame = useRef(0);
  useLayoutEffect(() => {
    if (stacked) {
      paint(); // Paper does not wait for a frame.
      return;
    }
    if (frame.current === 0) {
      frame.current = requestAnimationFrame(() => {
        frame.current = 0;
        paint();
      });
    }
  });
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  const at = (event: MouseEvent): Pointer => {
    const box = canvas.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, shift: event.shiftKey, control: event.ctrlKey || event.metaKey };
  };
  useEffect(() => {
    const element = canvas.current!;
    const wheel = (event: WheelEvent) => {
      const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
      const { onWheel, onHover } = latest.current.props;
      if (!onWheel?.(at(event), event.deltaX * unit, event.deltaY * unit)) return;
      event.preventDefault();
      onHover?.(null); // What the pointer was on has moved away below it.
    };
    element.addEventListener('wheel', wheel, { passive: false });
    return () => element.removeEventListener('wheel', wheel);
  }, []);

  const release = (event: PointerEvent) => {
    const begun = drag.current;
    drag.current = null;
    if (!begun) return;
    const now = at(event);
    if (begun.moved) props.onDrag?.(now.x - begun.last.x, now.y - begun.last.y, begun.from, now, true);
    else if (event.type === 'pointerup') props.onClick?.(now);
  };
  return (
    <div class="drawing">
      <canvas
        ref={canvas}
        id={props.id}
        tabIndex={0}
        role="application"
        aria-label={`${props.label} ${props.keys}`}
        aria-describedby={`${props.id}-status`}
        style={{ width: `${width}px`, height: `${height}px`, cursor: props.pointer ?? 'default', touchAction: 'pan-y' }}
        onKeyDown={(event) => {
          if (event.altKey || ((event.ctrlKey || event.metaKey) && !event.key.startsWith('Arrow'))) return;
          if (props.onKey?.(event.key, event)) {
            event.preventDefault();
            event.stopPropagation();
            props.onHover?.(null);
          }
        }}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          const from = at(event);
          drag.current = { from, last: from, moved: false };
          canvas.current!.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const now = at(event);
          const begun = drag.current;
          if (!begun) return props.onHover?.(now);
          if (!begun.moved && Math.hypot(now.x - begun.from.x, now.y - begun.from.y) < CLICK_SLACK) return undefined;
          begun.moved = true;
          props.onDrag?.(now.x - begun.last.x, now.y - begun.last.y, begun.from, now, false);
          begun.last = now;
          return undefined;
        }}
        onPointerUp={release}
        onPointerCancel={release}
        onPointerLeave={() => props.onHover?.(null)}
        onDblClick={(event) => props.onDouble?.(at(event))}
      />
      <p class="drawing-status" id={`${props.id}-status`} aria-live="polite">{props.status || '\u00a0'}</p>
      <p class="drawing-keys screen-only">{props.keys}</p>
    </div>
  );
}

/**
 * A choice that changes many times a second, such as what a wheel zooms to: here at once, in the address when it has been
 * still for a while (browsers refuse to change the address too often).
 */
export function useSettledParam(name: string, fallback: string): [string, (value: string) => void] {
  const [inAddress, setAddress] = useParam(name, fallback);
  const [value, setValue] = useState(inAddress);
  const sent = useRef(inAddress);
  const timer = useRef(0);
  const written = useRef(() => {});
  const write = useRef(setAddress);
  write.current = setAddress;
  const stop = () => {
    clearTimeout(timer.current);
    written.current();
  };
  useEffect(() => {
    // Somebody else changed it: a link, or "back".
    if (inAddress !== sent.current) {
      sent.current = inAddress;
      stop();
      setValue(inAddress);
    }
  }, [inAddress]);
  useEffect(() => stop, []);
  return [value, (next: string) => {
    setValue(next);
    stop();
    written.current = begin();
    timer.current = window.setTimeout(() => {
      sent.current = next;
      write.current(next);
      written.current();
    }, 250);
  }];
}

/** The text cut to a width, with "…"; '' when nothing sensible fits. */
export function fitText(draw: CanvasRenderingContext2D, text: string, width: number): string {
  if (width < 14) return '';
  const per_letter = 6.2;
  // Measuring costs; most texts fit plainly or must be cut near a known place.
  if (text.length * 9 < width) return text;
  let cut = text.length * per_letter > width * 1.6 ? text.slice(0, Math.ceil((width * 1.6) / per_letter)) : text;
  if (cut === text && draw.measureText(text).width <= width) return text;
  while (cut.length > 1) {
    const now = draw.measureText(`${cut}…`).width;
    if (now <= width) break;
    cut = cut.slice(0, Math.min(cut.length - 1, Math.floor((cut.length * width) / now)));
  }
  return cut.length < 3 ? '' : `${cut}…`;
}
