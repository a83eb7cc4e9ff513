import { render } from 'preact';
import { loadBlock } from './blocks';
import { openPage } from '../data/load';
import type { PageKind, PageSource } from '../data/types';
import type { View } from '../view';
import { Shell } from './shell';
import { startTheme } from './theme';

/** What a kind of page shows. */
export interface Pages {
  views: readonly View<unknown>[];
  facts: (source: PageSource) => readonly string[];
}

const LARGEST_FOR_PAPER = 8 << 20;

/**
 * Printing takes what is there at that moment, so the parts that views draw are unpacked beforehand where they are small.
 * Of a larger page, "All on one page" shows what the paper will hold.
 */
function loadForPaper(source: PageSource) {
  const sizes = ['steps', 'collectives', 'tables', 'timeline', 'names'].map((name) => Number(document.getElementById(`lockstep-${name}`)?.dataset['rawBytes'] ?? 0));
  const { dataset } = document.documentElement;
  dataset['paper'] = 'on demand';
  if (sizes.every((size) => size === 0) || sizes.reduce((sum, size) => sum + size, 0) > LARGEST_FOR_PAPER) return;
  dataset['paper'] = 'unpacking';
  const ready = () => {
    if (blocks.every((block) => block.now.state !== 'loading')) dataset['paper'] = 'ready';
  };
  const blocks = [
    loadBlock(source, 'steps', () => source.steps()),
    loadBlock(source, 'collectives', () => source.collectives()),
    loadBlock(source, 'tables', () => source.tables()),
    loadBlock(source, 'timeline', () => source.timeline()),
    loadBlock(source, 'names', () => source.names()),
  ];
  for (const block of blocks) block.readers.add(ready);
  ready();
}

/** Draws the page by the kind that its data says. */
export async function startPage(pages: Partial<Record<PageKind, Pages>>) {
  startTheme();
  const app = document.getElementById('app')!;
  try {
    const source = await openPage();
    const page = pages[source.document.kind as PageKind];
    if (!page) throw new Error(`this program does not draw pages of the kind ${source.document.kind}`);
    render(<Shell source={source} views={page.views} facts={page.facts(source).join(' · ')} />, app);
    document.documentElement.classList.add('running');
    setTimeout(() => loadForPaper(source), 300);
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

