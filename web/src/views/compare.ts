import type { PageSource } from '../data/types';
import type { View } from '../view';

/** Facts for the header of a page that compares two runs. */
export function compareFacts(_source: PageSource): readonly string[] {
  return [];
}

export const compareViews: readonly View<unknown>[] = [];
