#include "model/team_holders.h"

#include <algorithm>
#include <exception>

namespace lockstep::model {
namespace {

constexpr const char* kReleaseQuestion = "release";

class TeamHolders final : public EventHolders {
 public:
  TeamHolders(Team* team, uint32_t run) : team_(*team), run_(run) {}
  ~TeamHolders() override {
    try {
      team_.Ask<bool>(kReleaseQuestion, run_);
    } catch (const std::exception&) {  // Memory that stays in use is all that is lost.
    }
  }

  std::vector<std::string> Map(std::string_view pass, const std::string& context, const std::string& args,
                               const std::vector<size_t>& rank_indices) override {
    const MapRequest request{run_, std::string(pass), context, args, rank_indices};
    std::map<size_t, std::string> by_rank;
    for (MapAnswer& answer : team_.Ask<MapAnswer>(kMapQuestion, request)) {
      for (auto& [rank_index, bytes] : answer) by_rank[rank_index] = std::move(bytes);
    }
    std::vector<std::string> ordered;
    ordered.reserve(rank_indices.size());
    for (const size_t rank_index : rank_indices) {
      const auto found = by_rank.find(rank_index);
      if (found == by_rank.end()) throw TeamError("no process holds the events of a rank: this is a fault of lockstep");
      ordered.push_back(std::move(found->second));
    }
    return ordered;
  }

 private:
  Team& team_;
  const uint32_t run_;
};

}  // namespace

std::unique_ptr<EventHolders> MakeTeamHolders(Team* team, uint32_t run) {
  return std::make_unique<TeamHolders>(team, run);
}

void HandleRelease(Team* team, HeldRuns* runs) {
  team->Handle<bool, uint32_t>(kReleaseQuestion, [runs](const uint32_t& run) { return runs->erase(run) > 0; });
}

}  // namespace lockstep::model
