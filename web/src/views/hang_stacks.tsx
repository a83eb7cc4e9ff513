import { useMemo } from 'preact/hooks';
import { useNumberParam, useParam } from '../app/route';
import { isUserFrame, place, sharedFrames, type HangData, type StackFrame } from '../data/hang';
import { count, plural, rankList } from '../numbers';
import { Select } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import type { View, ViewProps } from '../view';

const CARDS = 12;

interface Stack {
  ranks: readonly number[];
  frames: readonly StackFrame[];
  source: string | null;
  /** "culprit", "victim", or both where ranks of different roles share it. */
  roles: string[];
  what: string;
}

/** Stacks of the ranks' main threads; where none were taken, those that the flight record has of their calls. */
export function stacksOf(data: HangData): Stack[] {
  const role = new Map(data.ranks.map((rank) => [rank.rank, rank.role]));
  const rolesOf = (ranks: readonly number[]) => [...new Set(ranks.map((rank) => role.get(rank) ?? 'unknown'))];
  if (data.stacks.length > 0) return data.stacks.map((stack) => ({ ...stack, roles: rolesOf(stack.ranks), what: '' }));
  return data.verdict.sites.filter((site) => site.stack.length > 0)
    .map((site) => ({ ranks: site.ranks, frames: site.stack, source: 'flight_recorder', roles: [site.role], what: site.what ?? '' }));
}

/** The stack that shows the culprit best, and the one that most of the others have. */
export function pair(stacks: readonly Stack[]): [number, number] {
  const culprit = stacks.findIndex((stack) => stack.roles.includes('culprit'));
  const left = culprit >= 0 ? culprit : 0;
  let right = -1;
  stacks.forEach((stack, at) => {
    if (at === left) return;
    const better = right < 0 || Number(stack.roles.includes('victim')) > Number(stacks[right]!.roles.includes('victim')) ||
      (stack.roles.includes('victim') === stacks[right]!.roles.includes('victim') && stack.ranks.length > stacks[right]!.ranks.length);
    if (better) right = at;
  });
  return [left, right < 0 ? left : right];
}

/** Innermost first. `first_own` is the frame in which this stack leaves the other; -1 = none. */
function Frames({ frames, first_own, label }: { frames: readonly StackFrame[]; first_own: number; label: string }) {
  return (
    <ol class="stack" aria-label={label}>
      {frames.map((frame, at) => (
        <li key={at} class={`${isUserFrame(frame) ? 'user' : ''}${at === first_own ? ' differs' : ''}${first_own >= 0 && at > first_own ? ' shared' : ''}`}>
          <code title={frame.file ?? undefined}>{frame.function || '?'} <span class="muted">{place(frame)}</span></code>
          {at === first_own && <span class="differs-word"> first difference</span>}
        </li>
      ))}
    </ol>
  );
}

function name(stack: Stack): string {
  return `${rankList(stack.ranks)}${stack.roles.length === 1 ? `, ${stack.roles[0]}` : ''}`;
}

function Side({ stack, other }: { stack: Stack; other: Stack }) {
  const shared = stack === other ? 0 : sharedFrames(stack.frames, other.frames);
  const first_own = stack === other ? -1 : stack.frames.length - shared - 1;
  return (
    <section class={`finding ${stack.roles.includes('culprit') ? 'critical' : ''}`} aria-label={name(stack)}>
      <div class="finding-head"><strong>{rankList(stack.ranks)}</strong><span class="severity">{stack.roles.join(', ')}</span></div>
      {stack.what && <p>{stack.what}</p>}
      <Frames frames={stack.frames} first_own={first_own} label={`Stack of ${rankList(stack.ranks)}, innermost first`} />
    </section>
  );
}

