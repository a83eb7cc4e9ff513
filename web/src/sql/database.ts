import { sourcesIn, type SqlSource } from './page_tables';
import type { Reply, Request, SqlAnswer } from './messages';

/** The two blocks of the page that are SQLite: docs/formats/page-data.md. */
export interface SqlProgram {
  worker: Uint8Array;
  engine: Uint8Array;
}

/** SQLite over the page's data, in a worker that is started when it is first asked. Tables are filled when a statement names them, and stay. */
export class PageDatabase {
  private worker: Worker | null = null;
  private readonly filled = new Set<SqlSource>();
  private readonly waiting = new Map<number, { done: (answer: SqlAnswer | null) => void; failed: (error: Error) => void }>();
  private next_id = 0;

  constructor(private readonly program: SqlProgram, readonly sources: readonly SqlSource[]) {}

  /**
   * What one statement answers, at most `most_rows` rows; `onStep` says how far filling is. Throws what SQLite says, or that it was stopped. One at a time.
   */
  async ask(sql: string, most_rows: number, onStep: (done: number, all: number) => void): Promise<SqlAnswer> {
    if (!this.worker) await this.start();
    const wanted = sourcesIn(sql, this.sources).filter((source) => !this.filled.has(source));
    const all = wanted.reduce((sum, source) => sum + source.step_count, 0);
    let before = 0;
    for (const source of wanted) {
      let steps = 0;
      for await (const chunks of source.chunks()) {
        for (const chunk of chunks) await this.say({ kind: 'fill', ...chunk });
        onStep(before + Math.min(++steps, source.step_count), all);
      }
      before += source.step_count;
      this.filled.add(source);
    }
    return (await this.say({ kind: 'ask', sql, most_rows }))!;
  }

  /** Ends a statement that takes too long; the next one starts anew. */
  stop(): void {
    this.worker?.terminate();
    this.worker = null;
    this.filled.clear();
    for (const { failed } of this.waiting.values()) failed(new Error('Stopped.'));
    this.waiting.clear();
  }

  private async start(): Promise<void> {
    const address = URL.createObjectURL(new Blob([this.program.worker as BlobPart], { type: 'text/javascript' }));
    const worker = new Worker(address);
    worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ('error' in data) waiting?.failed(new Error(data.error));
      else waiting?.done(data.answer);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      for (const { failed } of this.waiting.values()) failed(new Error(`SQLite does not run in this browser: ${event.message}`));
      this.waiting.clear();
    };
    this.worker = worker;
    await this.say({ kind: 'open', engine: this.program.engine });
    URL.revokeObjectURL(address);
    for (const source of this.sources) for (const sql of source.make) await this.say({ kind: 'make', sql });
  }

  private say(request: Request): Promise<SqlAnswer | null> {
    const worker = this.worker;
    if (!worker) return Promise.reject(new Error('Stopped.'));
    return new Promise((done, failed) => {
      const id = this.next_id++;
      this.waiting.set(id, { done, failed });
      worker.postMessage({ id, request });
    });
  }
}
