#include "present/query/source.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "analysis/frontier/increments.h"
#include "analysis/frontier/rounds.h"
#include "analysis/kernel_kind.h"
#include "analysis/step_windows.h"

namespace lockstep::query {

Source::Source(const model::Run& run, const analysis::AnalysisResult& result, const analysis::AnalysisOptions& options,
               StopSign* stop)
    : run_(run), result_(result), options_(options), stop_(stop) {
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    const std::vector<model::Track>& tracks = run.ranks[r].tracks;
    for (size_t t = 0; t < tracks.size(); ++t) {
      tracks_.push_back({static_cast<uint32_t>(r), static_cast<uint32_t>(t), event_count_, &tracks[t]});
      event_count_ += tracks[t].events.size();
      if (tracks[t].lane == model::Lane::kDevice) device_event_count_ += tracks[t].events.size();
    }
  }
  depths_.resize(tracks_.size());
  block_ends_.resize(tracks_.size());
  steps_.resize(run.ranks.size());
}

std::span<const uint32_t> Source::DepthsOf(uint32_t track_id) const {
  std::vector<uint32_t>& depths = depths_[track_id];
  const model::EventColumns& events = tracks_[track_id].track->events;
  if (depths.size() == events.size()) return depths;
  depths.reserve(events.size());
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> open_ends;
  for (size_t i = 0; i < events.size(); ++i) {
    while (!open_ends.empty() && open_ends.top() <= events.start_ns[i]) open_ends.pop();
    depths.push_back(static_cast<uint32_t>(open_ends.size()));
    open_ends.push(events.end_ns(i));
  }
  return depths;
}

std::span<const int64_t> Source::BlockEndsOf(uint32_t track_id) const {
  std::vector<int64_t>& ends = block_ends_[track_id];
  const model::EventColumns& events = tracks_[track_id].track->events;
  if (!ends.empty() || events.empty()) return ends;
  for (size_t begin = 0; begin < events.size(); begin += kBlockSize) {
    int64_t largest_ns = events.end_ns(begin);
    for (size_t i = begin + 1; i < std::min(begin + kBlockSize, events.size()); ++i)
      largest_ns = std::max(largest_ns, events.end_ns(i));
    ends.push_back(largest_ns);
  }
  return ends;
}

const analysis::RunContext& Source::Shared() const {
  if (!shared_) {
    shared_ = std::make_unique<analysis::RunContext>();
    shared_->run = &run_;
    shared_->options = options_;
    shared_->is_communication = analysis::ClassifyCommunication(run_, options_.communication_kernels);
    shared_->is_communication.resize(run_.names.size());
  }
  return *shared_;
}

const Source::RankSteps& Source::StepsOf(size_t rank_index) const {
  std::unique_ptr<RankSteps>& steps = steps_[rank_index];
  if (!steps) {
    analysis::RankContext context = analysis::MakeRankContext(Shared(), rank_index);
    steps = std::make_unique<RankSteps>();
    steps->windows = analysis::StepWindows(context);
    steps->launches = std::move(context.launches);
  }
  return *steps;
}

std::optional<int64_t> Source::StepAt(size_t rank_index, int64_t trace_ns) const {
  const std::vector<model::Step>& windows = StepsOf(rank_index).windows;
  const auto after =
      std::upper_bound(windows.begin(), windows.end(), trace_ns,
                       [](int64_t instant_ns, const model::Step& step) { return instant_ns < step.start_ns; });
  if (after == windows.begin() || trace_ns >= (after - 1)->end_ns) return std::nullopt;
  return (after - 1)->number;
}

analysis::LaunchRef Source::LaunchOf(const TrackPlace& place, size_t row) const {
  const std::vector<analysis::LaunchRef>& launches = StepsOf(place.rank_index).launches[place.track_index];
  return row < launches.size() ? launches[row] : analysis::LaunchRef{};
}

analysis::KernelKind Source::KindOf(const model::EventColumns& events, size_t row) const {
  switch (events.category[row]) {
    case model::Category::kMemcpy: return analysis::KernelKind::kMemcpy;
    case model::Category::kMemset: return analysis::KernelKind::kMemset;
    default: break;
  }
  return Shared().is_communication[events.name[row].value] ? analysis::KernelKind::kCommunication
                                                           : analysis::KernelKind::kCompute;
}

const std::vector<report::MemberPlace>& Source::members() const {
  if (members_.empty()) members_ = report::MemberPlaces(result_);
  return members_;
}

const frontier::JobStages* Source::job_stages() const {
  if (!job_stages_ && run_.stages != nullptr) {
    job_stages_ = std::make_unique<frontier::JobStages>(frontier::AssessJob(*run_.stages, {}));
  }
  return job_stages_.get();
}

const std::vector<StagePlace>& Source::stage_places() const {
  const frontier::JobStages* job = job_stages();
  if (!stage_places_.empty() || job == nullptr) return stage_places_;
  for (uint32_t r = 0; r < job->ranks.size(); ++r) {
    const std::vector<model::StepStages>& steps = job->ranks[r].steps;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      int64_t start_ns = steps[s].start_ns;
      for (uint32_t i = 0; i < steps[s].spans.size(); ++i) {
        stage_places_.push_back({r, s, i, start_ns});
        start_ns += steps[s].spans[i].duration_ns;
      }
    }
  }
  return stage_places_;
}

const std::vector<FrontierPlace>& Source::frontier_places() const {
  const frontier::JobStages* job = job_stages();
  if (!frontier_places_.empty() || job == nullptr) return frontier_places_;
  const frontier::Rounds rounds = frontier::SharedSteps(job->ranks).CutRounds();
  for (size_t i = 0; i < rounds.rounds.size(); ++i) {
    const frontier::Round& round = rounds.rounds[i];
    const auto increments = frontier::Increments(round.ranks);
    for (const model::Stage stage : frontier::kOrder) {
      const frontier::Increment& each = increments[static_cast<size_t>(stage)];
      if (each.ns == 0) continue;
      frontier_places_.push_back({round.step, static_cast<int64_t>(i), stage, round.ends_in_meeting,
                                  job->ranks[each.leader_idx].rank, each.ns});
    }
  }
  return frontier_places_;
}

}  // namespace lockstep::query
