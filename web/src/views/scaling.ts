import type { PageSource } from '../data/types';
import { plural } from '../numbers';
import type { View } from '../view';
import { answerQualityView, answerTextView } from './answer_views';
import { scalingViewList, type ScalingData } from './scaling_views';

/** Facts for the header of a page on scaling. */
export function scalingFacts(source: PageSource): readonly string[] {
  const { points, verdict } = source.document.data as unknown as ScalingData;
  return [plural(points.length, 'run'), `${points[0]!.ranks} to ${points[points.length - 1]!.ranks} ranks`, `${verdict.kind} scaling`];
}

export const scalingViews = [...scalingViewList, answerQualityView, answerTextView] as readonly View<unknown>[];
