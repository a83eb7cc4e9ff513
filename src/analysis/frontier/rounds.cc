#include "analysis/frontier/rounds.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::frontier {

using model::Stage;
using model::StageSpan;
using model::StageTimes;
using model::StepStages;

namespace {

size_t CountWaits(const StepStages& step) {
  return static_cast<size_t>(std::count_if(step.spans.begin(), step.spans.end(),
                                           [](const StageSpan& span) { return span.stage == Stage::kCommunication; }));
}

/// Goes through the steps of all ranks at once.
class Cutter {
 public:
  explicit Cutter(size_t rank_count) : open_(rank_count) {}

  /// One step, by rank.
  void Take(const std::vector<const StepStages*>& steps) {
    std::vector<size_t> waits;
    waits.reserve(steps.size());
    for (const StepStages* step : steps) waits.push_back(CountWaits(*step));
    const auto [least, most] = std::minmax_element(waits.begin(), waits.end());
    const int64_t number = steps.front()->number;
    std::vector<size_t> next(steps.size());
    const size_t meeting_count = *least == *most ? *least : std::min<size_t>(*least, 1);
    for (size_t meeting = 0; meeting < meeting_count; ++meeting) {
      const bool is_last = meeting + 1 == meeting_count;
      for (size_t i = 0; i < steps.size(); ++i) PassWaits(*steps[i], is_last ? waits[i] : meeting + 1, i, &next[i]);
      End(number, true);
    }
    for (size_t i = 0; i < steps.size(); ++i) Pass(*steps[i], steps[i]->spans.size(), i, &next[i]);
    if (meeting_count == 0) End(number, false);
    ++rounds_.step_count;
  }

  /// Steps are missing here: what is open ends without a meeting.
  void Break(int64_t number) {
    const auto has_time = [](const StageTimes& times) {
      return std::accumulate(times.begin(), times.end(), int64_t{}) > 0;
    };
    if (std::any_of(open_.begin(), open_.end(), has_time)) End(number, false);
  }

  Rounds Take() {
    for (const StageTimes& times : open_) {
      rounds_.tail_ns = std::max(rounds_.tail_ns, std::accumulate(times.begin(), times.end(), int64_t{}));
    }
    return std::move(rounds_);
  }

 private:
  /// Spans of the step from `*next` up to `end`.
  void Pass(const StepStages& step, size_t end, size_t rank_idx, size_t* next) {
    for (; *next < end; ++*next) At(open_[rank_idx], step.spans[*next].stage) += step.spans[*next].duration_ns;
  }
  /// The same up to the end of the step's `count`-th wait.
  void PassWaits(const StepStages& step, size_t count, size_t rank_idx, size_t* next) {
    size_t seen = 0;
    size_t end = 0;
    while (seen < count) seen += step.spans[end++].stage == Stage::kCommunication ? 1 : 0;
    Pass(step, end, rank_idx, next);
  }
  void End(int64_t number, bool meets) {
    rounds_.rounds.push_back({number, meets, open_});
    std::fill(open_.begin(), open_.end(), StageTimes{});
  }

  std::vector<StageTimes> open_;  // By rank.
  Rounds rounds_;
};

}  // namespace

Rounds CutRounds(const std::vector<model::RankStages>& ranks) {
  if (ranks.empty()) return {};
  std::map<int64_t, std::vector<const StepStages*>> by_number;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (const StepStages& step : ranks[i].steps) {
      auto& steps = by_number[step.number];
      steps.resize(ranks.size());
      steps[i] = &step;
    }
  }
  Cutter cutter(ranks.size());
  int64_t left_out_count = 0;
  int64_t before = by_number.empty() ? 0 : by_number.begin()->first;
  for (const auto& [number, steps] : by_number) {
    if (std::find(steps.begin(), steps.end(), nullptr) != steps.end()) {
      ++left_out_count;
      continue;
    }
    if (number - 1 > before) cutter.Break(before);
    cutter.Take(steps);
    before = number;
  }
  Rounds rounds = cutter.Take();
  rounds.left_out_count = left_out_count;
  return rounds;
}

}  // namespace lockstep::frontier
