/** What the page of `lockstep nccl-log` is made from: `data` of `lockstep.nccl_log/1` (docs/json.md). Pure: arranged here, drawn elsewhere. */

type Maybe = number | null;

export interface NcclFinding {
  severity: string;
  kind: string;
  ranks: number[];
  peer: string | null;
  first: boolean;
  text: string;
  remedy: string | null;
  file: string | null;
  line: Maybe;
}

export interface NcclMember {
  rank: Maybe;
  host: string;
  pid: number;
  device: Maybe;
  bus_id: string | null;
  started: boolean;
  completed: boolean;
  destroyed: boolean;
  aborted: boolean;
  init_ns: Maybe;
  channels: Record<string, number>;
  collective_count: number;
  last_collective: Maybe;
}

export interface NcclRing {
  channels: number[];
  order: number[];
}

export interface NcclTree {
  channels: number[];
  roots: number[];
  edges: [number, number][];
}

export interface NcclCommunicator {
  id: string | null;
  rank_count: number;
  members: NcclMember[];
  transports: { name: string; connection_count: number }[];
  rings: NcclRing[];
  trees: NcclTree[];
}

export interface NcclProcess {
  host: string;
  pid: number;
  rank: Maybe;
  version: string | null;
  driver_version: string | null;
  network: string | null;
  bootstrap_interface: string | null;
  bootstrap_address: string | null;
  gpu_direct: boolean | null;
  nvls: boolean | null;
  settings: { name: string; value: string; by_plugin: boolean }[];
  ended: boolean;
  line_count: number;
}

export interface TopologyNode {
  kind: string;
  name: string;
  facts: string | null;
  parent: Maybe;
}

export interface NcclData {
  findings: NcclFinding[];
  lines: { nccl: number; unknown: number; other: number; cut: number };
  communicators: NcclCommunicator[];
  processes: NcclProcess[];
  tunings: { choice: string; line_count: number }[];
  topologies: { file: string; nodes: TopologyNode[] }[];
  graph_files: { file: string; graphs: { id: number; channel_count: number; type_intra: string | null; type_inter: string | null; speed_intra: string | null; speed_inter: string | null }[] }[];
  ras: { file: string; version: string | null; communicators: { hash: string; size: number; missing_ranks: number[]; dead_ranks: number[]; ranks: { rank: number; host: string | null; pid: number; status: string | null }[] }[] }[];
}

export function hostsOf(communicator: NcclCommunicator): Map<number, string> {
  return new Map(communicator.members.filter((member) => member.rank !== null).map((member) => [member.rank!, member.host]));
}

/** "0-3, 7" of ascending numbers. */
export function channelText(channels: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < channels.length; ++at) {
    const first = channels[at]!;
    while (channels[at + 1] === channels[at]! + 1) ++at;
    parts.push(first === channels[at] ? String(first) : `${first}-${channels[at]}`);
  }
  return parts.join(', ');
}

/** From a rank to the next one of a ring. */
export interface RingEdge {
  channels: string;
  place: number;
  rank: number;
  host: string | null;
  next_rank: number;
  next_host: string | null;
  between_hosts: boolean;
}

export function ringEdges(ring: NcclRing, hosts: ReadonlyMap<number, string>): RingEdge[] {
  return ring.order.map((rank, place) => {
    const next_rank = ring.order[(place + 1) % ring.order.length]!;
    const [host, next_host] = [hosts.get(rank) ?? null, hosts.get(next_rank) ?? null];
    return { channels: channelText(ring.channels), place, rank, host, next_rank, next_host, between_hosts: host !== next_host };
  });
}

/** A rank of a tree: its depth, and its place from left to right, in leaves. */
export interface TreeNode {
  rank: number;
  parent: number | null;
  depth: number;
  x: number;
}

/** Ranks of a tree where they are drawn; a rank that two claim stands below the first. `width` in leaves, at least 1. */
export function layoutTree(tree: NcclTree): { nodes: TreeNode[]; width: number; depth: number } {
  const below = new Map<number, number[]>();
  for (const [rank, down] of tree.edges) below.set(rank, [...(below.get(rank) ?? []), down]);
  const nodes = new Map<number, TreeNode>();
  let leaves = 0;
  let depth = 0;
  for (const root of tree.roots) {
    // By a stack of its own: a chain of a thousand ranks is a tree, too.
    const stack: { rank: number; at: number; first: number | null }[] = [];
    const enter = (rank: number, parent: number | null) => {
      nodes.set(rank, { rank, parent, depth: stack.length, x: 0 });
      depth = Math.max(depth, stack.length);
      stack.push({ rank, at: 0, first: null });
    };
    if (nodes.has(root)) continue;
    enter(root, null);
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const child = below.get(top.rank)?.[top.at++];
      if (child !== undefined) {
        if (!nodes.has(child)) enter(child, top.rank);
        continue;
      }
      const node = nodes.get(top.rank)!;
      const children = (below.get(top.rank) ?? []).map((rank) => nodes.get(rank)!).filter((each) => each.parent === top.rank);
      node.x = children.length === 0 ? leaves++ : (children[0]!.x + children[children.length - 1]!.x) / 2;
      stack.pop();
    }
  }
  return { nodes: [...nodes.values()], width: Math.max(1, leaves), depth };
}

/** A line of a machine's tree: how deep it is, and the line of what is around it (-1: the whole machine). */
export interface TopologyLine extends TopologyNode {
  level: number;
  parent_line: number;
}

/** Elements come as they stand in the file: each behind what is around it. */
export function topologyLines(nodes: readonly TopologyNode[]): TopologyLine[] {
  const lines: TopologyLine[] = [];
  nodes.forEach((node) => {
    const around = node.parent === null ? undefined : lines[node.parent];
    lines.push({ ...node, level: around ? around.level + 1 : 0, parent_line: around ? node.parent! : -1 });
  });
  return lines;
}

/** How often each setting has each value. */
export function settingRows(data: NcclData): { name: string; value: string; by_plugin: boolean; process_count: number }[] {
  const found = new Map<string, { name: string; value: string; by_plugin: boolean; process_count: number }>();
  for (const process of data.processes) {
    for (const setting of process.settings) {
      const key = JSON.stringify([setting.name, setting.value, setting.by_plugin]);
      const row = found.get(key) ?? { ...setting, process_count: 0 };
      row.process_count += 1;
      found.set(key, row);
    }
  }
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name) || b.process_count - a.process_count);
}
