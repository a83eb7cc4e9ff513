#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/frontier/rounds.h"
#include "model/stages/stage.h"

namespace lockstep::frontier {

/// What one stage of one rank cost the job: by how much its rounds would have been shorter if the stage had taken the
/// rank as long as it took the median rank in the same round. Nobody waits for a rank that is not the last one, so only
/// the last one of a round costs anything, and never more than it was behind the one before it.
struct Cost {
  int64_t ns = 0;
  int64_t round_count = 0;   ///< In which it cost something.
  int64_t largest_ns = 0;    ///< In one round, of any step but the first: there programs warm up.
  int64_t largest_step = 0;  ///< In which that round ended.
};

/// One stage over all rounds.
struct StageAccount {
  int64_t frontier_ns = 0;   ///< Sum of its increments.
  int64_t imbalance_ns = 0;  ///< What the job would save if the stage took every rank as long as the median rank.
  std::vector<int64_t> rank_ns = {};    ///< By rank: what it spent in the stage.
  std::vector<int64_t> leader_ns = {};  ///< By rank: increments that it led.
  std::vector<Cost> cost = {};          ///< By rank.
};

/// One step of the job.
struct StepAccount {
  int64_t number = 0;
  int64_t ns = 0;       ///< Sum of the increments of the rounds that ended in it.
  int64_t cost_ns = 0;  ///< Of the rank and stage that cost most in it; 0: none did.
  size_t rank_idx = 0;
  model::Stage stage = model::Stage::kOther;
};

/// Where the time of a group of ranks went, and who cost it what.
struct Accounting {
  std::vector<int32_t> ranks;
  int64_t step_count = 0;
  int64_t left_out_count = 0;  ///< Steps that some rank lacks.
  int64_t round_count = 0;
  int64_t total_ns = 0;  ///< Sum of all increments of all stages.
  int64_t unmet_ns = 0;  ///< Of it, in rounds that ended without a meeting: who led them, cost nobody anything yet.
  int64_t tail_ns = 0;   ///< Rounds::tail_ns
  std::array<StageAccount, model::kStages.size()> stages = {};  ///< By model::Stage.
  std::vector<StepAccount> steps = {};

  const StageAccount& At(model::Stage stage) const { return stages[static_cast<size_t>(stage)]; }
};

/// The rank and stage that cost most; `ns` is 0 where none costs anything.
struct MostCost {
  int64_t ns = 0;
  size_t rank_idx = 0;
  model::Stage stage = model::Stage::kOther;
};
MostCost FindMostCost(const Accounting& account);
/// The same of one stage.
MostCost FindMostCost(const Accounting& account, model::Stage stage);

/// Pure: the same rounds give the same accounting, in at most `most` parts that follow each other, of equally many
/// steps, or one more. What is in no round is in no part. Ranks without steps count as ranks that lack them.
std::vector<Accounting> AccountParts(const Rounds& rounds, size_t most);

/// Adds what follows `*account`, of the same ranks: sums are exact.
void Add(const Accounting& next, Accounting* account);

/// The sum of all parts, with what is in none of them.
Accounting Whole(const Rounds& rounds, const std::vector<Accounting>& parts);

/// What ranks cost in a group of theirs is what they cost the job, where they cost it more there than in `*job`, which
/// has the same steps. `members`: the group's ranks, as indices of the job's.
void TakeCosts(const Accounting& group, std::span<const size_t> members, Accounting* job);

}  // namespace lockstep::frontier
