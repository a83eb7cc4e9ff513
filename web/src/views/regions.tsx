import { useParam } from '../app/route';
import { StackedRows, type Part } from '../charts/stacked_rows';
import { regionsMissing, type RegionBalanceRow, type RegionRow } from '../data/depth';
import type { AnalyzeData } from '../data/types';
import { count, duration, number, plural } from '../numbers';
import { Answer } from '../parts/answer';
import { countColumn, numberColumn, rankColumn, textColumn, timeColumn } from '../parts/columns';
import { Legend, Select } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const DRAWN = 30;
const IN_COLLECTIVES = 'a collective is under way';

/** What a range's time on the CPU is, as far as it is known. */
function parts(total_ns: number, own_ns: number | null): Part[] {
  if (own_ns === null) return [{ mark: 'compute', label: 'on the CPU', value: total_ns }];
  return [
    { mark: 'compute', label: 'its own', value: own_ns },
    { mark: 'communication', label: IN_COLLECTIVES, value: Math.max(0, total_ns - own_ns) },
  ];
}

function legend(knows_own: boolean) {
  return knows_own
    ? [{ mark: 'compute', label: 'its own' }, { mark: 'communication', label: `${IN_COLLECTIVES} inside` }]
    : [{ mark: 'compute', label: 'on the CPU; kernels may run on after it' }];
}

/** Where ranks differ most: in own time where waiting inside is known, else on the CPU or on the device. */
function uneven(row: RegionBalanceRow): { imbalance: number; rank: number; where: string } {
  if (row.own_imbalance !== null && row.most_own_rank !== null) return { imbalance: row.own_imbalance, rank: row.most_own_rank, where: '' };
  if (row.device_imbalance !== null && row.most_device_rank !== null && row.device_imbalance > row.total_imbalance) {
    return { imbalance: row.device_imbalance, rank: row.most_device_rank, where: ' on the device' };
  }
  return { imbalance: row.total_imbalance, rank: row.most_total_rank, where: row.mean_device_ns === null ? '' : ' on the CPU' };
}

function unevenText(row: RegionBalanceRow): string {
  const { imbalance, rank, where } = uneven(row);
  if (row.rank_count < 2) return `rank ${rank} only`;
  return imbalance < 1.02 ? 'even' : `most on rank ${rank}: ${number(imbalance)} of the mean${where}`;
}

const imbalanceColumn = (key: 'total_imbalance' | 'own_imbalance' | 'device_imbalance', title: string, help: string) => ({
  key, title, help, numeric: true, value: (row: RegionBalanceRow) => row[key], text: (row: RegionBalanceRow) => number(row[key]),
});

function OverRanks({ rows }: { rows: readonly RegionBalanceRow[] }) {
  const knows_own = rows.some((row) => row.mean_own_ns !== null);
  const first = rows[0]!;
  const summary = `${plural(rows.length, 'region')}, means of the ranks. Longest: ${first.name}, ${duration(first.mean_total_ns)} a rank.` +
    (rows.length > DRAWN ? ` The ${DRAWN} longest are drawn.` : '');
  return (
    <Figure
      id="region-balance"
      title="Regions over ranks"
      summary={summary}
      columns={[
        textColumn('name', 'Region', 40),
        countColumn('rank_count', 'Ranks'),
        countColumn('count', 'Ranges'),
        timeColumn('mean_total_ns', 'Time', 'On the CPU, mean of the ranks'),
        imbalanceColumn('total_imbalance', 'Most/mean', 'Largest rank over the mean'),
        numberColumn('most_total_rank', 'On rank'),
        timeColumn('mean_own_ns', 'Own', 'Without the time in which a collective is under way'),
        imbalanceColumn('own_imbalance', 'Most/mean of own', 'What waiting inside hides in the time'),
        numberColumn('most_own_rank', 'Own on rank'),
        timeColumn('mean_device_ns', 'Device', 'Device events launched inside, over streams'),
        imbalanceColumn('device_imbalance', 'Most/mean on device', 'Without communication'),
        numberColumn('most_device_rank', 'Device on rank'),
      ]}
      rows={rows}
      rowKey={(row) => row.name}
      sort="-mean_total_ns"
      search={['name']}
    >
      <Legend items={legend(knows_own)} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.slice(0, DRAWN).map((row) => ({
          key: row.name, label: row.name, parts: parts(row.mean_total_ns, row.mean_own_ns), text: unevenText(row),
        }))}
      />
    </Figure>
  );
}

