#include "analysis/frontier/suspicion.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "base/median.h"

namespace lockstep::frontier {
namespace {

using model::Stage;

// Where nobody is seen to wait, a rank stands out that takes so much of a step longer in a stage than the median rank.
constexpr double kStandsOut = 0.10;

/// Of all but `rank_idx` the one in the middle.
size_t PeerOf(size_t rank_idx, const std::vector<int64_t>& times_ns) {
  std::vector<size_t> others(times_ns.size());
  std::iota(others.begin(), others.end(), size_t{0});
  others.erase(others.begin() + static_cast<ptrdiff_t>(rank_idx));
  const auto middle = others.begin() + static_cast<ptrdiff_t>((others.size() - 1) / 2);
  std::nth_element(others.begin(), middle, others.end(),
                   [&](size_t a, size_t b) { return std::pair(times_ns[a], a) < std::pair(times_ns[b], b); });
  return *middle;
}

size_t SlowestOf(const std::vector<int64_t>& times_ns) {
  return static_cast<size_t>(std::max_element(times_ns.begin(), times_ns.end()) - times_ns.begin());
}

/// Waits that nobody sees make all ranks' steps equally long: who is awaited takes longer than the median rank in the
/// stage in which it is slow, and who waits takes no longer than that one in any.
Stage MostUneven(const Accounting& account, int64_t* excess_ns) {
  Stage most = Stage::kOther;
  for (const Stage stage : model::kStages) {
    if (stage == Stage::kCommunication) continue;
    std::vector<int64_t> times_ns = account.At(stage).rank_ns;
    const int64_t longest_ns = times_ns[SlowestOf(times_ns)];
    const int64_t beyond_ns = longest_ns - LowerMedian(&times_ns);
    if (beyond_ns <= *excess_ns) continue;
    *excess_ns = beyond_ns;
    most = stage;
  }
  return most;
}

}  // namespace

std::optional<Suspicion> Suspect(const JobStages& job) {
  const Verdict& verdict = job.verdict;
  const bool is_undecided = verdict.answer == Answer::kUndecided && verdict.doubt == Doubt::kNoMeeting;
  const bool is_straggler = verdict.answer == Answer::kStraggler && !verdict.is_occasional;
  if (!is_undecided && !is_straggler && verdict.answer != Answer::kImbalance) return std::nullopt;
  const Accounting& account = is_straggler && job.group_idx ? job.groups[*job.group_idx].account : job.account;
  if (account.ranks.size() < 2) return std::nullopt;
  Suspicion suspicion;
  int64_t excess_ns = 0;
  const Stage stage = is_undecided ? MostUneven(account, &excess_ns) : verdict.stage;
  const std::vector<int64_t>& times_ns = account.At(stage).rank_ns;
  size_t rank_idx = SlowestOf(times_ns);
  if (is_straggler) {
    const auto place = std::find(account.ranks.begin(), account.ranks.end(), job.account.ranks[verdict.rank_idx]);
    rank_idx = static_cast<size_t>(place - account.ranks.begin());
  }
  suspicion.rank = account.ranks[rank_idx];
  suspicion.peer = account.ranks[PeerOf(rank_idx, times_ns)];
  if (is_undecided) {
    // Of two ranks the one that waits is as far above the other, in another stage.
    suspicion.stands_out = account.ranks.size() > 2 &&
                           static_cast<double>(excess_ns) >= kStandsOut * static_cast<double>(account.total_ns);
  } else {
    suspicion.stage = stage;
  }
  return suspicion;
}

}  // namespace lockstep::frontier
