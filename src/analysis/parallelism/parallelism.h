#pragma once

#include <utility>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/counters/counters.h"
#include "analysis/fabric/fabric.h"
#include "analysis/kernel_profile/kernel_profile_tables.h"
#include "analysis/parallelism/ddp.h"
#include "analysis/parallelism/flops.h"
#include "analysis/parallelism/fsdp.h"
#include "analysis/parallelism/inference.h"
#include "analysis/parallelism/moe.h"
#include "analysis/parallelism/pipeline.h"
#include "analysis/parallelism/process_groups.h"
#include "analysis/parallelism/rank_traffic.h"
#include "analysis/regions/regions.h"

namespace lockstep::analysis {

/// What the passes of this folder read of one rank's events; all that their second halves need.
struct ParallelismPartial {
  RankTraffic traffic;  ///< For groups, ddp, fsdp, pipeline, moe.
  FlopsPartial flops;   ///< For flops.
  InferencePartial inference;
  std::vector<RegionRow> regions;
  std::vector<CounterRow> counters;
};

/// The same of all ranks, by rank index.
struct ParallelismPartials {
  std::vector<RankTraffic> traffic;
  std::vector<FlopsPartial> flops;
  std::vector<InferencePartial> inference;
  std::vector<std::vector<RegionRow>> regions;
  std::vector<std::vector<CounterRow>> counters;

  void Add(ParallelismPartial rank) {
    traffic.push_back(std::move(rank.traffic));
    flops.push_back(std::move(rank.flops));
    inference.push_back(std::move(rank.inference));
    regions.push_back(std::move(rank.regions));
    counters.push_back(std::move(rank.counters));
  }
};

/// Tables of the passes that know how the job is divided, or what its program says of itself. A table is empty when its
/// pass did not run.
struct Parallelism {
  std::vector<ProcessGroupRow> groups;
  std::vector<GroupOperationRow> group_operations;
  Ddp ddp;
  std::vector<FsdpRow> fsdp;
  std::vector<PipelineRow> pipeline;
  Moe moe;
  std::vector<InferenceRow> inference;                  ///< By rank, engine, phase.
  std::vector<InferenceRequestRow> inference_requests;  ///< By rank, those that ranges mark first, then by kind.
  std::vector<FlopsRankRow> flops;                      ///< By rank.
  std::vector<FlopsRow> flops_by_operator;              ///< By rank, largest time first.
  std::vector<RegionRow> regions;                       ///< By rank, largest total first.
  std::vector<RegionBalanceRow> region_balance;         ///< Largest mean first.
  std::vector<CounterRow> counters;                     ///< By rank, device, name.
  std::vector<CounterBalanceRow> counter_balance;       ///< By name.
  std::vector<FabricRow> fabric;                        ///< Longest transfers first; of AddFabric.
  model::Fabric fabric_source;                          ///< What they were held against.
  KernelProfileTables kernel_profiles;
};

/// The tables of `result`, all empty when none of the passes ran.
const Parallelism& ParallelismOf(const AnalysisResult& result);

}  // namespace lockstep::analysis
