import { useEffect, useState } from 'preact/hooks';
import { href } from '../app/route';
import { Timeline } from './timeline';
import type { Alerts, Captures, Health, HistoryDocument, LiveData, LiveView, StageNews } from './types';

const KEY = 'lockstep-token';
/** Without an event for so long, the server is said to be silent; views come each second. */
const SILENT_MS = 6000;
const RETRY_MS = 2000;

/** What a page can have done, and which job and ranks it is about; more in docs/formats/live-page.md. */
export type ActionPath = 'captures' | 'hang';
export interface ActionBody {
  job_id: string;
  ranks?: number[];
  duration_ms?: number;
  iterations?: number;
  allow_unsafe?: boolean;
}

export type Connection = 'connecting' | 'open' | 'silent' | 'lost' | 'refused';

/** The token of the address, which is taken out of it: an address is copied, shown and kept in a history. */
export function takeToken(): string {
  const address = new URL(location.href);
  const given = address.searchParams.get('token');
  let kept: string | null = null;
  try {
    if (given !== null) sessionStorage.setItem(KEY, given);
    kept = sessionStorage.getItem(KEY);
  } catch {
    kept = null; // Storage may be forbidden: the token then stays where it is.
  }
  if (given !== null && kept !== null) {
    address.searchParams.delete('token');
    history.replaceState(null, '', address);
  }
  return given ?? kept ?? '';
}

/** What the page knows now. Components that show it call useLive(store), and are drawn again when it changes. */
export class LiveStore {
  view: LiveView | null = null;
  partial = false;
  alerts: Alerts | null = null;
  captures: Captures = { captures: [], hangs: [] };
  health: Health = { entries: [], dropped_count: 0 };
  stages: StageNews | null = null;
  readonly timeline = new Timeline();
  connection: Connection = 'connecting';
  /** When the last event came; performance.now(). */
  heard_ms = 0;
  paused = false;
  /** What is asked for is shown at once: how far it is, then its report. */
  opens_reports = true;
  private readonly readers = new Set<() => void>();
  private source: EventSource | null = null;
  private loading = false;
  private latest: LiveView | null = null;
  private drawing = false;
  private events = 0;

  constructor(readonly data: LiveData, private readonly token: string) {}

  start() {
    this.connect();
    setInterval(() => this.watch(), 1000);
    document.addEventListener('visibilitychange', () => document.hidden || this.changed());
  }

  private connect() {
    this.source?.close();
    this.connection = 'connecting';
    const source = new EventSource(`api/live/events?token=${encodeURIComponent(this.token)}`);
    this.source = source;
    const on = (name: string, take: (value: unknown) => void) =>
      source.addEventListener(name, (event) => {
        const begin = performance.now();
        this.heard_ms = begin;
        if (this.connection !== 'open') this.connection = 'open';
        document.documentElement.dataset['events'] = String(++this.events);
        take(JSON.parse((event as MessageEvent<string>).data));
        this.changed(begin);
      });
    source.onopen = () => {
      this.heard_ms = performance.now();
      this.connection = 'open';
      void this.loadHistory();
      this.changed();
    };
    source.onerror = () => {
      // The browser tries again by itself, unless the answer was a refusal.
      this.connection = 'lost';
      if (source.readyState === EventSource.CLOSED) void this.whyClosed();
      this.changed();
    };
    on('view', (value) => this.take((value as { data: LiveView; partial: boolean }).data, (value as { partial: boolean }).partial));
    on('alerts', (value) => (this.alerts = value as Alerts));
    on('captures', (value) => (this.captures = value as Captures));
    on('health', (value) => (this.health = value as Health));
    on('stages', (value) => {
      if (!this.paused) this.stages = value as StageNews;
    });
  }

  private async whyClosed() {
    try {
      const answer = await this.ask('api/live/view');
      if (answer.status === 401 || answer.status === 403) {
        this.connection = 'refused';
        this.changed();
        return;
      }
    } catch {
      // Nobody is there; perhaps in a moment.
    }
    setTimeout(() => this.connect(), RETRY_MS);
  }

