#include "node/live/job_view.h"

#include <algorithm>
#include <tuple>

#include "base/text_scan.h"

namespace lockstep::live {
std::optional<uint64_t> RankNumber(const std::string& rank) { return WholeNumber<uint64_t>(rank); }

const char* RankStateName(RankState state) {
  switch (state) {
    case RankState::kSilent: return "silent";
    case RankState::kRuns: return "runs";
    case RankState::kWaits: return "waits";
    case RankState::kSlow: return "slow";
    case RankState::kStuck: return "stuck";
    case RankState::kUnheard: return "unheard";
  }
  return "";
}

const char* AlarmSeverityName(AlarmSeverity severity) {
  switch (severity) {
    case AlarmSeverity::kInfo: return "info";
    case AlarmSeverity::kWarning: return "warning";
    case AlarmSeverity::kCritical: return "critical";
  }
  return "";
}

size_t View::answered_count() const {
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const NodeView& node) { return !node.error; }));
}

bool RankComesBefore(const std::string& a, const std::string& b) {
  const auto a_number = RankNumber(a);
  const auto b_number = RankNumber(b);
  return std::tuple(!a_number, a_number.value_or(0), std::string_view(a)) <
         std::tuple(!b_number, b_number.value_or(0), std::string_view(b));
}

bool IsWorse(const RankView& a, const RankView& b) {
  const auto badness = [](const RankView& rank) {
    // Ranks that wait and ranks that run change places all the time: they are one kind here, told apart by their time.
    const RankState state = rank.state == RankState::kWaits ? RankState::kRuns : rank.state;
    // One step is what ranks of a healthy job are apart when they are looked at.
    const uint64_t behind = rank.behind_steps.value_or(0);
    return std::tuple(state, behind > 1 ? behind : 0, rank.own_ns.value_or(-1));
  };
  const auto a_badness = badness(a);
  const auto b_badness = badness(b);
  if (a_badness != b_badness) return a_badness > b_badness;
  return RankComesBefore(a.rank, b.rank);
}

}  // namespace lockstep::live
