import type { PageSource } from '../data/types';
import { plural } from '../numbers';
import type { View } from '../view';
import { answerQualityView, answerTextView } from './answer_views';
import { compareViewList, type CompareData } from './compare_views';

/** Facts for the header of a page that compares two runs. */
export function compareFacts(source: PageSource): readonly string[] {
  const { a, b } = source.document.data as unknown as CompareData;
  const run = (name: string, of: CompareData['a']) => `${name}: ${of.label}, ${plural(of.rank_count, 'rank')}, ${plural(of.step_count, 'step')}`;
  return [run('A', a), run('B', b)];
}

export const compareViews = [...compareViewList, answerQualityView, answerTextView] as readonly View<unknown>[];
