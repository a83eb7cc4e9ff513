import { href } from '../app/route';
import { groupLabel, place, type CodeSite, type HangData, type HangVerdict } from '../data/hang';
import { count, percent, plural, rankList } from '../numbers';
import type { View, ViewProps } from '../view';

type Props = ViewProps<HangData>;

const KINDS: Record<string, string> = {
  skipped_collective: 'A rank skipped a collective',
  extra_collective: 'A rank called a collective that the others did not',
  wrong_order: 'Collectives called in another order',
  operation_mismatch: 'Different operations met',
  size_mismatch: 'Different sizes met',
  dtype_mismatch: 'Different types of numbers met',
  stuck_outside_collective: 'A rank is busy or stuck outside of communication',
  device_stalled: 'A device does not finish what its program enqueued',
  crash: 'A process has ended',
  peer_unreachable: 'Ranks cannot reach each other',
  deadlock: 'Ranks wait for each other in a circle',
  unmatched_p2p: 'A send without receive, or a receive without send',
  straggler: 'Slow, not stuck',
  healthy: 'Nothing is wrong',
  undecidable: 'The evidence does not decide',
};

/** Kinds that need nobody to step in at once. */
const CALM = ['healthy'];
const UNSURE = ['undecidable', 'straggler'];

export function kindWords(kind: string): string {
  return KINDS[kind] ?? kind.replaceAll('_', ' ');
}

/** Below an even chance nobody is accused. */
export function culpritWords(verdict: HangVerdict): string {
  return verdict.confidence < 0.5 ? 'Suspects' : verdict.culprit_ranks.length === 1 ? 'Culprit' : 'Culprits';
}

export function collectiveWords(verdict: Pick<HangVerdict, 'operation' | 'sequence' | 'group' | 'group_description'>): string {
  const what = `${verdict.operation || 'operation'}${verdict.sequence === null ? '' : ` #${verdict.sequence}`}`;
  return verdict.group || verdict.group_description ? `${what} in ${groupLabel({ name: verdict.group ?? '', description: verdict.group_description })}` : what;
}

function where(data: HangData, ranks: readonly number[]): string {
  const at = data.ranks.filter((each) => ranks.includes(each.rank) && each.host);
  if (ranks.length > 4 || at.length === 0) return '';
  return ` (${at.map((each) => `${each.host}${each.pid ? `, pid ${each.pid}` : ''}`).join('; ')})`;
}

function Site({ site }: { site: CodeSite }) {
  return (
    <li class={`finding ${site.role === 'culprit' ? 'critical' : ''}`}>
      <div class="finding-head">
        <strong>{rankList(site.ranks)}</strong>
        <span class="severity">{site.role}</span>
      </div>
      {site.what && <p>{site.what}</p>}
      {site.file && <p><code title={site.file}>{site.function ? `${site.function} ` : ''}{place(site)}</code></p>}
    </li>
  );
}

function Verdict({ data }: Props) {
  const { verdict } = data;
  const level = CALM.includes(verdict.kind) ? '' : UNSURE.includes(verdict.kind) || verdict.confidence < 0.5 ? 'warning' : 'critical';
  const against = data.evidence.filter((item) => item.contradicts).length;
  const facts: [string, string][] = [
    ...(verdict.culprit_ranks.length > 0 ? [[culpritWords(verdict), rankList(verdict.culprit_ranks, 12) + where(data, verdict.culprit_ranks)] as [string, string]] : []),
    ...(verdict.victim_ranks.length > 0 ? [['Victims', rankList(verdict.victim_ranks, 12)] as [string, string]] : []),
    ...(verdict.operation || verdict.sequence !== null ? [['Collective', collectiveWords(verdict)] as [string, string]] : []),
    ...(verdict.group_ranks.length > 0 ? [['Members of the group', rankList(verdict.group_ranks, 12)] as [string, string]] : []),
  ];
  return (
    <>
      <section class={`verdict ${level}`} aria-label="Verdict">
        <p>{verdict.explanation || kindWords(verdict.kind)}</p>
        <p class="verdict-gain">{kindWords(verdict.kind)} (<code>{verdict.kind}</code>), {percent(verdict.confidence)} sure</p>
      </section>
      <section aria-label="In short">
        <dl class="facts-list">
          {facts.map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}
          <div>
            <dt>Evidence</dt>
            <dd>
              <a href={href('evidence')}>{plural(data.evidence.length - against, 'fact')} for it{against > 0 ? `, ${count(against)} against` : ', none against'}</a>
              {data.missing.length > 0 && <> · <a href={href('missing')}>{plural(data.missing.length, 'thing')} missing</a></>}
            </dd>
          </div>
        </dl>
      </section>
      {verdict.sites.length > 0 && (
        <section aria-label="Lines of code">
          <h3 class="section-title">Where in the code</h3>
          <ul class="findings sites">{verdict.sites.map((site) => <Site key={`${site.role} ${site.ranks.join()} ${site.what}`} site={site} />)}</ul>
        </section>
      )}
      {verdict.advice.length > 0 && (
        <section aria-label="What to do">
          <h3 class="section-title">What to try</h3>
          <ol class="plain-list">{verdict.advice.map((text) => <li key={text}>{text}</li>)}</ol>
        </section>
      )}
      {data.context.length > 0 && (
        <section aria-label="Other explanations">
          <h3 class="section-title">Also seen, or less likely</h3>
          <ul class="plain-list">
            {data.context.map((other, at) => <li key={at}>{other.explanation || kindWords(other.kind)} <span class="muted">(<code>{other.kind}</code>, {percent(other.confidence)})</span></li>)}
          </ul>
        </section>
      )}
    </>
  );
}

export const hangVerdictView: View<HangData> = {
  id: 'verdict',
  title: 'Verdict',
  shows: 'What holds the job up: which rank, which collective, which line, how sure that is, and what to try.',
  group: 'Verdict',
  component: Verdict,
};
