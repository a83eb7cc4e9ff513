import { href } from '../app/route';
import { ABSENT, count, duration, NOT_MEASURED, percent, plural } from '../numbers';
import { Answer } from '../parts/answer';
import { DataTable } from '../parts/data_table';
import type { View } from '../view';
import { SeverityWord, StateWord, useCalmOrder, useJob, type Props } from './shared';
import type { LiveStore } from './store';
import type { Gpu, LiveNode, LiveRank } from './types';
import { nodeTrouble, worseRank } from './verdict';

interface Place {
  node: LiveNode;
  ranks: LiveRank[];
}

function GpuCell({ gpu }: { gpu: Gpu }) {
  const ratio = gpu.utilization_ratio;
  const parts = [`GPU ${gpu.gpu}`, `busy ${ratio === null ? NOT_MEASURED : percent(ratio)}`, ...(gpu.temperature_celsius === null ? [] : [`${Math.round(gpu.temperature_celsius)} °C`]), ...(gpu.power_watts === null ? [] : [`${Math.round(gpu.power_watts)} W`])];
  return (
    <li title={parts.join(', ')} class={(gpu.xid_event_count ?? 0) > 0 ? 'ill' : undefined}>
      <span class="gpu-name">{gpu.gpu}</span>
      <svg width="64" height="8" aria-hidden="true">
        <rect class={ratio === null ? 'fill-absent' : 'fill-panel'} width="64" height="8" />
        {ratio !== null && <rect class="fill-compute" width={64 * Math.min(1, ratio)} height="8" />}
      </svg>
      <span class="number">{percent(ratio)}{gpu.temperature_celsius !== null && ` · ${Math.round(gpu.temperature_celsius)} °C`}{(gpu.xid_event_count ?? 0) > 0 && ` · Xid ${count(gpu.xid_event_count)}`}</span>
    </li>
  );
}

function clockWords(node: LiveNode): string {
  if (node.clock_offset_ns === null) return ABSENT;
  if (node.clock_offset_ns === 0) return 'as here';
  return `${duration(Math.abs(node.clock_offset_ns))} ${node.clock_offset_ns >= 0 ? 'ahead' : 'behind'}`;
}

function Card({ place: { node, ranks }, job }: { place: Place; job: string }) {
  const worst = [...ranks].sort(worseRank)[0];
  const failing = node.collectors.filter((each) => each.succeeded === false);
  const working = node.collectors.filter((each) => each.is_present !== false && each.succeeded !== false);
  const alarm = node.alarms[0]?.severity;
  return (
    <li class={`finding ${node.problem !== null ? 'critical' : alarm === 'critical' ? 'critical' : alarm === 'warning' || failing.length > 0 ? 'warning' : ''}`}>
      <div class="finding-head">
        <h3>{node.host}</h3>
        <span>{node.problem !== null ? <span class="severity-word error">does not answer</span> : 'answers'}</span>
      </div>
      {node.problem !== null && <p>{node.silent_ns === null ? 'It has never answered' : `No answer for ${duration(node.silent_ns)}`}: {node.problem}</p>}
      {node.alarms.map((each) => <p key={`${each.kind} ${each.text}`}><SeverityWord severity={each.severity} />: {each.text}</p>)}
      <p class="muted">
        {plural(ranks.length, 'rank')}{worst && <>, the worst is <a href={href('rank', { rank: worst.rank, job })}>rank {worst.rank}</a> (<StateWord state={worst.state} />)</>} · clock {clockWords(node)} · {node.version ? `lockstepd ${node.version}` : 'version not known'}
      </p>
      {failing.length > 0 && <p>Cannot read: {failing.map((each) => each.name).join(', ')}</p>}
      {node.gpus.length > 0 ? <ul class="gpus" aria-label={`GPUs of ${node.host}`}>{node.gpus.map((gpu) => <GpuCell key={gpu.gpu} gpu={gpu} />)}</ul> : <p class="muted">No GPU is measured.</p>}
      {working.length > 0 && <p class="muted small">Measures: {working.map((each) => each.name).join(', ')}</p>}
    </li>
  );
}

function Fleet({ data }: Props) {
  const { view, job } = useJob(data);
  const places = (view?.nodes ?? []).map((node): Place => ({ node, ranks: (view?.jobs ?? []).flatMap((each) => each.ranks).filter((rank) => rank.node === node.host) }));
  const trouble = (place: Place) => nodeTrouble(place.node, place.ranks);
  const { rows, calm } = useCalmOrder(places, (place) => `${place.node.host} ${place.node.place}`, (place) => String(trouble(place)), (a, b) => trouble(b) - trouble(a) || a.node.host.localeCompare(b.node.host, 'en', { numeric: true }));
  if (!view) return <p class="muted" role="status">Waiting for the first look at the nodes …</p>;
  const silent = view.nodes.filter((node) => node.problem !== null);
  const gpus = view.nodes.flatMap((node) => node.gpus);
  const idle = gpus.filter((gpu) => gpu.utilization_ratio !== null && gpu.utilization_ratio < 0.05).length;
  return (
    <>
      <Answer
        kind={silent.length > 0 ? 'critical' : view.nodes.some((node) => node.alarms.length > 0) ? 'warning' : 'info'}
        sentence={silent.length > 0 ? `${silent.length === 1 ? `${silent[0]!.host} does` : `${plural(silent.length, 'node')} do`} not answer.` : `${view.nodes.length === 1 ? 'The node answers' : `All ${plural(view.nodes.length, 'node')} answer`}.`}
      >
        {gpus.length === 0 ? 'No GPU is measured on any of them.' : `${plural(gpus.length, 'GPU')}, ${idle === 0 ? 'none' : count(idle)} of them idle.`}
      </Answer>
      <ul class="cards" {...calm}>{rows.map((place) => <Card key={`${place.node.host} ${place.node.place}`} place={place} job={job?.job_id ?? ''} />)}</ul>
      <DataTable<Place>
        id="nodes"
        caption="Nodes"
        rows={rows}
        rowKey={(place) => `${place.node.host} ${place.node.place}`}
        search={['host', 'problem']}
        columns={[
          { key: 'host', title: 'Host', value: ({ node }) => node.host },
          { key: 'problem', title: 'Answers', value: ({ node }) => node.problem ?? 'yes', width: 40 },
          { key: 'ranks', title: 'Ranks', numeric: true, value: ({ ranks }) => ranks.length },
          { key: 'worst', title: 'Worst', value: ({ ranks }) => [...ranks].sort(worseRank)[0]?.state ?? null },
          { key: 'gpus', title: 'GPUs', numeric: true, value: ({ node }) => node.gpus.length },
          { key: 'clock_offset_ns', title: 'Clock', numeric: true, value: ({ node }) => node.clock_offset_ns, text: ({ node }) => clockWords(node) },
          { key: 'version', title: 'Version', value: ({ node }) => node.version },
        ]}
      />
    </>
  );
}

export const fleetView: View<LiveStore> = {
  id: 'fleet',
  title: 'Nodes',
  shows: 'Which machine is ill? Nodes that do not answer first, then by alarms, then by their ranks.',
  group: 'Machines',
  component: Fleet,
};