function ByRank({ data, balance }: { data: AnalyzeData; balance: readonly RegionBalanceRow[] }) {
  const [name, setName] = useParam('region', balance[0]!.name);
  const chosen = balance.find((row) => row.name === name) ?? balance[0]!;
  const weight = (row: RegionRow) => row.own_ns ?? row.total_ns;
  const rows = (data.regions ?? []).filter((row) => row.name === chosen.name).sort((a, b) => weight(b) - weight(a));
  if (rows.length === 0) return null;
  const knows_own = rows.some((row) => row.own_ns !== null);
  const first = rows[0]!;
  const summary = `${chosen.name}: most ${knows_own ? 'of its own ' : ''}on ${rankLabel(data, first.rank_index)}, ${duration(weight(first))} in ${plural(first.count, 'range')}, median ${duration(first.median_ns)}.`;
  return (
    <Figure
      id="regions"
      title="One region, rank by rank"
      summary={summary}
      columns={[
        rankColumn(data),
        countColumn('count', 'Ranges'),
        timeColumn('total_ns', 'Time'),
        timeColumn('own_ns', 'Own', 'Without the time in which a collective is under way'),
        timeColumn('min_ns', 'Shortest'),
        timeColumn('median_ns', 'Median'),
        timeColumn('p95_ns', 'P95'),
        timeColumn('max_ns', 'Longest'),
        timeColumn('pace_ns', 'Pace', 'Median time from one start to the next'),
        countColumn('device_event_count', 'Device events'),
        timeColumn('device_ns', 'Device'),
        timeColumn('device_communication_ns', 'Of it communication'),
        timeColumn('projected_ns', 'Projected', 'From the first start to the last end on the device'),
      ]}
      rows={rows}
      rowKey={(row) => String(row.rank_index)}
    >
      <Select label="Region" value={chosen.name} options={balance.map((row) => ({ value: row.name, label: row.name }))} onChange={setName} />
      <Legend items={legend(knows_own)} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({
          key: String(row.rank_index), label: rankLabel(data, row.rank_index), parts: parts(row.total_ns, row.own_ns),
          text: `median ${duration(row.median_ns)}${row.device_ns === null ? '' : `, device ${duration(row.device_ns)}`}`,
        }))}
      />
    </Figure>
  );
}

function Regions({ data }: ViewProps) {
  const balance = [...(data.region_balance ?? [])].sort((a, b) => b.mean_total_ns - a.mean_total_ns);
  if (balance.length === 0) return null;
  const shared = balance.filter((row) => row.rank_count > 1);
  const worst = [...shared].sort((a, b) => (uneven(b).imbalance - 1) * (b.mean_own_ns ?? b.mean_total_ns) - (uneven(a).imbalance - 1) * (a.mean_own_ns ?? a.mean_total_ns))[0];
  const sentence = worst && uneven(worst).imbalance > 1.1
    ? `${worst.name} is most uneven for its length: rank ${uneven(worst).rank} has ${number(uneven(worst).imbalance)} times the mean${uneven(worst).where}.`
    : `${count(balance.length)} regions; none is much longer on one rank than on the others.`;
  return (
    <>
      <Answer sentence={sentence}>{null}</Answer>
      <OverRanks rows={balance} />
      <ByRank data={data} balance={balance} />
    </>
  );
}

export const regionsView: View = {
  id: 'regions',
  title: 'Regions',
  shows: 'The ranges that the program marks (record_function, NVTX): how long they take on CPU and device, and on which rank they take longer.',
  group: 'Work',
  missing: regionsMissing,
  component: Regions,
};
