import { count, duration, plural } from '../numbers';
import { Answer } from '../parts/answer';
import { DataTable } from '../parts/data_table';
import type { View } from '../view';
import { SeverityWord, useJob, type Props } from './shared';
import type { LiveStore } from './store';
import { doubts, SEVERITIES, worldWords, type Doubt } from './verdict';

function Quality({ data }: Props) {
  const { view, job } = useJob(data);
  if (!view) return <p class="muted" role="status">Waiting for the first look at the nodes …</p>;
  const found = doubts(view, job);
  const grave = found.filter((each) => each.severity !== 'info');
  const worst = found[0];
  const answered = view.nodes.filter((node) => node.problem === null).length;
  return (
    <>
      <Answer
        kind={grave.length > 0 ? worst!.severity : 'info'}
        sentence={grave.length > 0 ? `${plural(grave.length, 'thing')} ${grave.length === 1 ? 'makes' : 'make'} this page incomplete: ${worst!.what.charAt(0).toLowerCase()}${worst!.what.slice(1)}.` : 'Every node answered, and no figures were lost.'}
      >
        {count(answered)} of {plural(view.nodes.length, 'node')} answered{job && <>; {worldWords(job)} of job {job.job_id}</>}. Figures are means over {duration(view.window_ns)}, from look {count(view.look_count)}.
      </Answer>
      <DataTable<Doubt>
        id="doubts"
        caption="What the figures lack, worst first"
        rows={found}
        rowKey={(row) => row.what}
        search={['what']}
        empty="Nothing is missing."
        columns={[
          { key: 'severity', title: 'Severity', value: (row) => SEVERITIES.indexOf(row.severity), text: (row) => row.severity, render: (row) => <SeverityWord severity={row.severity} /> },
          { key: 'what', title: 'What', value: (row) => row.what, width: 90 },
          { key: 'advice', title: 'What to do', value: (row) => row.advice || null, width: 60 },
        ]}
      />
    </>
  );
}

export const qualityView: View<LiveStore> = {
  id: 'quality',
  title: 'Data quality',
  shows: 'May I trust this page? Nodes and ranks that are missing, records that were dropped, clocks, and what is not measured.',
  group: 'Trust',
  component: Quality,
};
