import { ABSENT, bytes, count, percent, plural } from '../numbers';
import { Answer } from '../parts/answer';
import { Note } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import type { View } from '../view';
import { HeatPanel } from './heat_panel';
import { useJob, type Props } from './shared';
import type { LiveStore } from './store';
import { deviceKey } from './timeline';
import type { Gpu, MigInstance } from './types';

interface Device {
  host: string;
  gpu: Gpu;
  /** null: the whole GPU. */
  instance: MigInstance | null;
  ranks: string;
}

const whole = (unit: string) => (value: number | null) => (value === null ? ABSENT : `${Math.round(value)} ${unit}`);
const SMS = { value: 'sm_active_ratio', label: 'busy multiprocessors', format: percent, from_zero: true, low_is_worse: true };
const QUANTITIES = [
  { value: 'utilization_ratio', label: 'busy share', format: percent, from_zero: true, low_is_worse: true },
  SMS,
  { value: 'memory_used_bytes', label: 'memory in use', format: bytes },
  { value: 'power_watts', label: 'power', format: whole('W'), from_zero: true, low_is_worse: true },
  { value: 'temperature_celsius', label: 'temperature', format: whole('°C') },
];

const keyOf = ({ host, gpu, instance }: Device) => deviceKey(host, gpu.gpu, instance && instance.gi);
const nameOf = ({ gpu, instance }: Device) => (instance ? `${gpu.gpu} / ${instance.gi}` : gpu.gpu);

/** What is wrong with the devices, or which is the least busy. */
function sentence(all: readonly Device[]): { kind: 'info' | 'warning' | 'critical'; text: string } {
  const devices = all.filter((each) => !each.instance);
  const first = (holds: (gpu: Gpu) => boolean) => devices.filter((each) => holds(each.gpu));
  const name = (found: readonly Device[]) => (found.length === 1 ? `GPU ${found[0]!.gpu.gpu} of ${found[0]!.host}` : plural(found.length, 'GPU'));
  const dead = first((gpu) => gpu.is_unresponsive === true);
  if (dead.length > 0) return { kind: 'critical', text: `The driver of ${name(dead)} does not answer.` };
  const ill = first((gpu) => (gpu.xid_event_count ?? 0) > 0 || (gpu.uncorrected_ecc_error_count ?? 0) > 0);
  if (ill.length > 0) return { kind: 'critical', text: `${name(ill)} had Xid or uncorrected ECC errors.` };
  const hot = first((gpu) => (gpu.thermal_throttle_ratio ?? 0) > 0.05);
  if (hot.length > 0) return { kind: 'warning', text: `${name(hot)} ${hot.length === 1 ? 'is' : 'are'} slowed down by heat.` };
  const busy = devices.filter((each) => each.gpu.utilization_ratio !== null).sort((a, b) => a.gpu.utilization_ratio! - b.gpu.utilization_ratio!);
  if (!busy[0]) {
    // Where MIG divides all of them, their instances do.
    const parts = all.filter((each) => (each.instance?.sm_active_ratio ?? null) !== null).sort((a, b) => a.instance!.sm_active_ratio! - b.instance!.sm_active_ratio!);
    if (!parts[0]) return { kind: 'info', text: 'No device says how busy it is.' };
    return { kind: 'info', text: `The least busy MIG instance is ${parts[0].instance!.gi} of ${name([parts[0]])} with ${percent(parts[0].instance!.sm_active_ratio)} of its multiprocessors’ time.` };
  }
  return { kind: 'info', text: `The least busy device is ${name([busy[0]])} with ${percent(busy[0].gpu.utilization_ratio)}.` };
}

function Devices({ data }: Props) {
  const { store, view, job } = useJob(data);
  if (!view) return <p class="muted" role="status">Waiting for the first look at the nodes …</p>;
  const devices = view.nodes.flatMap((node) => node.gpus.flatMap((gpu): Device[] => [
    { host: node.host, gpu, instance: null, ranks: (job?.ranks ?? []).filter((rank) => rank.node === node.host && rank.gpu?.gpu === gpu.gpu).map((rank) => rank.rank).join(', ') },
    ...gpu.mig_instances.map((instance) => ({ host: node.host, gpu, instance, ranks: '' })),
  ]));
  if (devices.length === 0) return <Note>No GPU is measured on these nodes: there is none, or their daemons cannot load the driver’s library.</Note>;
  /** Of a MIG instance what is its own alone. */
  const number = (key: string, title: string, of: (gpu: Gpu) => number | null, text: (value: number | null) => string, part: (instance: MigInstance) => number | null = () => null) => {
    const value = (row: Device) => (row.instance ? part(row.instance) : of(row.gpu));
    return { key, title, numeric: true, value, text: (row: Device) => text(value(row)) };
  };
  const all_divided = devices.every((each) => each.gpu.utilization_ratio === null) && devices.some((each) => each.instance);
  const said = sentence(devices);
  return (
    <>
      <Answer kind={said.kind} sentence={said.text} />
      <HeatPanel
        store={store}
        id="devices"
        what="device"
        quantities={all_divided ? [SMS, ...QUANTITIES.filter((each) => each !== SMS)] : QUANTITIES}
        rows={devices.map((each) => ({ key: keyOf(each), label: `${each.host} · ${nameOf(each)}`, host: each.host, columns: store.timeline.gpus.get(keyOf(each)) }))}
      />
      <DataTable<Device>
        id="gpus"
        caption="Devices now"
        rows={devices}
        rowKey={keyOf}
        sort="utilization_ratio"
        search={['host', 'model']}
        columns={[
          { key: 'host', title: 'Host', value: (row) => row.host },
          { key: 'gpu', title: 'GPU', value: nameOf, help: '2 / 1 is instance 1 of GPU 2, which MIG divides' },
          { key: 'model', title: 'Model', value: (row) => (row.instance ? `MIG ${row.instance.mig_profile ?? 'instance'}` : row.gpu.model) },
          { key: 'ranks', title: 'Rank', value: (row) => row.ranks || null, help: 'Of the chosen job' },
          number('utilization_ratio', 'Busy', (gpu) => gpu.utilization_ratio, percent),
          number('sm_active_ratio', 'SMs busy', (gpu) => gpu.sm_active_ratio, percent, (instance) => instance.sm_active_ratio),
          number('memory_used_bytes', 'Memory', (gpu) => gpu.memory_used_bytes, bytes, (instance) => instance.memory_used_bytes),
          number('memory_total_bytes', 'of', (gpu) => gpu.memory_total_bytes, bytes, (instance) => instance.memory_total_bytes),
          number('temperature_celsius', 'Temp', (gpu) => gpu.temperature_celsius, whole('°C')),
          number('power_watts', 'Power', (gpu) => gpu.power_watts, whole('W')),
          number('power_limit_watts', 'Limit', (gpu) => gpu.power_limit_watts, whole('W')),
          number('thermal_throttle_ratio', 'Slowed by heat', (gpu) => gpu.thermal_throttle_ratio, percent),
          number('xid_event_count', 'Xid errors', (gpu) => gpu.xid_event_count, count),
          number('uncorrected_ecc_error_count', 'ECC errors', (gpu) => gpu.uncorrected_ecc_error_count, count),
        ]}
      />
    </>
  );
}

export const devicesView: View<LiveStore> = {
  id: 'devices',
  title: 'Devices',
  shows: 'Which device is idle, full, hot or throttled? Busy share, memory, power and temperature of each over time.',
  group: 'Machines',
  component: Devices,
};
