import { ColumnBlock } from './columns';
import type { CollectiveInstance, CollectiveMember, CollectiveTable } from './types';

const NO_RANK = 0xffffffff;
const NO_WAIT = 0;
const UNTIL_OWN_END = 2;

function known(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

/** First index of each piece in a column that holds the pieces one after the other. */
function starts(sizes: Uint32Array): Uint32Array {
  const result = new Uint32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; ++i) result[i + 1] = result[i]! + sizes[i]!;
  return result;
}

interface Header {
  count: number;
  arrival_unit_ns: number;
  duration_unit_ns: number;
  names: string[];
  groups: string[];
}

class Collectives implements CollectiveTable {
  readonly count: number;
  private readonly header: Header;
  private readonly columns;
  private readonly member_start: Uint32Array;
  private readonly set_start: Uint32Array;
  private order: Uint32Array | null = null;

  constructor(bytes: Uint8Array) {
    const block = new ColumnBlock<Header>(bytes);
    this.header = block.header;
    this.count = block.header.count;
    this.columns = {
      name: block.whole('name'), group: block.whole('group'), set: block.whole('set'),
      last_rank: block.whole('last_rank'), sequence: block.floats('sequence'), bytes: block.floats('bytes'),
      first_arrival: block.floats('first_arrival'), last_arrival: block.floats('last_arrival'),
      transfer: block.floats('transfer'), busbw: block.floats('busbw'), total_wait: block.floats('total_wait'),
      step: block.floats('step'), wait_rule: block.bytes('wait_rule').slice(), // A view would hold the whole block.
      set_rank: block.whole('set_rank'), member_arrival: block.whole('member_arrival'),
      member_duration: block.whole('member_duration'),
    };
    const set_size = block.whole('set_size');
    this.set_start = starts(set_size);
    this.member_start = starts(this.columns.set.map((set) => set_size[set]!));
  }

  instance(index: number): CollectiveInstance {
    const c = this.columns;
    const last_rank = c.last_rank[index]!;
    return {
      index,
      name: this.header.names[c.name[index]!]!,
      group: this.header.groups[c.group[index]!]!,
      sequence: c.sequence[index]!,
      bytes: known(c.bytes[index]!),
      first_arrival_ns: c.first_arrival[index]!,
      last_arrival_ns: c.last_arrival[index]!,
      transfer_ns: known(c.transfer[index]!),
      busbw_bytes_per_s: known(c.busbw[index]!),
      total_wait_ns: c.total_wait[index]!,
      last_rank_index: last_rank === NO_RANK ? null : last_rank,
      step_number: known(c.step[index]!),
    };
  }

  members(index: number): CollectiveMember[] {
    const c = this.columns;
    const { arrival_unit_ns, duration_unit_ns } = this.header;
    const rule = c.wait_rule[index]!;
    const set = c.set[index]!;
    const members: CollectiveMember[] = [];
    let at = this.member_start[index]!;
    for (let rank = this.set_start[set]!; rank < this.set_start[set + 1]!; ++rank, ++at) {
      const arrival_ns = c.first_arrival[index]! + c.member_arrival[at]! * arrival_unit_ns;
      const duration_ns = c.member_duration[at]! * duration_unit_ns;
      const until_last_ns = c.last_arrival[index]! - arrival_ns;
      const wait_ns = rule === UNTIL_OWN_END ? Math.min(until_last_ns, duration_ns) : until_last_ns;
      members.push({
        rank_index: c.set_rank[rank]!,
        arrival_ns,
        end_ns: arrival_ns + duration_ns,
        wait_ns: rule === NO_WAIT ? null : Math.max(wait_ns, 0),
      });
    }
    return members;
  }

  get by_wait(): Uint32Array {
    if (!this.order) {
      const waits = this.columns.total_wait;
      this.order = Uint32Array.from({ length: this.count }, (_, i) => i).sort((a, b) => waits[b]! - waits[a]! || a - b);
    }
    return this.order;
  }
}

export function readCollectives(bytes: Uint8Array): CollectiveTable {
  return new Collectives(bytes);
}
