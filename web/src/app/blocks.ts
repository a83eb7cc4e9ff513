import { useLayoutEffect, useState } from 'preact/hooks';
import { begin } from './pending';

export type Loading<T> = { state: 'loading' } | { state: 'ready'; value: T } | { state: 'failed'; message: string };

interface Block {
  now: Loading<unknown>;
  readers: Set<() => void>;
}

const known = new WeakMap<object, Map<string, Block>>();

/** Begins to load a part of the page's data, unless that has begun. */
export function loadBlock<T>(owner: object, key: string, load: () => Promise<T>): Block {
  let blocks = known.get(owner);
  if (!blocks) known.set(owner, (blocks = new Map()));
  const found = blocks.get(key);
  if (found && found.now.state !== 'failed') return found;
  const block: Block = { now: { state: 'loading' }, readers: found?.readers ?? new Set() };
  blocks.set(key, block);
  const loaded = begin();
  const ended = (now: Loading<unknown>) => {
    block.now = now;
    for (const reader of [...block.readers]) reader();
    loaded();
  };
  load().then(
    (value) => ended({ state: 'ready', value }),
    (error: unknown) => ended({ state: 'failed', message: error instanceof Error ? error.message : String(error) }),
  );
  return block;
}

/**
 * A part of the page's data that is unpacked when it is first needed: `useBlock(source, 'steps', () => source.steps())`.
 * What has been loaded once is there at once the next time, in any view. What failed is tried again by the next view.
 */
export function useBlock<T>(owner: object, key: string, load: () => Promise<T>): Loading<T> {
  const [, redraw] = useState(0);
  // Before the first frame: whoever sees the view also sees that something is still to come.
  useLayoutEffect(() => {
    const block = loadBlock(owner, key, load);
    const reader = () => redraw((n) => n + 1);
    block.readers.add(reader);
    reader();
    return () => void block.readers.delete(reader);
  }, [owner, key]);
  return (known.get(owner)?.get(key)?.now as Loading<T> | undefined) ?? { state: 'loading' };
}
