/** What the page of `lockstep kernels` is made from: `data` of `lockstep.kernels/1` (docs/json.md). */
import type { KernelLaunchRow, KernelRooflineRow, KernelSumRow } from './depth_types';

type Maybe = number | null;

export interface KernelRule {
  name: string;
  type: string;
  text: string;
  speedup_ratio: Maybe;
  /** Of the part that the rule is about, not of the launch. */
  speedup_is_local: boolean;
}

type Point = Omit<KernelRooflineRow, 'file' | 'rank' | 'id' | 'kernel' | 'device'>;

export interface KernelsData {
  launches: (KernelLaunchRow & { roofline: Point[]; missing_metrics: string[]; rules: KernelRule[] })[];
  sums: (Omit<KernelSumRow, 'report_count'> & { reports: number })[];
}

export interface RuleRow extends KernelRule {
  kernel: string;
  rank: Maybe;
  id: number;
  file: string;
}

/** The longest first, as the report page has them. */
export function launchRows(data: KernelsData): KernelsData['launches'] {
  return [...data.launches].sort((a, b) => (b.duration_ns ?? 0) - (a.duration_ns ?? 0));
}

export function rooflineRows(data: KernelsData): KernelRooflineRow[] {
  return launchRows(data).flatMap((launch) => launch.roofline.map((point) => ({ ...point, file: launch.file, rank: launch.rank, id: launch.id, kernel: launch.kernel, device: launch.device })));
}

export function sumRows(data: KernelsData): KernelSumRow[] {
  return data.sums.map(({ reports, ...row }) => ({ ...row, report_count: reports }));
}

/** What Nsight Compute advises, by what it says to gain. */
export function ruleRows(data: KernelsData): RuleRow[] {
  return launchRows(data)
    .flatMap((launch) => launch.rules.map((rule) => ({ ...rule, kernel: launch.kernel, rank: launch.rank, id: launch.id, file: launch.file })))
    .sort((a, b) => (b.speedup_ratio ?? -1) - (a.speedup_ratio ?? -1));
}