function Stacks({ data }: ViewProps<HangData>) {
  const stacks = useMemo(() => stacksOf(data), [data]);
  const [rank] = useNumberParam('rank');
  const [left_text, setLeft] = useParam('left', '');
  const [right_text, setRight] = useParam('right', '');
  const [left_best, right_best] = useMemo(() => pair(stacks), [stacks]);
  const asked = rank === null ? -1 : stacks.findIndex((stack) => stack.ranks.includes(rank));
  const chosen = (text: string, fallback: number) => (/^\d+$/.test(text) && stacks[Number(text)] ? Number(text) : fallback);
  const left = chosen(left_text, asked >= 0 ? asked : left_best);
  const right = chosen(right_text, right_best === left ? left_best : right_best);
  const options = stacks.map((stack, at) => ({ value: String(at), label: name(stack) }));
  const most = stacks.reduce((best, stack) => (stack.ranks.length > best.ranks.length ? stack : best), stacks[0]!);
  const inner = (stack: Stack): StackFrame | undefined => stack.frames.find(isUserFrame) ?? stack.frames[0];
  return (
    <>
      {stacks.length > 1 && (
        <section aria-label="Side by side">
          <div class="figure-bar">
            <h3>Side by side, innermost first</h3>
            <span class="tools">
              <Select label="Left" value={String(left)} onChange={setLeft} options={options} />
              <Select label="Right" value={String(right)} onChange={setRight} options={options} />
            </span>
          </div>
          <div class="side-by-side">
            <Side stack={stacks[left]!} other={stacks[right]!} />
            <Side stack={stacks[right]!} other={stacks[left]!} />
          </div>
        </section>
      )}
      <section aria-label="All stacks">
        <h3 class="section-title">{plural(stacks.length, 'different stack')}, the rarest first</h3>
        <ul class="findings">
          {stacks.slice(0, CARDS).map((stack, at) => {
            const shared = stack === most ? stack.frames.length : sharedFrames(stack.frames, most.frames);
            return (
              <li key={at} class={`finding ${stack.roles.includes('culprit') ? 'critical' : ''}`}>
                <div class="finding-head">
                  <strong>{rankList(stack.ranks, 12)}</strong>
                  <span class="severity">{stack.roles.join(', ')} <span class="muted">{stack.source}</span></span>
                </div>
                {stack.what && <p>{stack.what}</p>}
                <Frames frames={stack.frames} first_own={stack === most ? -1 : stack.frames.length - shared - 1} label={`Stack of ${rankList(stack.ranks)}, innermost first`} />
              </li>
            );
          })}
        </ul>
        {stacks.length > CARDS && <p class="muted">… and {count(stacks.length - CARDS)} more, in the table.</p>}
      </section>
      <DataTable
        id="stack-groups"
        caption="Ranks by stack"
        columns={[
          { key: 'count', title: 'Ranks', numeric: true, value: (row: Stack) => row.ranks.length },
          { key: 'ranks', title: 'Which', value: (row) => rankList(row.ranks, 12), width: 50 },
          { key: 'roles', title: 'Role', value: (row) => row.roles.join(', ') },
          { key: 'function', title: 'Innermost of the user', value: (row) => inner(row)?.function ?? null, width: 40 },
          { key: 'place', title: 'Line', value: (row) => { const frame = inner(row); return frame ? place(frame) : null; }, width: 40 },
          { key: 'source', title: 'Source', value: (row) => row.source },
        ]}
        rows={stacks}
        rowKey={(row) => `${row.source} ${row.roles.join()} ${row.what} ${row.ranks.join()}`}
        search={['ranks', 'function', 'place']}
      />
    </>
  );
}

export const stacksView: View<HangData> = {
  id: 'stacks',
  title: 'Stacks',
  shows: 'Where the ranks are in the code, equal stacks as one; where the culprit’s stack leaves the victims’ is marked.',
  group: 'Evidence',
  missing: (data) => (stacksOf(data).length > 0 ? null : 'No stacks were collected, and the flight record has none.'),
  component: Stacks,
};
