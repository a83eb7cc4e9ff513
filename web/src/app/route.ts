import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';

/**
 * The address says what is on the screen: `#/heatmap?by=wait&sort=host`. Whatever a reader can choose in a view is in
 * it, so that a link shows another reader the same.
 */
export interface Route {
  view: string;
  params: URLSearchParams;
}

export function parseHash(hash: string): Route {
  const text = hash.replace(/^#\/?/, '');
  const mark = text.indexOf('?');
  let view = mark < 0 ? text : text.slice(0, mark);
  try {
    view = decodeURIComponent(view);
  } catch {
    view = '';
  }
  return { view, params: new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1)) };
}

export function href(view: string, params: Record<string, string | number> = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) query.set(key, String(value));
  const text = query.toString();
  return `#/${encodeURIComponent(view)}${text ? `?${text}` : ''}`;
}

const listeners = new Set<() => void>();
let current = parseHash(typeof location === 'undefined' ? '' : location.hash);

function changed() {
  current = parseHash(location.hash);
  for (const listener of [...listeners]) listener();
}
if (typeof window !== 'undefined') window.addEventListener('hashchange', changed);

export function useRoute(): Route {
  const [route, set] = useState(current);
  useEffect(() => {
    const listener = () => set(current);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return route;
}

/** Which view a component is in, and which there are. On the page with all views, choices are kept in the component instead of the address. */
export const ViewContext = createContext<{ id: string; stacked: boolean; ids: readonly string[] }>({ id: '', stacked: false, ids: [] });

/** One choice of a view; `fallback` is left out of the address. */
export function useParam(name: string, fallback: string): [string, (value: string) => void] {
  const { id, stacked } = useContext(ViewContext);
  const route = useRoute();
  const [local, setLocal] = useState(fallback);
  if (stacked) return [local, setLocal];
  const value = route.view === id ? (route.params.get(name) ?? fallback) : fallback;
  const set = (next: string) => {
    // The reader has gone to another view, and this one is about to go: a choice that was still on its way must not undo that.
    if (parseHash(location.hash).view !== route.view) return;
    const params = new URLSearchParams(current.params);
    if (next === fallback) params.delete(name);
    else params.set(name, next);
    const text = params.toString();
    // Replaced, not pushed: "back" leaves the view instead of undoing one choice after the other.
    history.replaceState(null, '', `#/${encodeURIComponent(id)}${text ? `?${text}` : ''}`);
    changed();
  };
  return [value, set];
}

/** The same for one of a fixed set; anything else in the address counts as the fallback. */
export function useChoice<T extends string>(name: string, choices: readonly T[], fallback: T): [T, (value: T) => void] {
  const [value, set] = useParam(name, fallback);
  return [choices.includes(value as T) ? (value as T) : fallback, set];
}

/** The same for a whole number from 0; null when absent or none. */
export function useNumberParam(name: string): [number | null, (value: number | null) => void] {
  const [text, set] = useParam(name, '');
  return [/^\d{1,9}$/.test(text) ? Number(text) : null, (value) => set(value === null ? '' : String(value))];
}
