import { useParam } from '../app/route';
import { Ring } from '../charts/ring';
import { cutText } from '../charts/scales';
import {
  channelText, hostsOf, layoutTree, ringEdges, settingRows, topologyLines,
  type NcclCommunicator, type NcclData, type NcclFinding, type NcclMember, type NcclProcess, type NcclTree, type RingEdge, type TopologyLine,
} from '../data/nccl';
import type { PageSource } from '../data/types';
import { capital, count, duration, plural, rankList } from '../numbers';
import { Answer } from '../parts/answer';
import { Legend, Select } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import { Figure } from '../parts/figure';
import { useWidth } from '../parts/measure';
import type { View, ViewProps } from '../view';
import { answerQualityView, answerTextView } from './answer_views';

type Props = ViewProps<NcclData>;

const GRAVITY: Record<string, number> = { error: 2, warning: 1 };
const DRAWN_RINGS = 12;
const DRAWN_RANKS = 4096;
const DRAWN_TREE_RANKS = 512;
const LABELLED_TREE_WIDTH = 40;
const DRAWN_LINES = 1000;

function Findings({ data }: Props) {
  const errors = data.findings.filter((finding) => finding.severity === 'error');
  const first = data.findings.find((finding) => finding.first) ?? data.findings[0];
  return (
    <>
      <Answer
        kind={errors.length > 0 ? 'critical' : data.findings.length > 0 ? 'warning' : 'info'}
        sentence={first ? capital(first.text) : 'NCCL tells of nothing that is wrong.'}
      >
        {first?.remedy ? `What to do: ${first.remedy}.` : undefined}
      </Answer>
      {data.findings.length > 0 && (
        <DataTable<NcclFinding>
          id="findings"
          caption="Findings, gravest first"
          rows={data.findings}
          rowKey={(row) => `${row.kind} ${row.file} ${row.line} ${row.text}`}
          sort="-severity"
          search={['text', 'kind', 'ranks', 'file']}
          columns={[
            { key: 'severity', title: 'Severity', value: (row) => GRAVITY[row.severity] ?? 0, text: (row) => row.severity, render: (row) => <span class={`severity-word ${row.severity}`}>{row.severity}</span> },
            { key: 'text', title: 'What', value: (row) => row.text + (row.first ? ' It was the first error.' : ''), width: 80 },
            { key: 'ranks', title: 'Ranks', value: (row) => (row.ranks.length > 0 ? rankList(row.ranks) : null) },
            { key: 'kind', title: 'Kind', value: (row) => row.kind },
            { key: 'remedy', title: 'What to do', value: (row) => row.remedy, width: 60 },
            { key: 'file', title: 'Where', value: (row) => (row.file === null ? null : row.file + (row.line === null ? '' : `:${row.line}`)), width: 30 },
          ]}
        />
      )}
    </>
  );
}

const nameOf = (communicator: NcclCommunicator) => (communicator.id === null ? `of ${plural(communicator.rank_count, 'rank')}` : `${communicator.id}, ${plural(communicator.rank_count, 'rank')}`);

/** One of the communicators, kept in the address. */
function useCommunicator(all: readonly NcclCommunicator[]) {
  const [text, choose] = useParam('communicator', '0');
  const at = Math.max(0, Math.min(all.length - 1, Number(text) || 0));
  const picker = all.length > 1 && <Select label="Communicator" value={String(at)} onChange={choose} options={all.map((each, i) => ({ value: String(i), label: nameOf(each) }))} />;
  return { communicator: all[at]!, picker };
}

