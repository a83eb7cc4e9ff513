import './styles/page.css';
import './styles/live.css';
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useParam, useRoute, ViewContext } from './app/route';
import { Shell } from './app/shell';
import { startTheme } from './app/theme';
import { ServedBlocks } from './data/bytes';
import type { PageDocument, PageSource } from './data/types';
import { clock, useJob } from './live/shared';
import { LiveStore, takeToken, useLive } from './live/store';
import type { LiveData } from './live/types';
import { liveViews } from './live/views';
import { worldWords } from './live/verdict';
import { count, plural } from './numbers';
import { Select } from './parts/controls';
import type { View } from './view';

/** Which job, of how much, since when: the line below the title. */
function LiveFacts({ store }: { store: LiveStore }) {
  const { view, job } = useJob(store);
  if (!view) return <>{plural(store.data.node_count, 'node')}</>;
  const answered = view.nodes.filter((node) => node.problem === null).length;
  return (
    <>
      {[
        ...(job ? [`job ${job.job_id}`, worldWords(job)] : ['no job']),
        answered === view.nodes.length ? plural(answered, 'node') : `${count(answered)} of ${plural(view.nodes.length, 'node')} answer`,
        `as of ${clock(view.asked_unix_ns)}`,
      ].join(' · ')}
    </>
  );
}

/** Its own context, so that the choice of a job belongs to whichever view is on. */
function JobPicker({ store }: { store: LiveStore }) {
  const route = useRoute();
  return (
    <ViewContext.Provider value={{ id: route.view || liveViews[0]!.id, stacked: false, ids: [] }}>
      <JobChoice store={store} />
    </ViewContext.Provider>
  );
}
function JobChoice({ store }: { store: LiveStore }) {
  const { view, job } = useJob(store);
  const [, choose] = useParam('job', '');
  if (!view || view.jobs.length < 2) return null;
  return <Select label="Job" value={job?.job_id ?? ''} onChange={choose} options={view.jobs.map((each) => ({ value: each.job_id, label: each.job_id }))} />;
}

function Pause({ store }: { store: LiveStore }) {
  const { paused, connection } = useLive(store);
  return (
    <>
      <span class={`live-mark ${paused ? 'paused' : connection}`} title={`Connection: ${connection}`}>{paused ? 'paused' : connection === 'open' ? 'live' : connection}</span>
      <button type="button" class="tool" aria-pressed={paused} onClick={() => store.pause(!paused)}>Pause</button>
    </>
  );
}

const WORDS = {
  connecting: 'Connecting to lockstep serve …',
  silent: 'lockstep serve has said nothing for a while; what is shown is old.',
  lost: 'The connection to lockstep serve is lost; the page tries again every few seconds. What is shown is old.',
  refused: 'lockstep serve refuses this page: it was started anew, or the address has lost its token. Open the address that it printed.',
  open: '',
};

function ConnectionBanner({ store }: { store: LiveStore }) {
  const { connection, view } = useLive(store);
  const [waited, setWaited] = useState(false);
  useEffect(() => {
    // At the beginning it connects in no time; a banner that only flashes up would be noise.
    const timer = setTimeout(() => setWaited(true), 1500);
    return () => clearTimeout(timer);
  }, []);
  const say = connection !== 'open' && (connection !== 'connecting' || waited);
  return (
    <div role="status">
      {say && <p class="banner">{WORDS[connection]}{view && connection !== 'connecting' && ` Last heard at ${clock(view.asked_unix_ns)}.`}</p>}
    </div>
  );
}

async function start() {
  startTheme();
  const app = document.getElementById('app')!;
  try {
    const token = takeToken();
    const main = await new ServedBlocks(document.querySelector('meta[name="lockstep-data"]')?.getAttribute('content') ?? 'data/').read('main');
    if (!main) throw new Error('The server does not say what it watches.');
    const page = JSON.parse(new TextDecoder().decode(main)) as PageDocument<LiveData>;
    if (page.schema !== 'lockstep.page/1' || page.kind !== 'live') throw new Error(`This page's data is of another version or kind: ${page.schema}, ${page.kind}`);
    const store = new LiveStore(page.data, token);
    const source = { document: { ...page, data: store } } as unknown as PageSource;
    render(
      <Shell
        source={source}
        views={liveViews as readonly View<unknown>[]}
        facts={<LiveFacts store={store} />}
        tools={<><JobPicker store={store} /><Pause store={store} /></>}
        banner={<ConnectionBanner store={store} />}
        keep={['job']}
      />,
      app,
    );
    document.documentElement.classList.add('running');
    store.start();
  } catch (error) {
    console.error(error);
    render(<p class="banner" role="alert">This page could not start: {error instanceof Error ? error.message : String(error)}</p>, app);
  }
}

void start();
