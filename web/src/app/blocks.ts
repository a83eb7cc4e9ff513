import { useEffect, useState } from 'preact/hooks';

export type Loading<T> = { state: 'loading' } | { state: 'ready'; value: T } | { state: 'failed'; message: string };

const known = new WeakMap<object, Map<string, Loading<unknown>>>();

/**
 * A part of the page's data that is unpacked when it is first needed: `useBlock(source, 'steps', () => source.steps())`.
 * What has been loaded once is there at once the next time, in any view.
 */
export function useBlock<T>(owner: object, key: string, load: () => Promise<T>): Loading<T> {
  let blocks = known.get(owner);
  if (!blocks) known.set(owner, (blocks = new Map()));
  const found = blocks.get(key) as Loading<T> | undefined;
  const [, redraw] = useState(0);
  useEffect(() => {
    let alive = true;
    if (blocks.get(key)?.state === 'ready') return undefined;
    blocks.set(key, { state: 'loading' });
    load().then(
      (value) => {
        blocks.set(key, { state: 'ready', value });
        if (alive) redraw((n) => n + 1);
      },
      (error: unknown) => {
        blocks.set(key, { state: 'failed', message: error instanceof Error ? error.message : String(error) });
        if (alive) redraw((n) => n + 1);
      },
    );
    return () => void (alive = false);
  }, [owner, key]);
  return found ?? { state: 'loading' };
}
