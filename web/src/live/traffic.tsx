import { useRef } from 'preact/hooks';
import { useParam } from '../app/route';
import { TimeLines } from '../charts/time_lines';
import { rate } from '../numbers';
import { Legend, Select } from '../parts/controls';
import { Figure } from '../parts/figure';
import { lineTable } from './line_table';
import { useSpan } from './shared';
import type { LiveStore } from './store';
import { deviceKey } from './timeline';
import type { Port } from './types';

export interface PortRow extends Port {
  host: string;
}

export const portName = (row: PortRow) => (row.port === null ? row.device : `${row.device}:${row.port}`);

/** What a network device received and sent, over time; the first of `ports` unless another one is chosen. */
export function Traffic({ store, ports }: { store: LiveStore; ports: readonly PortRow[] }) {
  const [chosen, choose] = useParam('port', '');
  const { buckets, words } = useSpan(store);
  const keyOf = (row: PortRow) => deviceKey(row.host, row.device, row.port);
  // The one that was first when the view was opened: ports change places all the time.
  const first = useRef('');
  const find = (key: string) => ports.find((each) => keyOf(each) === key);
  const row = find(chosen) ?? find(first.current) ?? ports[0];
  if (!row) return null;
  first.current ||= keyOf(row);
  const listed = [...ports].sort((a, b) => a.host.localeCompare(b.host, 'en', { numeric: true }) || portName(a).localeCompare(portName(b), 'en', { numeric: true }));
  const columns = store.timeline.network.get(keyOf(row));
  const lines = [
    { label: 'received', series: 1, values: store.timeline.last(columns, 'receive_bytes_per_s', buckets) },
    { label: 'sent', series: 2, values: store.timeline.last(columns, 'transmit_bytes_per_s', buckets) },
  ];
  const name = `${row.host} ${portName(row)}`;
  return (
    <Figure
      id="traffic"
      title={`Traffic of ${name}`}
      summary={`Over ${words}; now ${rate(row.receive_bytes_per_s)} received and ${rate(row.transmit_bytes_per_s)} sent${row.rate_bytes_per_s !== null ? `, of ${rate(row.rate_bytes_per_s)} each way` : ''}.`}
      controls={ports.length > 1 && <Select label="Device" value={keyOf(row)} onChange={choose} options={listed.map((each) => ({ value: keyOf(each), label: `${each.host} ${portName(each)}` }))} />}
      {...lineTable(store, lines, rate, 'bytes_per_s')}
    >
      <Legend items={lines.map((line) => ({ mark: `series-${line.series}`, label: line.label }))} />
      <TimeLines series={lines} bucket_ns={store.timeline.bucket_ns} kind="rate" label={`Traffic of ${name} over time`} />
    </Figure>
  );
}
