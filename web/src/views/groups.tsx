import { MarkGrid } from '../charts/mark_grid';
import { StackedRows } from '../charts/stacked_rows';
import { groupKinds, groupsMissing, words, type DdpBucketRow, type FsdpRow, type GroupRow, type PipelineRow } from '../data/depth';
import type { AnalyzeData } from '../data/types';
import { bytes, count, duration, number, percent, plural, rankList } from '../numbers';
import { Answer } from '../parts/answer';
import { bytesColumn, countColumn, numberColumn, rankColumn, shareColumn, textColumn, timeColumn } from '../parts/columns';
import { Legend, Note } from '../parts/controls';
import { Figure } from '../parts/figure';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';
import { OperatorRoofline, Utilisation } from './roofline';

const GROUPS_DRAWN = 40;
/** More than are drawn: then the worst come first. */
const STAGES_IN_ORDER = 40;
const COMMUNICATION = [{ mark: 'both', label: 'beside computation' }, { mark: 'communication', label: 'exposed' }];

const KINDS: Record<string, string> = {
  data: 'data parallel', tensor: 'tensor parallel', pipeline: 'pipeline parallel', expert: 'expert parallel', context: 'context parallel', world: 'of all ranks', mixed: 'of mixed use', unknown: 'of unknown use',
};
const kindWords = (kind: string) => KINDS[kind] ?? words(kind);

function groupLabel(groups: readonly GroupRow[] | null, number_: number): string {
  const group = groups?.find((each) => each.group_number === number_);
  if (!group) return `group ${number_}`;
  return `${group.kind === 'unknown' ? 'group' : group.kind} ${group.name}`;
}
const hidden = (all_ns: number, exposed_ns: number) => Math.max(0, all_ns - exposed_ns);

function Groups({ groups }: { groups: readonly GroupRow[] }) {
  const rows = [...groups].sort((a, b) => b.exposed_ns - a.exposed_ns || b.communication_ns - a.communication_ns);
  const drawn = rows.slice(0, GROUPS_DRAWN);
  const first = rows[0]!;
  const unknown = groups.filter((group) => group.kind === 'unknown').length;
  const summary = `${plural(groups.length, 'process group')}; ${groupLabel(groups, first.group_number)} (${first.size === null ? 'of unknown size' : plural(first.size, 'rank')}) costs most: ${duration(first.exposed_ns)} exposed of ${duration(first.communication_ns)}, all its ranks added.` +
    (unknown > 0 ? ` The purpose of ${count(unknown)} is not known; the table says why.` : '') + (rows.length > drawn.length ? ` The ${GROUPS_DRAWN} that cost most are drawn.` : '');
  return (
    <Figure
      id="groups"
      title="Process groups"
      summary={summary}
      columns={[
        textColumn('name', 'Group', 26),
        textColumn('kind', 'For'),
        { key: 'confidence', title: 'Sure', value: (row) => row.confidence, help: 'How sure it is what the group is for' },
        textColumn('evidence', 'Because', 50),
        countColumn('size', 'Size'),
        { key: 'ranks', title: 'Ranks', width: 26, value: (row) => rankList(row.ranks).replace(/^ranks? /, '') },
        countColumn('call_count', 'Calls'),
        { key: 'calls_per_step', title: 'Per step', numeric: true, value: (row) => row.calls_per_step, text: (row) => number(row.calls_per_step), help: 'Calls of a rank in a step' },
        bytesColumn('bytes', 'Bytes'),
        timeColumn('communication_ns', 'Time', 'All ranks added; waiting is in it'),
        timeColumn('exposed_ns', 'Exposed'),
        shareColumn('exposed_ratio', 'Of the run'),
        textColumn('backend', 'Backend'),
        textColumn('description', 'Description', 30),
      ]}
      rows={rows}
      rowKey={(row) => String(row.group_number)}
      sort="-exposed_ns"
      search={['name', 'kind', 'description', 'ranks']}
    >
      <Legend items={COMMUNICATION} />
      <StackedRows
        kind="ratio"
        format={percent}
        label={summary}
        rows={drawn.map((row) => ({
          key: String(row.group_number), label: groupLabel(groups, row.group_number),
          parts: row.communication_ratio === null || row.exposed_ratio === null ? null : [
            { mark: 'both', label: 'beside computation', value: hidden(row.communication_ratio, row.exposed_ratio) },
            { mark: 'communication', label: 'exposed', value: row.exposed_ratio },
          ],
          text: `${percent(row.exposed_ratio)} exposed, ${row.size === null ? 'size unknown' : plural(row.size, 'rank')}`,
        }))}
      />
    </Figure>
  );
}

