#include "ingest/span_follow/stage_cutter.h"

#include <algorithm>
#include <utility>

#include "model/stages/rank_stages.h"

namespace lockstep::ingest::span_follow {

using model::Stage;
using model::StageSpan;
using model::StepStages;
using model::WaitedFor;

namespace {

constexpr size_t kMostThreads = 256;
constexpr size_t kMostPartsAThread = 1 << 16;
constexpr size_t kMostPartsOfAll = 1 << 18;
constexpr size_t kMostShared = 64;  // Parts that reach from one step into the next, the innermost of them.

/// The spans of one step while time passes in it.
class StepBuilder {
 public:
  explicit StepBuilder(const FollowedStep& step)
      : at_ns_(step.start_ns),
        end_ns_(step.start_ns + step.duration_ns),
        built_{.number = step.number, .start_ns = step.start_ns, .duration_ns = step.duration_ns} {}

  /// `stage` lasts until then. `begins`: it is another wait for a collective than the one before, if that was one.
  void Pass(Stage stage, WaitedFor waited_for, int64_t until_ns, bool begins) {
    until_ns = std::clamp(until_ns, at_ns_, end_ns_);
    const int64_t passed_ns = until_ns - at_ns_;
    at_ns_ = until_ns;
    if (passed_ns == 0) return;
    const bool is_new_wait = begins && stage == Stage::kCommunication;
    if (built_.spans.empty() || built_.spans.back().stage != stage || is_new_wait) {
      built_.spans.push_back({stage, passed_ns, waited_for});
    } else {
      built_.spans.back().duration_ns += passed_ns;
    }
  }
  StepStages Take() {
    Pass(Stage::kOther, {}, end_ns_, false);
    return std::move(built_);
  }

 private:
  int64_t at_ns_;
  int64_t end_ns_;
  StepStages built_;
};

}  // namespace

std::vector<StepStages> StageCutter::Take(const Followed& followed,
                                          const std::function<const std::string&(uint32_t)>& name_of) {
  AddParts(followed, name_of);
  std::vector<StepStages> cut;
  std::unordered_map<uint64_t, size_t> taken;  // By thread, how many of its parts, which are sorted then.
  for (const FollowedStep& step : followed.steps) {
    Parts& parts = parts_[step.thread_id];
    const auto [place, is_first] = taken.try_emplace(step.thread_id, 0);
    if (is_first) {
      std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
        return std::pair(a.start_ns, -a.end_ns) < std::pair(b.start_ns, -b.end_ns);
      });
    }
    cut.push_back(Cut(step, parts, &place->second));
    const int64_t end_ns = step.start_ns + step.duration_ns;
    newest_end_ns_ = std::max(newest_end_ns_.value_or(end_ns), end_ns);
  }
  for (const auto& [thread, count] : taken) {
    Parts& parts = parts_.at(thread);
    parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(count));
  }
  // Threads that mark no steps, and parts between two steps.
  if (newest_end_ns_) DropUntil(*newest_end_ns_);
  const auto span_of = [this](std::string_view name, int64_t ns) -> std::optional<StageSpan> {
    const std::optional<Kind> kind = KindOf(name);
    if (!kind) return std::nullopt;
    return StageSpan(kind->stage, ns, kind->waited_for);
  };
  for (const FollowedCounter& counter : followed.counters)
    device_.TakeCounter(name_of(counter.name), counter.value, span_of);
  return device_.Take(std::move(cut));
}

std::optional<StageCutter::Kind> StageCutter::KindOf(std::string_view span_name) {
  const std::optional<Stage> stage = model::StageOf(span_name);
  if (!stage) return std::nullopt;
  if (*stage != Stage::kCommunication) return Kind{*stage};
  const model::WaitOf wait = model::ReadWait(span_name);
  WaitedFor waited_for{.is_pairwise = wait.is_pairwise};
  if (!wait.group.empty()) {
    auto place = std::find(groups_.begin(), groups_.end(), wait.group);
    const bool is_known = place != groups_.end();
    // Of one group too many nothing is known but that not all ranks meet.
    if (!is_known && groups_.size() == model::kMostGroups) return Kind{*stage, {.is_pairwise = true}};
    if (!is_known) place = groups_.insert(groups_.end(), std::string(wait.group));
    waited_for.group = static_cast<uint16_t>(place - groups_.begin() + 1);
  }
  return Kind{*stage, waited_for};
}

void StageCutter::AddParts(const Followed& followed, const std::function<const std::string&(uint32_t)>& name_of) {
  size_t part_count = 0;
  for (const auto& [thread, parts] : parts_) part_count += parts.size();
  std::unordered_map<uint32_t, std::optional<Kind>> kinds;
  for (const FollowedSpan& span : followed.spans) {
    const auto [known, is_new] = kinds.try_emplace(span.name);
    if (is_new) known->second = KindOf(name_of(span.name));
    if (!known->second) continue;
    if (!parts_.contains(span.thread_id) && parts_.size() == kMostThreads) continue;
    Parts& parts = parts_[span.thread_id];
    if (parts.size() < kMostPartsAThread && part_count < kMostPartsOfAll) {
      parts.push_back({span.start_ns, span.start_ns + span.duration_ns, *known->second});
      ++part_count;
    }
  }
}

/// `parts` by start; from `*next` on, which goes to the first one that the step after this may have, or share. A part's
/// time is its own: what begins in it and has a stage is that stage's.
StepStages StageCutter::Cut(const FollowedStep& step, Parts& parts, size_t* next) {
  struct Open {
    Part part;
    bool is_fresh = true;  // No time of it has passed.
  };
  StepBuilder builder(step);
  std::vector<Open> open;
  const auto pass = [&](int64_t until_ns) {
    if (open.empty()) return builder.Pass(Stage::kOther, {}, until_ns, false);
    const Kind& kind = open.back().part.kind;
    builder.Pass(kind.stage, kind.waited_for, until_ns, std::exchange(open.back().is_fresh, false));
  };
  const int64_t end_ns = step.start_ns + step.duration_ns;
  for (; *next < parts.size() && parts[*next].start_ns < end_ns; ++*next) {
    const Part& part = parts[*next];
    if (part.end_ns <= step.start_ns) continue;
    while (!open.empty() && open.back().part.end_ns <= part.start_ns) {
      pass(open.back().part.end_ns);
      open.pop_back();
    }
    pass(part.start_ns);
    open.push_back({part});
  }
  Parts goes_on;
  while (!open.empty()) {
    const Part& part = open.back().part;
    pass(part.end_ns);
    if (part.end_ns > end_ns && goes_on.size() < kMostShared) goes_on.push_back(part);
    open.pop_back();
  }
  // Where a part and its step meet, a clock that was read anew may show the part first.
  *next -= goes_on.size();
  std::copy(goes_on.rbegin(), goes_on.rend(), parts.begin() + static_cast<ptrdiff_t>(*next));
  return builder.Take();
}

void StageCutter::DropUntil(int64_t end_ns) {
  for (auto& [thread, parts] : parts_) {
    std::erase_if(parts, [&](const Part& part) { return part.end_ns <= end_ns; });
  }
  std::erase_if(parts_, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace lockstep::ingest::span_follow
