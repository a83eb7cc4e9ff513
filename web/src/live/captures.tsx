import { useState } from 'preact/hooks';
import { useChoice, useParam } from '../app/route';
import { ABSENT, duration, percent } from '../numbers';
import { Choice, Note, Select } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import type { View } from '../view';
import { captureWhat } from './action_words';
import { ActionState, clock, OpenByItself, useJob, type Props } from './shared';
import type { ActionBody, ActionPath, LiveStore } from './store';
import type { Capture, HangLook } from './types';
import { parseRanks } from './verdict';

const MODES = ['duration', 'iterations'] as const;
const OPTIONS = [
  { key: 'stacks', label: 'Python stacks' },
  { key: 'record_shapes', label: 'shapes' },
  { key: 'memory', label: 'memory' },
  { key: 'allow_unsafe', label: 'even where Kineto can end the job by it (PyTorch before 2.14, not under lockstep run)' },
] as const;

function Form({ store, job_ids, job_id }: { store: LiveStore; job_ids: string[]; job_id: string }) {
  const [chosen, setChosen] = useParam('job', '');
  const [ranks, setRanks] = useParam('ranks', '');
  const [mode, setMode] = useChoice('mode', MODES, 'duration');
  const [milliseconds, setMilliseconds] = useState('500');
  const [iterations, setIterations] = useState('5');
  const [options, setOptions] = useState<string[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const [said, setSaid] = useState('');
  const numbers = parseRanks(ranks);
  const length = Number(mode === 'duration' ? milliseconds : iterations);
  const most = mode === 'duration' ? 60_000 : 1000;
  const wrong = numbers === null ? 'Ranks are numbers and ranges, such as 0-3,8.' : !Number.isInteger(length) || length < 1 || length > most ? `${mode === 'duration' ? 'Milliseconds' : 'Iterations'} are a whole number from 1 to ${most}.` : null;
  const job = chosen || job_id;
  const run = async (path: ActionPath, body: ActionBody, words: string) => {
    setProblem(null);
    setSaid('');
    try {
      await store.begin(path, body);
      setSaid(words);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form
      class="capture-form"
      aria-label="Start a capture"
      onSubmit={(event) => {
        event.preventDefault();
        if (wrong !== null) return setProblem(wrong);
        void run('captures', {
          job_id: job, ...(numbers!.length > 0 ? { ranks: numbers! } : {}), ...(mode === 'duration' ? { duration_ms: length } : { iterations: length }),
          ...Object.fromEntries(options.map((key) => [key, true])),
        }, 'The capture has begun.');
      }}
    >
      <div class="tools">
        {job_ids.length > 1 && <Select label="Job" value={job} onChange={setChosen} options={job_ids.map((value) => ({ value, label: value }))} />}
        <label class="select"><span>Ranks</span><input type="text" class="short" value={ranks} placeholder="all" onInput={(event) => setRanks((event.target as HTMLInputElement).value)} /></label>
        <Choice name="capture-mode" label="For" value={mode} onChange={setMode} options={[{ value: 'duration', label: 'a time' }, { value: 'iterations', label: 'iterations' }]} />
        <label class="select">
          <span>{mode === 'duration' ? 'Milliseconds' : 'Iterations'}</span>
          <input type="text" inputMode="numeric" class="short" value={mode === 'duration' ? milliseconds : iterations} onInput={(event) => (mode === 'duration' ? setMilliseconds : setIterations)((event.target as HTMLInputElement).value)} />
        </label>
        {OPTIONS.map(({ key, label }) => (
          <label key={key} class="check">
            <input type="checkbox" checked={options.includes(key)} onChange={() => setOptions(options.includes(key) ? options.filter((each) => each !== key) : [...options, key])} /> {label}
          </label>
        ))}
      </div>
      <div class="tools">
        <button type="submit" class="tool primary">Capture</button>
        <button type="button" class="tool" title="Collects stacks and flight records of all ranks; each process is stopped for a moment" onClick={() => void run('hang', { job_id: job }, 'Evidence is being collected.')}>Why is it stuck?</button>
        <OpenByItself store={store} />
      </div>
      <p role="status" class="muted">{said}</p>
      {problem !== null && <p class="note warning" role="alert">{problem}</p>}
    </form>
  );
}

function CapturesView({ data }: Props) {
  const { store, view, job } = useJob(data);
  const [problem, setProblem] = useState<string | null>(null);
  const { captures, hangs } = store.captures;
  const cancel = (id: string) => store.act(`captures/${id}/cancel`, {}).then(() => setProblem(null), (error: Error) => setProblem(error.message));
  return (
    <>
      {store.data.may_capture
        ? <Form store={store} job_ids={(view?.jobs ?? []).map((each) => each.job_id)} job_id={job?.job_id ?? ''} />
        : <Note>This server may not capture or inspect processes; it only watches.</Note>}
      {problem !== null && <p class="note warning" role="alert">{problem}</p>}
      <DataTable<Capture>
        id="captures"
        caption="Captures, newest first"
        rows={captures}
        rowKey={(row) => row.id}
        empty="No capture was made since this server started."
        columns={[
          { key: 'asked_unix_ns', title: 'Asked', value: (row) => row.asked_unix_ns, text: (row) => clock(row.asked_unix_ns) },
          { key: 'job_id', title: 'Job', value: (row) => row.job_id },
          { key: 'what', title: 'What', value: captureWhat },
          { key: 'state', title: 'State', value: (row) => row.state, render: (row) => <ActionState action={row} /> },
          { key: 'kept_count', title: 'Traces', numeric: true, value: (row) => row.kept_count, text: (row) => (row.target_count === null ? ABSENT : `${row.kept_count ?? 0} of ${row.target_count}`) },
          { key: 'sentence', title: 'What it found', value: (row) => row.sentence, width: 60 },
          { key: 'folder', title: 'Folder', value: (row) => row.folder, width: 40 },
          {
            key: 'cancel', title: 'End', value: (row) => (row.finished_unix_ns === null ? 'under way' : duration(row.finished_unix_ns - row.asked_unix_ns)),
            render: (row) => (row.finished_unix_ns === null ? <button type="button" class="tool" onClick={() => void cancel(row.id)}>Cancel</button> : `after ${duration(row.finished_unix_ns - row.asked_unix_ns)}`),
          },
        ]}
      />
      <DataTable<HangLook>
        id="hangs"
        caption="Why is it stuck?"
        rows={hangs}
        rowKey={(row) => row.id}
        empty="No job was examined since this server started."
        columns={[
          { key: 'asked_unix_ns', title: 'Asked', value: (row) => row.asked_unix_ns, text: (row) => clock(row.asked_unix_ns) },
          { key: 'job_id', title: 'Job', value: (row) => row.job_id },
          { key: 'state', title: 'State', value: (row) => row.state, render: (row) => <ActionState action={row} /> },
          { key: 'kind', title: 'Verdict', value: (row) => row.kind },
          { key: 'confidence', title: 'Sure', numeric: true, value: (row) => row.confidence, text: (row) => percent(row.confidence) },
          { key: 'sentence', title: 'What it found', value: (row) => row.sentence, width: 70 },
          { key: 'folder', title: 'Folder', value: (row) => row.folder, width: 40 },
        ]}
      />
      <p class="muted after">A capture traces processes with PyTorch’s own profiler, if they were started with KINETO_USE_DAEMON=1; the traces stay in the folder. To find out why a job is stuck, each process is stopped for a moment while its stacks are copied.</p>
    </>
  );
}

export const capturesView: View<LiveStore> = {
  id: 'captures',
  title: 'Captures',
  shows: 'Look closer: trace ranks now, or ask why the job is stuck; the report opens in this page.',
  group: 'Look closer',
  component: CapturesView,
};