function Members({ data, groups }: { data: AnalyzeData; groups: readonly GroupRow[] }) {
  const ranks = [...new Set([...data.ranks.map((facts) => facts.rank), ...groups.flatMap((group) => group.ranks)])].sort((a, b) => a - b);
  if (groups.length < 2 || ranks.length < 2) return null;
  const order = [...groups].sort((a, b) => a.kind.localeCompare(b.kind) || (a.ranks[0] ?? 0) - (b.ranks[0] ?? 0) || a.group_number - b.group_number);
  const drawn = order.slice(0, GROUPS_DRAWN);
  const kinds = [...new Set(order.map((group) => group.kind))];
  const place = new Map(ranks.map((rank, at) => [rank, at]));
  const summary = `Which of ${plural(ranks.length, 'rank')} ${ranks.length === 1 ? 'is' : 'are'} in which group: ${groupKinds(groups).map((sum) => `${count(sum.count)} ${kindWords(sum.kind)}`).join(', ')}.` +
    (order.length > drawn.length ? ` The first ${GROUPS_DRAWN} of ${count(order.length)} are drawn, by kind and first rank.` : '');
  return (
    <Figure
      id="members"
      title="Who is in which group"
      summary={summary}
      columns={[
        textColumn('name', 'Group'),
        textColumn('kind', 'For'),
        countColumn('size', 'Size'),
        { key: 'ranks', title: 'Ranks', value: (row) => rankList(row.ranks, 12).replace(/^ranks? /, '') },
        countColumn('trace_count', 'With a trace'),
      ]}
      rows={order}
      rowKey={(row) => String(row.group_number)}
      search={['name', 'kind', 'ranks']}
    >
      <MarkGrid
        rows={drawn.map((group) => ({
          key: String(group.group_number), label: groupLabel(groups, group.group_number), mark: `series-${(kinds.indexOf(group.kind) % 6) + 1}`,
          at: group.ranks.map((rank) => place.get(rank)!),
        }))}
        column_count={ranks.length}
        tick={(column) => String(ranks[column])}
        xTitle="rank"
        label={summary}
      />
    </Figure>
  );
}

function Buckets({ data, rows }: { data: AnalyzeData; rows: readonly DdpBucketRow[] }) {
  const worst = [...rows].sort((a, b) => b.mean_exposed_ns - a.mean_exposed_ns)[0]!;
  const several = new Set(rows.map((row) => row.group_number)).size > 1;
  const label = (row: DdpBucketRow) => `${several ? `${groupLabel(data.groups, row.group_number)}, ` : ''}bucket ${row.bucket}`;
  const tails = (data.ddp ?? []).filter((row) => row.tail_ns !== null && row.pass_count > 0).map((row) => row.tail_ns! / row.pass_count);
  const summary = `${plural(rows.length, 'gradient bucket')} of the backward pass, in order of issue. ${several ? groupLabel(data.groups, worst.group_number) + ', b' : 'B'}ucket ${worst.bucket} (${worst.bytes === null ? 'size not recorded' : bytes(worst.bytes)}) is exposed longest: ${duration(worst.mean_exposed_ns)} of ${duration(worst.mean_duration_ns)}.` +
    (tails.length > 0 ? ` After the last backward kernel the optimizer waits ${duration(Math.max(...tails))} for buckets, on the rank where it is longest.` : '');
  return (
    <Figure
      id="buckets"
      title="Gradient buckets (DDP)"
      summary={summary}
      columns={[
        { key: 'group', title: 'Group', value: (row: DdpBucketRow) => groupLabel(data.groups, row.group_number) },
        numberColumn('bucket', 'Bucket'),
        bytesColumn('bytes', 'Size'),
        timeColumn('mean_duration_ns', 'Takes', 'Mean; waiting is in it'),
        timeColumn('mean_exposed_ns', 'Exposed'),
        timeColumn('mean_overlapped_ns', 'In the backward pass'),
        shareColumn('issue_ratio', 'Issued at', 'Place in the CPU’s backward pass'),
        countColumn('call_count', 'Calls'),
      ]}
      rows={rows}
      rowKey={(row) => `${row.group_number}.${row.bucket}`}
    >
      <Legend items={COMMUNICATION} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={rows.map((row) => ({
          key: `${row.group_number}.${row.bucket}`, label: label(row),
          parts: [
            { mark: 'both', label: 'beside computation', value: hidden(row.mean_duration_ns, row.mean_exposed_ns) },
            { mark: 'communication', label: 'exposed', value: row.mean_exposed_ns },
          ],
          text: `${row.bytes === null ? '' : `${bytes(row.bytes)}, `}issued at ${percent(row.issue_ratio)}`,
        }))}
      />
    </Figure>
  );
}

