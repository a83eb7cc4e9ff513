import type { ComponentChildren } from 'preact';
import { useContext, useRef, useState } from 'preact/hooks';
import { href, useChoice, useRoute, ViewContext } from '../app/route';
import { ABSENT, capital, count, NOT_MEASURED, percent, plural, rankList } from '../numbers';
import { Note, Select } from '../parts/controls';
import { useLive, type ActionBody, type ActionPath, type LiveStore } from './store';
import type { Timeline } from './timeline';

import type { Capture, Columns, HangLook, LiveJob, LiveRank, LiveView, RankState, Severity } from './types';
import { CAPTURE_STATES, captureWhat, HANG_STATES } from './action_words';
import { chosenJob, STATE_WORDS } from './verdict';

export type Props = { data: LiveStore };

/** The job that the address names, or else the largest; and what the page knows, drawn again when it changes. */
export function useJob(data: LiveStore): { store: LiveStore; view: LiveView | null; job: LiveJob | null } {
  const store = useLive(data);
  const route = useRoute();
  const view = store.view;
  return { store, view, job: view && chosenJob(view, route.params.get('job') ?? store.data.job_id ?? '') };
}

/** What stands in a view of a job while there is none. */
export function NoJob({ view }: { view: LiveView | null }) {
  if (!view) return <p class="muted" role="status">Waiting for the first look at the nodes …</p>;
  const silent = view.nodes.filter((node) => node.problem !== null).length;
  return (
    <Note kind={silent > 0 ? 'warning' : 'info'}>
      {silent === view.nodes.length ? 'No node answers.' : 'No job is seen on these nodes.'}{' '}
      {silent > 0 ? <a href={href('quality')}>{plural(silent, 'node')} {silent === 1 ? 'does' : 'do'} not answer</a> : 'Ranks show when they record (LOCKSTEP_TRACE) or are registered for captures.'}
    </Note>
  );
}

const STATE_MARK: Record<RankState, string> = { unheard: 'error', stuck: 'error', slow: 'warning', waits: '', runs: '', silent: 'muted' };

export function StateWord({ state }: { state: RankState }) {
  return <span class={`severity-word ${STATE_MARK[state]}`} title={STATE_WORDS[state]}>{state}</span>;
}
export function SeverityWord({ severity }: { severity: Severity | string | null }) {
  return <span class={`severity-word ${severity === 'critical' ? 'error' : severity === 'warning' ? 'warning' : ''}`}>{severity ?? ABSENT}</span>;
}

export const PHASE_LEGEND = [
  { mark: 'compute', label: 'compute (forward, backward, optimizer)' },
  { mark: 'communication', label: 'exposed communication' },
  { mark: 'host', label: 'input (data loader, copy to the device)' },
  { mark: 'idle', label: 'other' },
];

/** The step's shares as a bar; nothing measured is hatched. */
export function PhaseBar({ rank, width = 96 }: { rank: LiveRank; width?: number }) {
  const parts: [string, number | null][] = [['compute', rank.compute_ratio], ['communication', rank.communication_ratio], ['host', rank.input_ratio]];
  const measured = parts.some(([, ratio]) => ratio !== null);
  let x = 0;
  return (
    <svg class="phase-bar" width={width} height="12" aria-hidden="true">
      <rect class={measured ? 'fill-idle' : 'fill-absent'} width={width} height="12" />
      {parts.map(([mark, ratio]) => {
        const w = Math.max(0, Math.min(1, ratio ?? 0)) * width;
        x += w;
        return w > 0 && <rect key={mark} class={`fill-${mark}`} x={x - w} width={w} height="12" />;
      })}
    </svg>
  );
}

export function phaseWords(rank: LiveRank): string {
  return `compute ${percent(rank.compute_ratio)}, exposed communication ${percent(rank.communication_ratio)}, input ${percent(rank.input_ratio)}`;
}

export function Facts({ items }: { items: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts-list">
      {items.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value === ABSENT ? <span title={NOT_MEASURED}>{ABSENT}</span> : value}</dd></div>)}
    </dl>
  );
}

/** Which stretch of time pictures show. */
export const SPANS = ['1', '2', '5', '10', '30'] as const;
export function useSpan(store: LiveStore): { buckets: number; words: string; picker: ComponentChildren } {
  const [span, setSpan] = useChoice('last', SPANS, '2');
  // One more, so that the first one is that long ago.
  const buckets = Math.max(2, Math.round((Number(span) * 60e9) / store.timeline.bucket_ns) + 1);
  return {
    buckets, words: `the last ${plural(Number(span), 'minute')}`,
    picker: <Select label="Last" value={span} onChange={setSpan} options={SPANS.map((value) => ({ value, label: `${value} min` }))} />,
  };
}

export function clock(unix_ns: number | null, seconds = true): string {
  if (unix_ns === null) return ABSENT;
  return new Date(unix_ns / 1e6).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', ...(seconds ? { second: '2-digit' } : {}) });
}

/** Rows in an order that stands still while somebody reads or points at them, and else changes every few seconds only. */
export function useCalmOrder<T>(items: readonly T[], key: (item: T) => string, urgent: (item: T) => string, worse: (a: T, b: T) => number): { rows: T[]; calm: Record<string, () => void> } {
  const held = useRef<{ order: string[]; urgent: string; at: number; busy: boolean }>({ order: [], urgent: '', at: -Infinity, busy: false });
  const now = performance.now();
  const sorted = [...items].sort(worse);
  const state = sorted.map((item) => `${key(item)} ${urgent(item)}`).sort().join('\n');
  const by = new Map(items.map((item) => [key(item), item]));
  const { current } = held;
  const kept = current.order.filter((each) => by.has(each));
  const due = state !== current.urgent || now - current.at > 5000;
  if (kept.length !== items.length || (due && !current.busy)) {
    current.order = sorted.map(key);
    current.urgent = state;
    current.at = now;
  }
  const set = (busy: boolean) => () => void (current.busy = busy);
  return {
    rows: current.order.map((each) => by.get(each)!),
    calm: { onFocusIn: set(true), onFocusOut: set(false), onPointerEnter: set(true), onPointerLeave: set(false) },
  };
}

