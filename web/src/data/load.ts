import { BlockReader, EmbeddedBlocks, ServedBlocks } from './bytes';
import type {
  AnalyzeData, CollectiveTable, PageDocument, PageSource, StepMatrix, TimelineLevel, TrackEvents,
} from './types';

/** The data of the page that the program runs in: embedded, or of the server that <meta name="lockstep-data"> names. */
export async function openPage(root: Document = document): Promise<PageSource> {
  const served = root.querySelector('meta[name="lockstep-data"]')?.getAttribute('content');
  return readPage(served ? new ServedBlocks(served) : new EmbeddedBlocks(root));
}

/** The data of a page from its blocks. */
export async function readPage(blocks: BlockReader): Promise<PageSource> {
  const main = await blocks.read('main', false);
  if (!main) throw new Error('This page has no data: it was cut, or it is only the template.');
  const document = JSON.parse(new TextDecoder().decode(main)) as PageDocument<unknown>;
  if (document.schema !== 'lockstep.page/1') throw new Error(`This page's data is of another version: ${document.schema}`);
  return new Page(document, blocks);
}

class Page implements PageSource {
  constructor(readonly document: PageDocument<unknown>, protected readonly blocks: BlockReader) {}

  protected get data(): AnalyzeData | null {
    return this.document.kind === 'analyze' ? (this.document.data as AnalyzeData) : null;
  }
  steps(): Promise<StepMatrix | null> {
    return Promise.resolve(null);
  }
  collectives(): Promise<CollectiveTable | null> {
    return Promise.resolve(null);
  }
  timeline(): Promise<TimelineLevel[]> {
    return Promise.resolve([]);
  }
  events(_rank_index: number): Promise<TrackEvents[] | null> {
    return Promise.resolve(null);
  }
  names(): Promise<string[]> {
    return Promise.resolve([]);
  }
}
