import { BlockReader, EmbeddedBlocks, ServedBlocks } from './bytes';
import { readCollectives } from './collectives';
import { readSteps } from './steps';
import type { SqlProgram } from '../sql/database';
import { eventsBytes, readEvents, readNames, readTimeline } from './timeline';
import type {
  AnalyzeData, CollectiveTable, DeclaredTable, PageDocument, PageSource, StepMatrix, TimelineLevel, TrackEvents,
} from './types';

/** Decoded events that are held, of the ranks looked at last. */
const HELD_EVENT_BYTES = 48 * 1024 * 1024;

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
  private readonly once = new Map<string, Promise<unknown>>();
  private readonly ranks = new RankCache();

  constructor(readonly document: PageDocument<unknown>, private readonly blocks: BlockReader) {}

  private get data(): AnalyzeData | null {
    return this.document.kind === 'analyze' ? (this.document.data as AnalyzeData) : null;
  }

  /** Reads and decodes a block that is then held; a failed reading is tried again when it is next asked for. */
  private held<T>(name: string, absent: T, decode: (bytes: Uint8Array) => T): Promise<T> {
    let promise = this.once.get(name) as Promise<T> | undefined;
    if (!promise) {
      promise = this.blocks.read(name, false).then((bytes) => (bytes ? decode(bytes) : absent));
      promise.catch(() => this.once.delete(name));
      this.once.set(name, promise);
    }
    return promise;
  }

  steps(): Promise<StepMatrix | null> {
    const shape = this.data?.step_matrix;
    return shape ? this.held<StepMatrix | null>('steps', null, (bytes) => readSteps(bytes, shape)) : Promise.resolve(null);
  }

  collectives(): Promise<CollectiveTable | null> {
    if (!this.data?.collective_count) return Promise.resolve(null);
    return this.held<CollectiveTable | null>('collectives', null, readCollectives);
  }

  tables(): Promise<DeclaredTable[]> {
    if (!this.data?.tables?.length) return Promise.resolve([]);
    return this.held<DeclaredTable[]>('tables', [], (bytes) => (JSON.parse(new TextDecoder().decode(bytes)) as { tables: DeclaredTable[] }).tables);
  }

  async sqlProgram(): Promise<SqlProgram | null> {
    const [worker, engine] = await Promise.all(['sql-worker', 'sqlite'].map((name) => this.held<Uint8Array | null>(name, null, (bytes) => bytes)));
    return worker && engine ? { worker, engine } : null;
  }

  timeline(): Promise<TimelineLevel[]> {
    return this.data?.timeline ? this.held<TimelineLevel[]>('timeline', [], readTimeline) : Promise.resolve([]);
  }

  names(): Promise<string[]> {
    return this.data?.timeline?.has_events ? this.held<string[]>('names', [], readNames) : Promise.resolve([]);
  }

  events(rank_index: number): Promise<TrackEvents[] | null> {
    if (!this.data?.timeline?.has_events || !this.data.ranks[rank_index]) return Promise.resolve(null);
    return this.ranks.get(rank_index, async () => {
      const bytes = await this.blocks.read(`events-${rank_index}`, true);
      return bytes && readEvents(bytes);
    });
  }
}

/** Events of the ranks looked at last, up to HELD_EVENT_BYTES; the one asked for last is always held. */
class RankCache {
  private readonly entries = new Map<number, { tracks: Promise<TrackEvents[] | null>; bytes: number }>();

  get(rank_index: number, read: () => Promise<TrackEvents[] | null>): Promise<TrackEvents[] | null> {
    let entry = this.entries.get(rank_index);
    if (entry) {
      this.entries.delete(rank_index);
    } else {
      const fresh = { tracks: read(), bytes: 0 };
      fresh.tracks.then(
        (tracks) => {
          fresh.bytes = tracks ? eventsBytes(tracks) : 0;
          this.trim();
        },
        () => this.entries.get(rank_index) === fresh && this.entries.delete(rank_index),
      );
      entry = fresh;
    }
    this.entries.set(rank_index, entry);
    return entry.tracks;
  }

  private trim(): void {
    let bytes = 0;
    for (const entry of this.entries.values()) bytes += entry.bytes;
    for (const [rank_index, entry] of this.entries) {
      if (bytes <= HELD_EVENT_BYTES || this.entries.size <= 1) return;
      bytes -= entry.bytes;
      this.entries.delete(rank_index);
    }
  }
}
