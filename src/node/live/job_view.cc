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

void SelectJob(const std::string& job_id, std::string* job, std::vector<int32_t>* pids) {
  constexpr std::string_view kPid = "pid-";
  const auto pid =
      job_id.starts_with(kPid) ? WholeNumber<int32_t>(std::string_view(job_id).substr(kPid.size())) : std::nullopt;
  if (pid && *pid > 0) {
    *pids = {*pid};
  } else {
    *job = job_id;
  }
}

std::string PhaseWords(const RankView& rank) {
  if (!rank.open_phase_ns) return "";
  switch (*rank.reading.open_phase) {
    case model::Stage::kCommunication: return "has waited for a collective";
    case model::Stage::kOther: return "has been between its phases";
    default: return std::string("has been in ") + StageName(*rank.reading.open_phase);
  }
}

bool IsWorse(const RankView& a, const RankView& b) {
  const auto badness = [](const RankView& rank) {
    // Ranks that wait and ranks that run change places all the time: they are one kind here, told apart by their time.
    const RankState state = rank.state == RankState::kWaits ? RankState::kRuns : rank.state;
    // One step is what ranks of a healthy job are apart when they are looked at.
    const uint64_t behind = rank.behind_steps.value_or(0);
    // Of a stuck job, those that wait are not what to look at first.
    const bool waits = state == RankState::kStuck && rank.waits_for_rank.has_value();
    return std::tuple(state, behind > 1 ? behind : 0, !waits, rank.own_ns.value_or(-1));
  };
  const auto a_badness = badness(a);
  const auto b_badness = badness(b);
  if (a_badness != b_badness) return a_badness > b_badness;
  return RankComesBefore(a.rank, b.rank);
}

}  // namespace lockstep::live