const RESHARDING: Record<FsdpRow['resharding'], string> = {
  after_forward: 'weights are freed after the forward pass and gathered again',
  kept: 'weights are gathered once',
  unknown: 'the trace does not tell the passes apart',
};

function Fsdp({ data, rows }: { data: AnalyzeData; rows: readonly FsdpRow[] }) {
  const exposed = (row: FsdpRow) => row.gather_exposed_ns + row.scatter_exposed_ns;
  const per_step = (row: FsdpRow, ns: number) => ns / Math.max(1, row.step_count);
  const sorted = [...rows].sort((a, b) => per_step(b, exposed(b)) - per_step(a, exposed(a)));
  const worst = sorted[0]!;
  const words_of = worst.step_count > 0 ? 'a step' : 'in the whole trace';
  const prefetched = rows.reduce((sum, row) => sum + row.prefetched_count, 0);
  const gathers = rows.reduce((sum, row) => sum + row.gather_count, 0);
  const summary = `Sharded weights, ${RESHARDING[worst.resharding]}. ${percent(gathers > 0 ? prefetched / gathers : null)} of the gathers run beside computation. Most exposed: ${rankLabel(data, worst.rank_index)}, ${duration(per_step(worst, exposed(worst)))} ${words_of}.`;
  const time = (key: 'gather_ns' | 'gather_exposed_ns' | 'scatter_ns' | 'scatter_exposed_ns', title: string) => ({
    key, title, numeric: true, value: (row: FsdpRow) => row[key], text: (row: FsdpRow) => duration(row[key]),
  });
  return (
    <Figure
      id="fsdp"
      title="Sharded weights (FSDP, ZeRO)"
      summary={summary}
      columns={[
        rankColumn(data),
        { key: 'group', title: 'Group', value: (row) => groupLabel(data.groups, row.group_number) },
        countColumn('step_count', 'Steps'),
        countColumn('gather_count', 'Gathers'),
        countColumn('gather_backward_count', 'In backward'),
        countColumn('prefetched_count', 'Prefetched'),
        bytesColumn('gather_bytes', 'Gathered'),
        time('gather_ns', 'Gather time'), time('gather_exposed_ns', 'Exposed'),
        countColumn('scatter_count', 'Scatters'),
        bytesColumn('scatter_bytes', 'Scattered'),
        time('scatter_ns', 'Scatter time'), time('scatter_exposed_ns', 'Exposed scatter'),
        { key: 'resharding', title: 'Resharding', value: (row) => words(row.resharding) },
        bytesColumn('peak_allocated_bytes', 'Peak memory'),
      ]}
      rows={sorted}
      rowKey={(row) => `${row.rank_index}.${row.group_number}`}
      search={['rank', 'group']}
    >
      <Legend items={[{ mark: 'both', label: 'beside computation' }, { mark: 'communication', label: 'gathers, exposed' }, { mark: 'memory', label: 'scatters, exposed' }]} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={sorted.map((row) => ({
          key: `${row.rank_index}.${row.group_number}`, label: rankLabel(data, row.rank_index),
          parts: [
            { mark: 'communication', label: 'gathers, exposed', value: per_step(row, row.gather_exposed_ns) },
            { mark: 'memory', label: 'scatters, exposed', value: per_step(row, row.scatter_exposed_ns) },
            { mark: 'both', label: 'beside computation', value: per_step(row, hidden(row.gather_ns + row.scatter_ns, exposed(row))) },
          ],
          text: `${duration(per_step(row, exposed(row)))} exposed ${words_of}`,
        }))}
      />
    </Figure>
  );
}

