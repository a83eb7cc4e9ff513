import type { AnalyzeData, PageSource } from '../data/types';
import { count, duration, plural } from '../numbers';
import type { View } from '../view';
import { bandwidthView } from './bandwidth';
import { causesView } from './causes';
import { countersView } from './counters';
import { criticalPathView } from './critical_path';
import { findingsView } from './findings';
import { groupsView } from './groups';
import { heatmapView } from './heatmap';
import { idleView } from './idle';
import { imbalanceView } from './imbalance';
import { measuredView } from './measured_kernels';
import { memoryView } from './memory';
import { kernelsView, operatorsView } from './names';
import { overlapView } from './overlap';
import { qualityView } from './quality';
import { regionsView } from './regions';
import { sqlView } from './sql';
import { stagesView } from './stages';
import { stepsView } from './steps';
import { tablesView } from './tables';
import { timelineView } from './timeline';
import { waitsView } from './waits';
import { waterfallView } from './waterfall';
import { whatIfView } from './what_if';

/** Facts for the header of the page of one run. */
export function analyzeFacts(source: PageSource): readonly string[] {
  const { job, what_if, bubbles } = source.document.data as AnalyzeData;
  const ranks = job.world_size !== null && job.world_size > job.rank_count
    ? `${count(job.rank_count)} of ${plural(job.world_size, 'rank')}`
    : plural(job.rank_count, 'rank');
  return [
    ranks,
    ...(job.hosts.length > 0 ? [job.hosts.length === 1 ? job.hosts[0]! : plural(job.hosts.length, 'host')] : []),
    job.devices ?? (what_if?.study || bubbles ? 'operation trace' : 'CPU only'),
    ...(job.backend !== null ? [job.backend] : []),
    job.step_count > 0 ? plural(job.step_count, 'step') : 'no steps marked',
    `window ${duration(job.span_ns)}`,
    plural(job.event_count, 'event'),
  ];
}

/** In the order of the navigation; the first is what opens. */
export const analyzeViews: readonly View[] = [
  findingsView,
  criticalPathView,
  causesView,
  whatIfView,
  stepsView,
  heatmapView,
  stagesView,
  timelineView,
  idleView,
  overlapView,
  waitsView,
  waterfallView,
  bandwidthView,
  groupsView,
  kernelsView,
  operatorsView,
  measuredView,
  regionsView,
  memoryView,
  countersView,
  imbalanceView,
  tablesView,
  sqlView,
  qualityView,
];
