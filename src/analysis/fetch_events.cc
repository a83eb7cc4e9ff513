#include <algorithm>
#include <utility>

#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"

namespace lockstep::analysis {
namespace {

struct EventsPass {
  static constexpr std::string_view kName = "events";
  using Args = bool;            // Nothing to say.
  using Partial = std::string;  // A RankTrace, as bytes: those of one that is only lent can be had, itself not.
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& /*args*/) {
    return ToBytes(shared.run->ranks[rank_index]);
  }
};

// Ranks whose events are on the way at one time.
constexpr size_t kRanksAtOnce = 16;

}  // namespace

void AddFetchEventsPasses(RankPasses* passes) { passes->Add<EventsPass>(); }

void FetchEvents(model::Run* run) {
  if (run->holders == nullptr) return;
  RunContext shared;
  shared.run = run;
  for (size_t first = 0; first < run->ranks.size(); first += kRanksAtOnce) {
    std::vector<size_t> some;
    for (size_t i = first; i < std::min(run->ranks.size(), first + kRanksAtOnce); ++i) some.push_back(i);
    std::vector<std::string> answers = MapRanks<EventsPass>(shared, false, some);
    for (size_t k = 0; k < some.size(); ++k) {
      Result<model::RankTrace> held = FromBytes<model::RankTrace>(answers[k]);
      if (!held) throw TeamError(held.error().ToString());
      model::RankTrace& trace = run->ranks[some[k]];
      trace.SwapEvents(&*held);
      trace.elsewhere.reset();
    }
  }
  run->holders = nullptr;
}

}  // namespace lockstep::analysis
