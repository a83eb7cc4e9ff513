import { launchRows, rooflineRows, ruleRows, sumRows, type KernelsData, type RuleRow } from '../data/kernels';
import type { PageSource } from '../data/types';
import { percent, plural, shortName } from '../numbers';
import { Answer } from '../parts/answer';
import { Note } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import type { View, ViewProps } from '../view';
import { answerQualityView, answerTextView } from './answer_views';
import { Launches, launchesSentence, Rooflines, Sums } from './measured_kernels';

type Props = ViewProps<KernelsData>;

function Bounds({ data }: Props) {
  const launches = launchRows(data);
  const rooflines = rooflineRows(data);
  return (
    <>
      <Answer sentence={launchesSentence(launches)}>{null}</Answer>
      {rooflines.length > 0
        ? <Rooflines rows={rooflines} launches={launches} />
        : <Note>No launch has a place under a roofline: <code>ncu --set roofline</code> collects what is needed.</Note>}
      <Launches rows={launches} />
    </>
  );
}

function Advice({ data }: Props) {
  const rows = ruleRows(data);
  return (
    <DataTable<RuleRow>
      id="rules"
      caption="What Nsight Compute advises, largest gain first"
      rows={rows}
      rowKey={(row) => `${row.file} ${row.id} ${row.kernel} ${row.name} ${row.text}`}
      sort="-speedup_ratio"
      search={['kernel', 'name', 'text']}
      columns={[
        { key: 'speedup_ratio', title: 'Gain', help: 'By its own estimate; “of a part”: of that part of the launch alone', numeric: true, value: (row) => row.speedup_ratio, text: (row) => percent(row.speedup_ratio) + (row.speedup_is_local ? ' of a part' : '') },
        { key: 'kernel', title: 'Kernel', value: (row) => row.kernel, text: (row) => shortName(row.kernel), width: 30 },
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
        { key: 'id', title: 'No.', numeric: true, value: (row) => row.id },
        { key: 'name', title: 'Rule', value: (row) => row.name, width: 24 },
        { key: 'text', title: 'What it says', value: (row) => row.text, width: 90 },
      ]}
    />
  );
}

const boundsView: View<KernelsData> = {
  id: 'bounds',
  title: 'What bounds them',
  shows: 'Are the kernels bound by arithmetic, by memory, or by too little work in flight; and how far are they from what the device can do?',
  group: 'Answer',
  missing: (data) => (data.launches.length === 0 ? 'No table of Nsight Compute was given, which measures single launches.' : null),
  component: Bounds,
};

const adviceView: View<KernelsData> = {
  id: 'advice',
  title: 'Advice',
  shows: 'What Nsight Compute itself advises for each launch, and what it expects to gain.',
  group: 'Answer',
  missing: (data) => (data.launches.every((launch) => launch.rules.length === 0) ? 'No table with rules was given: ncu --page details has them.' : null),
  component: Advice,
};

const sumsView: View<KernelsData> = {
  id: 'sums',
  title: 'Sums over ranks',
  shows: 'Which kernels, calls, copies and ranges take most time in all, and on which rank most, as nsys stats sums them up.',
  group: 'Work',
  missing: (data) => (data.sums.length === 0 ? 'No table of nsys stats was given.' : null),
  component: ({ data }: Props) => <Sums rows={sumRows(data)} />,
};

export function kernelsFacts(source: PageSource): readonly string[] {
  const { launches, sums } = source.document.data as unknown as KernelsData;
  const devices = [...new Set(launches.map((launch) => launch.device).filter(Boolean))];
  return [
    ...(launches.length > 0 ? [plural(launches.length, 'measured launch', 'measured launches')] : []),
    ...(devices.length === 1 ? [devices[0]!] : devices.length > 1 ? [plural(devices.length, 'kind of device', 'kinds of device')] : []),
    ...(sums.length > 0 ? [`${plural(sums.length, 'name')} summed up`] : []),
  ];
}

export const kernelsViews = [boundsView, adviceView, sumsView, answerQualityView, answerTextView] as readonly View<unknown>[];
