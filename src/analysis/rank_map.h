#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rank_context.h"
#include "base/on_threads.h"
#include "base/team.h"
#include "model/team_holders.h"

namespace lockstep::analysis {

// What passes ask of every rank's events goes through here, so that the same code runs where the events are: on this
// process's threads, or on the processes that hold them (`lockstep-mpi`). A pass is a struct:
//
//   struct XPass {
//     static constexpr std::string_view kName = "x";
//     using Args = ...;     // What base/archive.h takes.
//     using Partial = ...;  // The same: plain values, names by id.
//     static Partial Map(const RunContext& shared, size_t rank_index, const Args& args);
//   };
//
// Map reads the rank `rank_index` and no other, and depends on nothing else; of RunContext::run it may read that rank
// and the names. Every pass is listed in AddRankPasses, or its layer's like of it.

/// RunContext without the run, for the way to another process.
std::string ContextBytes(const RunContext& shared);

/// Asks the ranks of these indices; the answers in that order. Throws what Map throws.
template <typename Pass>
std::vector<typename Pass::Partial> MapRanks(const RunContext& shared, const typename Pass::Args& args,
                                             const std::vector<size_t>& rank_indices) {
  std::vector<typename Pass::Partial> partials(rank_indices.size());
  if (shared.run->holders == nullptr) {
    OnThreads(rank_indices.size(), shared.options.thread_count,
              [&](size_t i) { partials[i] = Pass::Map(shared, rank_indices[i], args); });
    return partials;
  }
  std::vector<std::string> answers =
      shared.run->holders->Map(Pass::kName, ContextBytes(shared), ToBytes(args), rank_indices);
  for (size_t i = 0; i < answers.size(); ++i) {
    Result<typename Pass::Partial> partial = FromBytes<typename Pass::Partial>(answers[i]);
    if (!partial) throw TeamError(partial.error().ToString());
    partials[i] = std::move(*partial);
    answers[i] = std::string();
  }
  return partials;
}

/// Asks every rank of the run.
template <typename Pass>
std::vector<typename Pass::Partial> MapRanks(const RunContext& shared, const typename Pass::Args& args) {
  std::vector<size_t> all(shared.run->ranks.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return MapRanks<Pass>(shared, args, all);
}

/// Brings the events of a run that other processes hold to this one, for what shows single events. Memory: the whole
/// job's. Nothing to do where they are here. Throws TeamError.
void FetchEvents(model::Run* run);

/// The passes that a process answers, by name.
class RankPasses {
 public:
  template <typename Pass>
  void Add() {
    answers_[std::string(Pass::kName)] = [](const RunContext& shared, std::string_view args_bytes,
                                            const std::vector<size_t>& rank_indices) {
      const Result<typename Pass::Args> args = FromBytes<typename Pass::Args>(args_bytes);
      if (!args) throw TeamError(args.error().ToString());
      std::vector<std::string> answers(rank_indices.size());
      OnThreads(rank_indices.size(), shared.options.thread_count,
                [&](size_t i) { answers[i] = ToBytes(Pass::Map(shared, rank_indices[i], *args)); });
      return answers;
    };
  }

  /// Throws TeamError for what is not a request, and what Map throws.
  model::MapAnswer Answer(const model::HeldRuns& runs, const model::MapRequest& request,
                          uint32_t default_thread_count) const;

 private:
  using AnswerRanks = std::function<std::vector<std::string>(const RunContext&, std::string_view args,
                                                             const std::vector<size_t>& rank_indices)>;
  std::map<std::string, AnswerRanks, std::less<>> answers_;
};

/// Every pass of this layer.
void AddRankPasses(RankPasses* passes);

/// Lets a process answer for the ranks that it holds. `default_thread_count`: for requests that leave it open. All
/// outlive the team.
void HandleMaps(Team* team, const RankPasses* passes, const model::HeldRuns* runs, uint32_t default_thread_count);

}  // namespace lockstep::analysis
