import { useContext } from 'preact/hooks';
import { href, useParam, ViewContext } from '../app/route';
import { capital } from '../numbers';
import { Note, Select } from '../parts/controls';
import type { View } from '../view';
import { captureWhat } from './action_words';
import { ActionState, clock, useJob, type Props } from './shared';
import type { LiveStore } from './store';
import type { Capture, HangLook } from './types';

const what = (action: Capture | HangLook) => `${'kept_count' in action ? capital(captureWhat(action)) : 'Why is it stuck'}: job ${action.job_id}, ${clock(action.asked_unix_ns)}`;

function Report({ data }: Props) {
  const { store } = useJob(data);
  const [id, choose] = useParam('id', '');
  const { stacked } = useContext(ViewContext);
  const all = [...store.captures.captures, ...store.captures.hangs].sort((a, b) => b.asked_unix_ns - a.asked_unix_ns);
  const action = all.find((each) => each.id === id) ?? (id === '' ? all.find((each) => each.url !== null) : undefined);
  if (!action) {
    return <Note>{id === '' ? 'There is no report yet.' : 'This server knows no report of that name: it was dropped for newer ones, or made before the server was started.'} <a href={href('captures')}>Captures</a></Note>;
  }
  return (
    <>
      <div class="view-choice tools">
        {all.length > 1 && <Select label="Of" value={action.id} onChange={choose} options={all.map((each) => ({ value: each.id, label: what(each) }))} />}
        <span role="status"><strong>{what(action)}</strong>: {action.url !== null ? 'ready' : <ActionState action={action} />}</span>
        {action.url !== null && <a class="tool report-link" href={action.url} target="_blank" rel="noopener">Open in a tab of its own</a>}
        <a class="tool" href={href('captures', { job: action.job_id })}>All captures</a>
      </div>
      {action.url !== null && !stacked && <iframe key={action.id} class="report" title={what(action)} src={action.url} />}
    </>
  );
}

export const reportView: View<LiveStore> = {
  id: 'report',
  title: 'Report',
  shows: 'What a capture, or a look at a stuck job, found.',
  group: 'Look closer',
  component: Report,
};