function Pipeline({ data, rows }: { data: AnalyzeData; rows: readonly PipelineRow[] }) {
  const worst = [...rows].sort((a, b) => b.bubble_ns - a.bubble_ns)[0]!;
  const schedules = [...new Set(rows.map((row) => row.schedule))].filter((schedule) => schedule !== 'unknown');
  const summary = `${plural(rows.length, 'stage')} of ${plural(new Set(rows.map((row) => row.group_number)).size, 'pipeline')}, schedule ${schedules.length > 0 ? schedules.join(', ') : 'unknown'}. ` +
    `${rankLabel(data, worst.rank_index)} (stage ${worst.stage}) waits longest in sends and receives: ${duration(worst.bubble_ns)}${worst.bubble_ratio === null ? '' : `, ${percent(worst.bubble_ratio)} of its time`}.`;
  return (
    <Figure
      id="pipeline"
      title="Pipeline"
      summary={summary.charAt(0).toUpperCase() + summary.slice(1)}
      columns={[
        rankColumn(data),
        { key: 'group', title: 'Group', value: (row) => groupLabel(data.groups, row.group_number) },
        numberColumn('stage', 'Stage'),
        countColumn('stage_count', 'Of'),
        textColumn('schedule', 'Schedule'),
        { key: 'microbatches_per_step', title: 'Micro-batches', numeric: true, value: (row) => row.microbatches_per_step, text: (row) => number(row.microbatches_per_step) },
        countColumn('in_flight_count', 'In flight'),
        countColumn('send_count', 'Sends'),
        countColumn('receive_count', 'Receives'),
        bytesColumn('bytes', 'Bytes'),
        timeColumn('communication_ns', 'Time'),
        timeColumn('bubble_ns', 'Bubble'),
        shareColumn('bubble_ratio', 'Share'),
      ]}
      rows={rows}
      rowKey={(row) => `${row.rank_index}.${row.group_number}`}
      search={['rank', 'group']}
    >
      <Legend items={[{ mark: 'both', label: 'sends and receives beside computation' }, { mark: 'idle', label: 'bubble: nothing is computed' }]} />
      <StackedRows
        kind="ns"
        format={duration}
        label={summary}
        rows={(rows.length > STAGES_IN_ORDER ? [...rows].sort((a, b) => b.bubble_ns - a.bubble_ns) : rows).map((row) => ({
          key: `${row.rank_index}.${row.group_number}`, label: `stage ${row.stage}, ${rankLabel(data, row.rank_index)}`,
          parts: [
            { mark: 'both', label: 'beside computation', value: hidden(row.communication_ns, row.bubble_ns) },
            { mark: 'idle', label: 'bubble', value: row.bubble_ns },
          ],
          text: row.bubble_ratio === null ? duration(row.bubble_ns) : `bubble ${percent(row.bubble_ratio)}`,
        }))}
      />
    </Figure>
  );
}

/** What the job does not have, in a sentence; '' when it has everything. */
function absent(data: AnalyzeData): string {
  const none = [
    ...((data.ddp_buckets ?? []).length === 0 ? ['gradient buckets (DDP)'] : []),
    ...((data.fsdp ?? []).length === 0 ? ['sharded weights (FSDP, ZeRO)'] : []),
    ...((data.pipeline ?? []).length === 0 ? ['a pipeline'] : []),
    ...((data.flops ?? []).length === 0 ? ['shapes of operators (record_shapes=True), so no FLOPs'] : []),
  ];
  return none.length === 0 ? '' : `Not seen in these traces: ${none.join('; ')}.`;
}

function Parallelism({ data }: ViewProps) {
  const groups = data.groups ?? [];
  const kinds = groupKinds(groups);
  const worst = [...kinds].sort((a, b) => b.exposed_ns - a.exposed_ns)[0];
  const mfu = (data.flops ?? []).flatMap((row) => (row.mfu === null ? [] : [row.mfu]));
  const mean = mfu.length > 0 ? mfu.reduce((sum, value) => sum + value, 0) / mfu.length : null;
  const told = kinds.map((sum) => `${groups.length > 1 ? `${count(sum.count)} ` : ''}${kindWords(sum.kind)}`).join(', ');
  const sentence = groups.length === 0
    ? mean !== null ? `The devices do ${percent(mean)} of what they could (MFU); no process group was seen.` : 'No process group was seen.'
    : `${plural(groups.length, 'process group')}: ${told}.` + (worst && worst.exposed_ns > 0 && kinds.length > 1 ? ` Communication that costs time is mostly ${kindWords(worst.kind)}: ${percent(worst.exposed_ns / Math.max(1, groups.reduce((sum, group) => sum + group.exposed_ns, 0)))} of what is exposed.` : '') +
      (mean !== null ? ` The devices do ${percent(mean)} of what they could (MFU).` : '');
  return (
    <>
      <Answer sentence={sentence}>{absent(data) || null}</Answer>
      {groups.length > 0 && <Groups groups={groups} />}
      <Members data={data} groups={groups} />
      {(data.ddp_buckets ?? []).length > 0 && <Buckets data={data} rows={data.ddp_buckets!} />}
      {(data.fsdp ?? []).length > 0 && <Fsdp data={data} rows={data.fsdp!} />}
      {(data.pipeline ?? []).length > 0 && <Pipeline data={data} rows={data.pipeline!} />}
      {(data.flops ?? []).length > 0 && <Utilisation data={data} rows={data.flops!} />}
      {(data.flops_by_operator ?? []).length > 0 && <OperatorRoofline data={data} rows={data.flops_by_operator!} />}
      {groups.length === 0 && data.groups === null && <Note>The pass groups did not run.</Note>}
    </>
  );
}

export const groupsView: View = {
  id: 'groups',
  title: 'Groups and use of devices',
  shows: 'How the job is divided among its ranks, what each way of dividing costs, and how much of the devices the work uses.',
  group: 'Communication',
  missing: groupsMissing,
  component: Parallelism,
};
