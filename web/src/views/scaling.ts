import type { PageSource } from '../data/types';
import type { View } from '../view';

/** Facts for the header of a page on scaling. */
export function scalingFacts(_source: PageSource): readonly string[] {
  return [];
}

export const scalingViews: readonly View<unknown>[] = [];
