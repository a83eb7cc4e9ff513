import type { Finding } from '../data/types';
import { duration, percent, rankList } from '../numbers';
import { href } from '../app/route';
import type { View, ViewProps } from '../view';

const SEVERITY: Record<Finding['severity'], string> = { critical: 'Critical', warning: 'Warning', info: 'Note' };

function Card({ finding, place }: { finding: Finding; place: number }) {
  return (
    <li class={`finding ${finding.severity}`}>
      <h3>
        <span class="finding-place">{place}</span> {finding.title}
      </h3>
      <p class="finding-line">
        <span class="severity">{SEVERITY[finding.severity]}</span>
        {finding.gain_ns_per_step !== null && <> · saves up to <strong>{duration(finding.gain_ns_per_step)}</strong> a step</>}
        {finding.ranks.length > 0 && <> · {rankList(finding.ranks)}</>}
      </p>
      <ul class="evidence">{finding.evidence.map((each) => <li key={each.name}>{each.text}</li>)}</ul>
      {finding.advice.map((advice) => <p key={advice} class="advice">→ {advice}</p>)}
    </li>
  );
}

function Findings({ data }: ViewProps) {
  return <ol class="findings">{data.findings.map((finding, at) => <Card key={finding.id + at} finding={finding} place={at + 1} />)}</ol>;
}

void percent;
void href;

export const findingsView: View = {
  id: 'verdict',
  title: 'Verdict and findings',
  shows: 'What is wrong with this run, what it costs, and what to do about it; largest gain first.',
  group: 'Answer',
  component: Findings,
};