/** How one action goes: its state in words, and the link when it is ready. */
export function ActionState({ action }: { action: Capture | HangLook }) {
  const is_capture = 'kept_count' in action;
  const words = is_capture ? CAPTURE_STATES[action.state as Capture['state']] : HANG_STATES[action.state as HangLook['state']];
  const progress = is_capture
    ? action.target_count !== null && action.state !== 'ready' ? ` (${count(action.kept_count ?? 0)} of ${plural(action.target_count, 'trace')})` : ''
    : action.total_count !== null && action.state === 'collecting' ? ` (${count(action.done_count ?? 0)} of ${plural(action.total_count, 'node')})` : '';
  return (
    <>
      {action.url !== null
        ? <a class="report-link" href={action.url} target="_blank" rel="noopener">Open the {is_capture ? 'report' : 'hang page'}</a>
        : <span class={action.state === 'failed' || action.state === 'cancelled' ? 'severity-word error' : undefined}>{words}{progress}</span>}
      {action.is_partial && <span class="severity-word warning"> partial</span>}
      {action.reason !== null && <span class="muted"> {action.reason}</span>}
    </>
  );
}

/** Whether the page goes to the report of what is asked for from here. */
export function OpenByItself({ store }: { store: LiveStore }) {
  const [on, setOn] = useState(store.opens_reports);
  return (
    <label class="check">
      <input type="checkbox" checked={on} onChange={() => setOn((store.opens_reports = !on))} /> go to the report
    </label>
  );
}

/** Asks for a capture or a hang page, and shows here how it goes. */
export function Actions({ store, job_id, ranks }: { store: LiveStore; job_id: string; ranks: readonly string[] }) {
  const [begun, setBegun] = useState<string[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const [asking, setAsking] = useState(false);
  const { stacked } = useContext(ViewContext);
  if (stacked) return null;
  const numbers = ranks.map(Number).filter(Number.isInteger);
  const run = async (path: ActionPath, body: ActionBody) => {
    setAsking(true);
    setProblem(null);
    try {
      const id = await store.begin(path, body);
      setBegun((before) => [id, ...before]);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setAsking(false);
    }
  };
  const mine = [...store.captures.captures, ...store.captures.hangs].filter((each) => begun.includes(each.id));
  if (!store.data.may_capture) return <Note>This server may not capture or inspect processes; it only watches.</Note>;
  return (
    <div class="actions">
      <span class="tools">
        {numbers.length > 0 && numbers.length === ranks.length && (
          <button type="button" class="tool" disabled={asking} onClick={() => void run('captures', { job_id, ranks: numbers })}>Capture {rankList(numbers)} now</button>
        )}
        <button type="button" class="tool" disabled={asking} onClick={() => void run('captures', { job_id })}>Capture the whole job now</button>
        <button type="button" class="tool" disabled={asking} onClick={() => void run('hang', { job_id })} title="Collects stacks and flight records of all ranks; each process is stopped for a moment">Why is it stuck?</button>
        <OpenByItself store={store} />
        <a class="tool" href={href('captures', { ...(numbers.length > 0 ? { ranks: numbers.join(',') } : {}), job: job_id })}>More choices</a>
      </span>
      <div role="status">
        {mine.map((action) => (
          <p key={action.id} class="action-line">
            {'kept_count' in action ? capital(captureWhat(action)) : 'Why is it stuck'}: <ActionState action={action} />
            {action.sentence !== null && <span class="muted"> {action.sentence}</span>}
          </p>
        ))}
      </div>
      {problem !== null && <p class="note warning" role="alert">{problem}</p>}
    </div>
  );
}

/** One figure of all rows over time, as a matrix; NaN: not measured. */
export function rowsOver(rows: readonly (Columns | undefined)[], name: string, buckets: number, timeline: Timeline): Float64Array {
  const values = new Float64Array(rows.length * buckets).fill(NaN);
  const from = timeline.shown - buckets;
  const last = timeline.last_number;
  rows.forEach((columns, row) => {
    const column = columns?.[name];
    if (!column) return;
    // A place of the matrix belongs to a time for good, so that a cursor stays where it is while time goes on: number mod buckets.
    for (let at = Math.max(0, from); at < Math.min(column.length, timeline.shown); ++at) {
      const value = column[at];
      if (value === null || value === undefined) continue;
      values[row * buckets + (((last - (timeline.shown - 1 - at)) % buckets) + buckets) % buckets] = value;
    }
  });
  return values;
}

/** Which column of that matrix stands at each place, oldest first; and how long before now a column is. */
export function timeColumns(buckets: number, { last_number, bucket_ns }: Timeline): { columns: Uint32Array; ago: (column: number) => number } {
  const columns = Uint32Array.from({ length: buckets }, (_, at) => (((last_number - buckets + 1 + at) % buckets) + buckets) % buckets);
  const now = ((last_number % buckets) + buckets) % buckets;
  return { columns, ago: (column) => ((now - column + buckets) % buckets) * bucket_ns };
}