function Rings({ data }: Props) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const { communicator, picker } = useCommunicator(data.communicators.filter((each) => each.rings.length > 0));
  const hosts = hostsOf(communicator);
  const drawn = communicator.rings.slice(0, Math.max(1, Math.min(DRAWN_RINGS, Math.floor(DRAWN_RANKS / communicator.rank_count))));
  const edges = communicator.rings.flatMap((ring) => ringEdges(ring, hosts));
  const between = ringEdges(communicator.rings[0]!, hosts).filter((edge) => edge.between_hosts).length;
  const summary = `${plural(communicator.rings.length, 'order')} of ${plural(communicator.rank_count, 'rank')} over ${plural(new Set(hosts.values()).size, 'host')}. The first one goes from host to host ${plural(between, 'time')}.` +
    (drawn.length < communicator.rings.length ? ` The first ${drawn.length} are drawn.` : '');
  return (
    <Figure<RingEdge>
      id="rings"
      title={`Rings of the communicator of ${plural(communicator.rank_count, 'rank')}`}
      summary={summary}
      controls={picker}
      rows={edges}
      rowKey={(row) => `${row.channels} ${row.place}`}
      search={['rank', 'host']}
      columns={[
        { key: 'channels', title: 'Channels', value: (row) => row.channels },
        { key: 'place', title: 'Place', numeric: true, value: (row) => row.place },
        { key: 'rank', title: 'From rank', numeric: true, value: (row) => row.rank },
        { key: 'host', title: 'On host', value: (row) => row.host },
        { key: 'next_rank', title: 'To rank', numeric: true, value: (row) => row.next_rank },
        { key: 'next_host', title: 'On host', value: (row) => row.next_host },
        { key: 'between_hosts', title: 'Between hosts', value: (row) => (row.between_hosts ? 'yes' : 'no') },
      ]}
    >
      <Legend items={[{ mark: 'series-1', label: 'within a host' }, { mark: 'series-2', label: 'from host to host (dashed)' }, { mark: 'idle', label: 'hosts' }]} />
      <div ref={ref} class="rings">{drawn.map((ring) => <Ring key={ring.channels.join()} ring={ring} hosts={hosts} width={width} />)}</div>
    </Figure>
  );
}

function TreePicture({ tree, hosts, label }: { tree: NcclTree; hosts: ReadonlyMap<number, string>; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const { nodes, width: leaves, depth } = layoutTree(tree);
  const labels = leaves <= LABELLED_TREE_WIDTH;
  const row = labels ? 46 : Math.max(6, Math.min(24, 480 / (depth + 1)));
  const x = (node: { x: number }) => 16 + ((node.x + 0.5) / leaves) * (width - 32);
  const y = (node: { depth: number }) => 16 + node.depth * row;
  const by_rank = new Map(nodes.map((node) => [node.rank, node]));
  const radius = labels ? Math.min(11, (width - 32) / leaves / 2.2) : 2.5;
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={32 + depth * row} role="img" aria-label={label}>
        {nodes.map((node) => {
          const above = node.parent === null ? undefined : by_rank.get(node.parent);
          if (!above) return null;
          const between = hosts.get(node.rank) !== hosts.get(above.rank);
          return (
            <g key={node.rank} class={between ? 'ring-edge between' : 'ring-edge'}>
              <path class="ring-line" d={`M${x(above).toFixed(1)} ${(y(above) + radius).toFixed(1)}L${x(node).toFixed(1)} ${(y(node) - radius).toFixed(1)}`} />
            </g>
          );
        })}
        {nodes.map((node) => (
          <g key={node.rank}>
            <circle class="ring-rank" cx={x(node)} cy={y(node)} r={radius} />
            {labels && radius > 8 && <text x={x(node)} y={y(node) + 4} text-anchor="middle">{node.rank}</text>}
            <title>{`rank ${node.rank}${hosts.has(node.rank) ? ` on ${hosts.get(node.rank)}` : ''}`}</title>
          </g>
        ))}
      </svg>
    </div>
  );
}

function Trees({ data }: Props) {
  const { communicator, picker } = useCommunicator(data.communicators.filter((each) => each.trees.length > 0));
  const hosts = hostsOf(communicator);
  const [text, choose] = useParam('tree', '0');
  const at = Math.max(0, Math.min(communicator.trees.length - 1, Number(text) || 0));
  const tree = communicator.trees[at]!;
  const { nodes, depth } = layoutTree(tree);
  const summary = `Channels ${channelText(tree.channels)}: ${plural(nodes.length, 'rank')} in ${plural(depth + 1, 'level')}, below ${rankList(tree.roots)}.`;
  return (
    <Figure
      id="tree"
      title={`Trees of the communicator of ${plural(communicator.rank_count, 'rank')}`}
      summary={summary}
      controls={<>{picker}{communicator.trees.length > 1 && <Select label="Channels" value={String(at)} onChange={choose} options={communicator.trees.map((each, i) => ({ value: String(i), label: channelText(each.channels) }))} />}</>}
      rows={nodes}
      rowKey={(row) => String(row.rank)}
      sort="depth"
      search={['rank', 'host']}
      columns={[
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
        { key: 'host', title: 'Host', value: (row) => hosts.get(row.rank) ?? null },
        { key: 'parent', title: 'Below rank', numeric: true, value: (row) => row.parent },
        { key: 'depth', title: 'Level', numeric: true, value: (row) => row.depth },
      ]}
    >
      <Legend items={[{ mark: 'series-1', label: 'within a host' }, { mark: 'series-2', label: 'from host to host (dashed)' }]} />
      {nodes.length <= DRAWN_TREE_RANKS ? <TreePicture tree={tree} hosts={hosts} label={summary} /> : <p class="muted">{count(nodes.length)} ranks are too many to be drawn; the table has them.</p>}
    </Figure>
  );
}

