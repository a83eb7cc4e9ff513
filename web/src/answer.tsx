import './styles/page.css';
import { startPage } from './app/start';
import { benchFacts, benchViews } from './views/bench';
import { compareFacts, compareViews } from './views/compare';
import { hangFacts, hangViews } from './views/hang';
import { kernelsFacts, kernelsViews } from './views/kernels_answer';
import { ncclFacts, ncclViews } from './views/nccl';
import { scalingFacts, scalingViews } from './views/scaling';
import { stageComparisonFacts, stageComparisonViews } from './views/stage_comparison';
import { stagesFacts, stagesViews } from './views/stages_answer';
import type { View } from './view';

void startPage({
  compare: { views: compareViews as readonly View<unknown>[], facts: compareFacts },
  scaling: { views: scalingViews as readonly View<unknown>[], facts: scalingFacts },
  hang: { views: hangViews as readonly View<unknown>[], facts: hangFacts },
  stages: { views: stagesViews, facts: stagesFacts },
  'stage-comparison': { views: stageComparisonViews, facts: stageComparisonFacts },
  nccl: { views: ncclViews, facts: ncclFacts },
  kernels: { views: kernelsViews, facts: kernelsFacts },
  fabric: { views: benchViews, facts: benchFacts },
});
