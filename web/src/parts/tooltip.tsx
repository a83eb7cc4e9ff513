import type { ComponentChildren } from 'preact';
import { useCallback, useState } from 'preact/hooks';

export interface Tip {
  /** In CSS pixels of the picture. */
  x: number;
  y: number;
  content: ComponentChildren;
}

/** The tip of a picture: `const [tip, show] = useTip()`; show(null) hides it. What it says is in the table, too. */
export function useTip(): [Tip | null, (tip: Tip | null) => void] {
  const [tip, setTip] = useState<Tip | null>(null);
  return [tip, useCallback((next: Tip | null) => setTip(next), [])];
}

/** Inside a box with `position: relative` of the given width; turns to the left near the right edge. */
export function Tooltip({ tip, width }: { tip: Tip | null; width: number }) {
  if (!tip) return null;
  const left = tip.x > width * 0.6;
  return (
    <div
      class="tooltip"
      aria-hidden="true"
      style={{ top: `${tip.y}px`, left: left ? 'auto' : `${tip.x + 14}px`, right: left ? `${width - tip.x + 14}px` : 'auto' }}
    >
      {tip.content}
    </div>
  );
}
