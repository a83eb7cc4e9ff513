import './styles/page.css';
import { options, render } from 'preact';
import { Shell } from './app/shell';
import { startTheme } from './app/theme';
import { openPage } from './data/load';
import type { PageKind, PageSource } from './data/types';
import { analyzeFacts, analyzeViews } from './views/analyze';
import { compareFacts, compareViews } from './views/compare';
import { scalingFacts, scalingViews } from './views/scaling';
import type { View } from './view';

interface Pages {
  views: readonly View<unknown>[];
  facts: (source: PageSource) => readonly string[];
}

const PAGES: Record<PageKind, Pages> = {
  analyze: { views: analyzeViews as readonly View<unknown>[], facts: analyzeFacts },
  compare: { views: compareViews as readonly View<unknown>[], facts: compareFacts },
  scaling: { views: scalingViews as readonly View<unknown>[], facts: scalingFacts },
};

/** The browser lays the paper out right after `beforeprint`: what that event changes must be drawn within it. */
function drawAtOnceForPrint() {
  window.addEventListener('beforeprint', () => (options.debounceRendering = (draw) => draw()), { capture: true });
  window.addEventListener('afterprint', () => (options.debounceRendering = undefined));
}

async function start() {
  startTheme();
  const app = document.getElementById('app')!;
  try {
    const source = await openPage();
    const page = PAGES[source.document.kind];
    drawAtOnceForPrint();
    render(<Shell source={source} views={page.views} facts={page.facts(source)} />, app);
    document.documentElement.classList.add('running');
  } catch (error) {
    // The summary below is plain HTML and stays.
    console.error(error);
    render(
      <p class="banner" role="alert">
        The pictures of this page could not be drawn: {error instanceof Error ? error.message : String(error)}. What follows is the summary.
      </p>,
      app,
    );
  }
}

void start();
