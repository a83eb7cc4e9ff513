#include "analysis/frontier/rounds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace lockstep::frontier {

using model::Stage;
using model::StageSpan;
using model::StageTimes;
using model::StepStages;

namespace {

/// Goes through the steps of all members of a group at once.
class Cutter {
 public:
  Cutter(const std::vector<model::RankStages>& ranks, std::span<const size_t> members, uint16_t group)
      : members_(members), group_(group), open_(members.size()) {
    for (const size_t i : members) rounds_.ranks.push_back(ranks[i].rank);
  }

  /// One step, by rank of the job.
  void Take(const std::vector<const StepStages*>& steps) {
    std::vector<size_t> waits;
    waits.reserve(members_.size());
    for (const size_t i : members_) waits.push_back(CountWaits(*steps[i], false));
    const auto [least, most] = std::minmax_element(waits.begin(), waits.end());
    const int64_t number = steps.front()->number;
    std::vector<size_t> next(members_.size());
    const size_t meeting_count = *least == *most ? *least : std::min<size_t>(*least, 1);
    for (size_t meeting = 0; meeting < meeting_count; ++meeting) {
      const bool is_last = meeting + 1 == meeting_count;
      for (size_t i = 0; i < members_.size(); ++i) {
        PassWaits(*steps[members_[i]], is_last ? waits[i] : meeting + 1, i, &next[i]);
      }
      End(number, true);
    }
    for (size_t i = 0; i < members_.size(); ++i)
      Pass(*steps[members_[i]], steps[members_[i]]->spans.size(), i, &next[i]);
    if (meeting_count == 0) {
      const bool is_tied = *most == 0 && std::all_of(members_.begin(), members_.end(),
                                                     [&](size_t i) { return CountWaits(*steps[i], true) > 0; });
      rounds_.pairwise_count += is_tied ? 1 : 0;
      End(number, is_tied);
    }
    ++rounds_.step_count;
  }

  /// Steps are missing here: what is open ends without a meeting.
  void Break() {
    const auto has_time = [](const StageTimes& times) {
      return std::accumulate(times.begin(), times.end(), int64_t{}) > 0;
    };
    if (!rounds_.rounds.empty() && std::any_of(open_.begin(), open_.end(), has_time)) {
      End(rounds_.rounds.back().step, false);
    }
  }

  Rounds Take() {
    for (const StageTimes& times : open_) {
      rounds_.tail_ns = std::max(rounds_.tail_ns, std::accumulate(times.begin(), times.end(), int64_t{}));
    }
    return std::move(rounds_);
  }

 private:
  bool IsWait(const StageSpan& span, bool is_pairwise) const {
    return span.stage == Stage::kCommunication && span.waited_for.group == group_ &&
           span.waited_for.is_pairwise == is_pairwise;
  }
  size_t CountWaits(const StepStages& step, bool is_pairwise) const {
    return static_cast<size_t>(std::count_if(step.spans.begin(), step.spans.end(),
                                             [&](const StageSpan& span) { return IsWait(span, is_pairwise); }));
  }
  /// Spans of the step from `*next` up to `end`.
  void Pass(const StepStages& step, size_t end, size_t member, size_t* next) {
    for (; *next < end; ++*next) At(open_[member], step.spans[*next].stage) += step.spans[*next].duration_ns;
  }
  /// The same up to the end of the step's `count`-th wait.
  void PassWaits(const StepStages& step, size_t count, size_t member, size_t* next) {
    size_t seen = 0;
    size_t end = 0;
    while (seen < count) seen += IsWait(step.spans[end++], false) ? 1 : 0;
    Pass(step, end, member, next);
  }
  void End(int64_t number, bool meets) {
    rounds_.rounds.push_back({number, meets, open_});
    std::fill(open_.begin(), open_.end(), StageTimes{});
  }

  std::span<const size_t> members_;
  uint16_t group_;
  std::vector<StageTimes> open_;  // By member.
  Rounds rounds_;
};

}  // namespace

SharedSteps::SharedSteps(const std::vector<model::RankStages>& ranks, StepFilter counts)
    : ranks_(ranks), counts_(std::move(counts)) {
  std::map<int64_t, std::vector<const StepStages*>> by_number;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (const StepStages& step : ranks[i].steps) {
      auto& steps = by_number[step.number];
      steps.resize(ranks.size());
      steps[i] = &step;
    }
  }
  for (auto& [number, steps] : by_number) {
    if (std::find(steps.begin(), steps.end(), nullptr) != steps.end()) {
      ++left_out_count_;
      continue;
    }
    follows_gap_.push_back(!steps_.empty() && number - 1 > steps_.back().front()->number);
    steps_.push_back(std::move(steps));
  }
}

Rounds SharedSteps::CutRounds(std::span<const size_t> members, uint16_t group) const {
  if (members.empty()) return {};
  Cutter cutter(ranks_, members, group);
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (follows_gap_[i]) cutter.Break();
    cutter.Take(steps_[i]);
  }
  Rounds rounds = cutter.Take();
  rounds.left_out_count = left_out_count_;
  if (counts_) std::erase_if(rounds.rounds, [&](const Round& round) { return !counts_(round.step); });
  return rounds;
}

Rounds SharedSteps::CutRounds() const {
  std::vector<size_t> all(ranks_.size());
  std::iota(all.begin(), all.end(), size_t{});
  return CutRounds(all, 0);
}

}  // namespace lockstep::frontier