const ROW = 24;
const INDENT = 22;

function MachinePicture({ lines, label }: { lines: readonly TopologyLine[]; label: string }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const x = (line: TopologyLine) => line.level * INDENT + 10;
  return (
    <div ref={ref} class="chart">
      <svg class="plot" width={width} height={lines.length * ROW + 8} role="img" aria-label={label}>
        {lines.map((line, at) => {
          const name = cutText(line.name, Math.max(40, width - x(line) - 10));
          const room = width - x(line) - name.length * 7.4 - 24;
          return (
            <g key={at}>
              {line.parent_line >= 0 && <path class="tree-branch" d={`M${x(line) - INDENT + 6} ${line.parent_line * ROW + 25}V${at * ROW + 15}H${x(line) - 3}`} />}
              <text x={x(line)} y={at * ROW + 19}>
                {name}
                {line.facts && room > 40 && <tspan class="muted" dx="8">{cutText(line.facts, room)}</tspan>}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Machines({ data }: Props) {
  const [text, choose] = useParam('machine', '0');
  const at = Math.max(0, Math.min(data.topologies.length - 1, Number(text) || 0));
  const topology = data.topologies[at]!;
  const lines = topologyLines(topology.nodes);
  const kinds = [...new Set(lines.map((line) => line.kind))].map((kind) => plural(lines.filter((line) => line.kind === kind).length, kind)).join(', ');
  const summary = `Buses and devices of ${topology.file}, as NCCL saw them: ${kinds}.` + (lines.length > DRAWN_LINES ? ` The first ${count(DRAWN_LINES)} are drawn.` : '');
  return (
    <Figure<TopologyLine>
      id="machine"
      title="Buses and devices"
      summary={summary}
      controls={data.topologies.length > 1 && <Select label="File" value={String(at)} onChange={choose} options={data.topologies.map((each, i) => ({ value: String(i), label: each.file }))} />}
      rows={lines}
      rowKey={(row) => `${lines.indexOf(row)}`}
      search={['name', 'kind', 'facts']}
      columns={[
        { key: 'kind', title: 'Kind', value: (row) => row.kind },
        { key: 'name', title: 'Name', value: (row) => row.name, width: 40 },
        { key: 'parent', title: 'Within', value: (row) => (row.parent_line < 0 ? null : lines[row.parent_line]!.name), width: 30 },
        { key: 'facts', title: 'What is told of it', value: (row) => row.facts, width: 60 },
      ]}
    >
      <MachinePicture lines={lines.slice(0, DRAWN_LINES)} label={summary} />
    </Figure>
  );
}

function Communicators({ data }: Props) {
  const { communicator, picker } = useCommunicator(data.communicators);
  const most = (row: NcclCommunicator) => row.members.reduce<number | null>((longest, member) => (member.init_ns === null ? longest : Math.max(longest ?? 0, member.init_ns)), null);
  return (
    <>
      <DataTable<NcclCommunicator>
        id="communicators"
        caption="Communicators"
        rows={data.communicators}
        rowKey={(row) => `${data.communicators.indexOf(row)}`}
        sort="-rank_count"
        search={['id', 'transports']}
        columns={[
          { key: 'rank_count', title: 'Ranks', numeric: true, value: (row) => row.rank_count },
          { key: 'seen', title: 'Seen', help: 'Ranks whose lines are there', numeric: true, value: (row) => row.members.length },
          { key: 'completed', title: 'Complete', help: 'Ranks that said that it is complete', numeric: true, value: (row) => row.members.filter((member) => member.completed).length },
          { key: 'hosts', title: 'Hosts', numeric: true, value: (row) => new Set(row.members.map((member) => member.host)).size },
          { key: 'init_ns', title: 'Creation', help: 'Longest of its ranks', numeric: true, value: most, text: (row) => duration(most(row)) },
          { key: 'collectives', title: 'Collectives', help: 'Most that one of its ranks logged', numeric: true, value: (row) => Math.max(0, ...row.members.map((member) => member.collective_count)) },
          { key: 'transports', title: 'Connections', value: (row) => row.transports.map((each) => `${each.name} (${count(each.connection_count)})`).join('; ') || null, width: 50 },
          { key: 'id', title: 'Id', value: (row) => row.id },
        ]}
      />
      <p class="choices">{picker}</p>
      <DataTable<NcclMember>
        id="members"
        caption={`Ranks of the communicator ${nameOf(communicator)}`}
        rows={communicator.members}
        rowKey={(row) => `${row.host} ${row.pid} ${row.rank}`}
        sort="rank"
        search={['rank', 'host', 'bus_id']}
        columns={[
          { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
          { key: 'host', title: 'Host', value: (row) => row.host },
          { key: 'pid', title: 'Process', numeric: true, value: (row) => row.pid, text: (row) => String(row.pid) },
          { key: 'device', title: 'Device', numeric: true, value: (row) => row.device },
          { key: 'bus_id', title: 'Bus', value: (row) => row.bus_id },
          { key: 'state', title: 'State', value: (row) => (row.aborted ? 'aborted' : row.destroyed ? 'destroyed' : row.completed ? 'complete' : row.started ? 'begun, not complete' : 'not begun') },
          { key: 'init_ns', title: 'Creation', numeric: true, value: (row) => row.init_ns, text: (row) => duration(row.init_ns) },
          { key: 'channels', title: 'Channels', value: (row) => Object.entries(row.channels).map(([name, number]) => `${number} ${name}`).join(', ') || null },
          { key: 'collective_count', title: 'Collectives', numeric: true, value: (row) => row.collective_count },
          { key: 'last_collective', title: 'Last', help: 'Number of the last collective that it logged', numeric: true, value: (row) => row.last_collective },
        ]}
      />
    </>
  );
}

function yesNo(value: boolean | null): string | null {
  return value === null ? null : value ? 'yes' : 'no';
}

function Processes({ data }: Props) {
  const settings = settingRows(data);
  return (
    <>
      <DataTable<NcclProcess>
        id="processes"
        caption="Processes"
        rows={data.processes}
        rowKey={(row) => `${row.host} ${row.pid}`}
        sort="rank"
        search={['rank', 'host', 'version', 'network']}
        columns={[
          { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
          { key: 'host', title: 'Host', value: (row) => row.host },
          { key: 'pid', title: 'Process', numeric: true, value: (row) => row.pid, text: (row) => String(row.pid) },
          { key: 'version', title: 'NCCL', value: (row) => row.version },
          { key: 'driver_version', title: 'Driver’s CUDA', value: (row) => row.driver_version },
          { key: 'network', title: 'Network', value: (row) => row.network },
          { key: 'bootstrap', title: 'Meets by', value: (row) => [row.bootstrap_interface, row.bootstrap_address].filter(Boolean).join(' ') || null },
          { key: 'gpu_direct', title: 'GPUDirect', value: (row) => yesNo(row.gpu_direct) },
          { key: 'nvls', title: 'NVLS', value: (row) => yesNo(row.nvls) },
          { key: 'ended', title: 'Ended in order', value: (row) => yesNo(row.ended) },
          { key: 'line_count', title: 'Lines', numeric: true, value: (row) => row.line_count },
        ]}
      />
      {settings.length > 0 && (
        <DataTable
          id="settings"
          caption="Settings"
          rows={settings}
          rowKey={(row) => `${row.name} ${row.value} ${row.by_plugin}`}
          search={['name', 'value']}
          columns={[
            { key: 'name', title: 'Name', value: (row) => row.name },
            { key: 'value', title: 'Value', value: (row) => row.value, width: 60 },
            { key: 'process_count', title: 'Processes', numeric: true, value: (row) => row.process_count },
            { key: 'by_plugin', title: 'Set by a plugin', value: (row) => yesNo(row.by_plugin) },
          ]}
        />
      )}
      {data.tunings.length > 0 && (
        <DataTable
          id="tunings"
          caption="Algorithms and protocols chosen"
          rows={data.tunings}
          rowKey={(row) => row.choice}
          sort="-line_count"
          search={['choice']}
          columns={[
            { key: 'choice', title: 'Choice', value: (row) => row.choice, width: 80 },
            { key: 'line_count', title: 'Lines', numeric: true, value: (row) => row.line_count },
          ]}
        />
      )}
    </>
  );
}

function Ras({ data }: Props) {
  const rows = data.ras.flatMap((report) => report.communicators.map((communicator) => ({ ...communicator, file: report.file })));
  return (
    <DataTable
      id="ras"
      caption="Communicators, as RAS saw them while the job ran"
      rows={rows}
      rowKey={(row) => `${row.file} ${row.hash}`}
      search={['file', 'hash']}
      columns={[
        { key: 'hash', title: 'Communicator', value: (row) => row.hash },
        { key: 'size', title: 'Ranks', numeric: true, value: (row) => row.size },
        { key: 'missing', title: 'Do not answer', value: (row) => (row.missing_ranks.length > 0 ? rankList(row.missing_ranks) : null) },
        { key: 'dead', title: 'Dead', value: (row) => (row.dead_ranks.length > 0 ? rankList(row.dead_ranks) : null) },
        { key: 'status', title: 'Status of ranks', value: (row) => [...new Set(row.ranks.map((rank) => rank.status).filter(Boolean))].join(', ') || null },
        { key: 'file', title: 'File', value: (row) => row.file, width: 40 },
      ]}
    />
  );
}

/** Facts for the header. */
export function ncclFacts(source: PageSource): readonly string[] {
  const { processes, communicators, topologies, lines } = source.document.data as unknown as NcclData;
  const versions = [...new Set(processes.map((process) => process.version).filter(Boolean))];
  return [
    ...(processes.length > 0 ? [plural(processes.length, 'process', 'processes'), plural(new Set(processes.map((process) => process.host)).size, 'host')] : []),
    ...(versions.length > 0 ? [`NCCL ${versions.slice(0, 3).join(' or ')}`] : []),
    ...(communicators.length > 0 ? [plural(communicators.length, 'communicator')] : []),
    ...(topologies.length > 0 ? [plural(topologies.length, 'file of topology', 'files of topology')] : []),
    ...(lines.nccl > 0 ? [plural(lines.nccl, 'line')] : []),
  ];
}

const NO_LINES = 'No log of NCCL was given that tells of it: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET writes one.';

const findingsView: View<NcclData> = {
  id: 'findings',
  title: 'Findings',
  shows: 'What NCCL’s logs, topologies and RAS answers say is wrong, whom it concerns, and what to do.',
  group: 'Answer',
  component: Findings,
};

const ringsView: View<NcclData> = {
  id: 'rings',
  title: 'Rings',
  shows: 'In which order data goes around the ranks, and where it leaves a host.',
  group: 'Fabric',
  missing: (data) => (data.communicators.every((each) => each.rings.length === 0) ? NO_LINES : null),
  component: Rings,
};

const treesView: View<NcclData> = {
  id: 'trees',
  title: 'Trees',
  shows: 'Which rank is below which where NCCL reduces along trees.',
  group: 'Fabric',
  missing: (data) => (data.communicators.every((each) => each.trees.length === 0) ? NO_LINES : null),
  component: Trees,
};

const machinesView: View<NcclData> = {
  id: 'machines',
  title: 'Machines',
  shows: 'How processors, buses, GPUs and network cards of a machine hang together, as NCCL saw it.',
  group: 'Fabric',
  missing: (data) => (data.topologies.length === 0 ? 'No topology was given: NCCL_TOPO_DUMP_FILE writes one.' : null),
  component: Machines,
};

const communicatorsView: View<NcclData> = {
  id: 'communicators',
  title: 'Communicators',
  shows: 'Who belongs to which communicator, how long its creation took, and how far each rank came.',
  group: 'Job',
  missing: (data) => (data.communicators.length === 0 ? NO_LINES : null),
  component: Communicators,
};

const processesView: View<NcclData> = {
  id: 'processes',
  title: 'Processes and settings',
  shows: 'Versions, networks, interfaces and settings: what differs between ranks that should be alike?',
  group: 'Job',
  missing: (data) => (data.processes.length === 0 ? NO_LINES : null),
  component: Processes,
};

const rasView: View<NcclData> = {
  id: 'ras',
  title: 'RAS',
  shows: 'Which ranks answered while the job ran, by NCCL’s own service.',
  group: 'Job',
  missing: (data) => (data.ras.length === 0 ? 'No answer of RAS was given: ncclras -v or its port 28028 has it.' : null),
  component: Ras,
};

export const ncclViews = [findingsView, ringsView, treesView, machinesView, communicatorsView, processesView, rasView, answerQualityView, answerTextView] as readonly View<unknown>[];
