import './styles/page.css';
import { startPage } from './app/start';
import { analyzeFacts, analyzeViews } from './views/analyze';
import type { View } from './view';

/** Reports are sent by mail: the pages of other commands (answer.tsx) and the live page (live.tsx) are programs of their own. */
void startPage({ analyze: { views: analyzeViews as readonly View<unknown>[], facts: analyzeFacts } });
