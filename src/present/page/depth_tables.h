#pragma once

#include <vector>

#include "present/page/page_model.h"
#include "present/report/json_stream.h"

namespace lockstep::page {

// The tables of AnalyzeData about why a step takes its time: what fixes it, what made ranks wait, what a change would
// gain, how the job is divided (web/src/data/depth.ts). A pass that did not run gives null. Tables longer than the
// limits keep what weighs most, and say how many; what an embedded page loses to its size has a row in `reductions`.
// Sums are over everything.

/// critical_path: sums over all steps by category, rank and name; each step; the path of a step as rows and as pieces
/// in time. Cost: O(rows + pieces) log.
void AddCriticalPath(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// wait_states: waiting of each rank by kind, first causes with the chains by which they reached others.
void AddWaitStates(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// what_if, bubbles.
void AddWhatIf(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// groups, group_operations, ddp, ddp_buckets, fsdp, pipeline, flops, flops_by_operator, regions, region_balance,
/// kernel_launches, kernel_rooflines, kernel_sums, stage_scopes, stage_shares, stage_agreement, fabric: rows as
/// `--json` has them (analysis/table.h), but with `rank_index` in place of `rank` and `window`. And `device_peaks`: by
/// name of a device, the roof over flops_by_operator.
void AddParallelism(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);
/// fabric_source: what `--fabric` says that the fabric can do, over which the page draws what the job got.
void AddFabricSource(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions);

}  // namespace lockstep::page