  private watch() {
    if (this.connection !== 'open' || performance.now() - this.heard_ms < SILENT_MS) return;
    this.connection = 'silent';
    this.changed();
  }

  private take(view: LiveView, partial: boolean) {
    this.latest = view;
    // Until the history is there, views wait in the timeline: it is loaded over them and they are newer.
    if (!this.loading) this.timeline.append(view);
    if (this.timeline.is_full) void this.loadHistory();
    if (this.paused) return;
    this.view = view;
    this.partial = partial;
  }

  async loadHistory() {
    if (this.loading) return;
    this.loading = true;
    try {
      const answer = await this.ask('api/live/history');
      if (answer.ok) this.timeline.load((await answer.json()) as HistoryDocument);
    } catch {
      // It goes on with what it has; the connection says what is wrong.
    } finally {
      this.loading = false;
      if (this.latest) this.timeline.append(this.latest);
      this.changed();
    }
  }

  /** Stops what is shown; what comes is still kept. */
  pause(on: boolean) {
    this.paused = on;
    this.timeline.frozen_ns = on ? (this.view?.asked_unix_ns ?? null) : null;
    if (!on && this.latest) this.view = this.latest;
    this.changed(0, true);
  }

  private ask(path: string, body?: unknown): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    return fetch(path, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) });
  }

  /** Has a capture made or a hang looked at, at a click, gives its id and goes to its report, if that is wanted. Throws with words for people. */
  async begin(path: ActionPath, body: ActionBody): Promise<string> {
    const from = location.hash;
    const id = await this.act(path, body);
    if (this.opens_reports && location.hash === from) {
      // The button that had the focus goes with its view; the new one is drawn when the address has changed.
      window.addEventListener('hashchange', () => setTimeout(() => document.querySelector<HTMLElement>('#view-report h2')?.focus()), { once: true });
      location.hash = href('report', { id, job: body.job_id });
    }
    return id;
  }

  /** Asks for an action and gives the id of what was begun. Throws with words for people. */
  async act(path: string, body: unknown): Promise<string> {
    const answer = await this.ask(`api/live/${path}`, body);
    const text = await answer.text();
    let said: { id?: string; error?: { message?: string } } = {};
    try {
      said = JSON.parse(text) as typeof said;
    } catch {
      // Then the status is all there is.
    }
    if (!answer.ok) throw new Error(said.error?.message ?? `The server answers ${answer.status} ${answer.statusText}`);
    return said.id ?? '';
  }

  /** Tells who reads. `<html data-events>` counts what came, `<html data-tick-ms data-tick-most-ms data-ticks>` say how long handling an event took, drawing included. */
  private changed(begin = 0, even_paused = false) {
    if (document.hidden || (this.paused && !even_paused && this.connection === 'open')) return;
    for (const reader of [...this.readers]) reader();
    if (begin === 0 || this.drawing) return;
    this.drawing = true;
    const handled = performance.now() - begin;
    requestAnimationFrame(() => {
      // What was asked to be drawn in this frame is drawn before the next task.
      const drawn_from = performance.now();
      setTimeout(() => {
        this.drawing = false;
        const took = handled + (performance.now() - drawn_from);
        const { dataset } = document.documentElement;
        dataset['tickMs'] = took.toFixed(1);
        dataset['tickMostMs'] = Math.max(took, Number(dataset['tickMostMs'] ?? 0)).toFixed(1);
        dataset['ticks'] = String(Number(dataset['ticks'] ?? 0) + 1);
      }, 0);
    });
  }

  listen(reader: () => void): () => void {
    this.readers.add(reader);
    return () => void this.readers.delete(reader);
  }
}

export function useLive(store: LiveStore): LiveStore {
  const [, redraw] = useState(0);
  useEffect(() => store.listen(() => redraw((n) => n + 1)), [store]);
  return store;
}
