import './styles/page.css';
import { startPage } from './app/start';
import { compareFacts, compareViews } from './views/compare';
import { hangFacts, hangViews } from './views/hang';
import { scalingFacts, scalingViews } from './views/scaling';
import type { View } from './view';

void startPage({
  compare: { views: compareViews as readonly View<unknown>[], facts: compareFacts },
  scaling: { views: scalingViews as readonly View<unknown>[], facts: scalingFacts },
  hang: { views: hangViews as readonly View<unknown>[], facts: hangFacts },
});
