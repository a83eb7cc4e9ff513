#include "analysis/rank_context.h"

#include <algorithm>
#include <utility>

namespace lockstep::analysis {
namespace {

using model::Lane;
using model::Track;

/// Finds the runtime or driver call of a correlation id. Of several calls with one id the earliest counts (a driver
/// call inside the runtime call that makes it). Calls are numbered through all runtime tracks, from 1.
class LaunchIndex {
 public:
  explicit LaunchIndex(const model::RankTrace& trace) : trace_(trace) {
    uint32_t low = UINT32_MAX;
    uint32_t high = 0;
    size_t count = 0;
    uint32_t next_number = 1;
    for (size_t t = 0; t < trace.tracks.size(); ++t) {
      if (trace.tracks[t].lane != Lane::kRuntime) continue;
      const Column<uint32_t>& correlation = trace.tracks[t].events.correlation;
      if (correlation.empty()) continue;
      parts_.push_back({next_number, static_cast<uint32_t>(t)});
      next_number += static_cast<uint32_t>(correlation.size());
      for (const uint32_t id : correlation) {
        if (id == 0) continue;
        low = std::min(low, id);
        high = std::max(high, id);
        ++count;
      }
    }
    if (count == 0) return;
    // Ids count up within a window, so an array indexed by them is small; where they are scattered, sort instead.
    low_ = low;
    const size_t range = static_cast<size_t>(high - low) + 1;
    if (range <= 8 * count + 4096) {
      dense_.resize(range);
      ForEachCall([&](uint32_t correlation, uint32_t number) {
        uint32_t& slot = dense_[correlation - low_];
        if (slot == 0 || Before(number, slot)) slot = number;
      });
      return;
    }
    sorted_.reserve(count);
    ForEachCall([&](uint32_t correlation, uint32_t number) { sorted_.emplace_back(correlation, number); });
    std::stable_sort(sorted_.begin(), sorted_.end(), [this](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return Before(a.second, b.second);
    });
  }

  LaunchRef Find(uint32_t correlation) const {
    if (correlation == 0) return {};
    if (!dense_.empty()) {
      if (correlation < low_ || correlation - low_ >= dense_.size()) return {};
      return Call(dense_[correlation - low_]);
    }
    const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), correlation,
                                        [](const auto& entry, uint32_t id) { return entry.first < id; });
    return found != sorted_.end() && found->first == correlation ? Call(found->second) : LaunchRef{};
  }

 private:
  /// A runtime track and the number of its first call.
  struct Part {
    uint32_t first_number;
    uint32_t track;
  };

  template <typename Visit>
  void ForEachCall(Visit visit) const {
    for (const Part& part : parts_) {
      const Column<uint32_t>& correlation = trace_.tracks[part.track].events.correlation;
      for (size_t row = 0; row < correlation.size(); ++row) {
        if (correlation[row] != 0) visit(correlation[row], part.first_number + static_cast<uint32_t>(row));
      }
    }
  }
  LaunchRef Call(uint32_t number) const {
    if (number == 0) return {};
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), number,
                                        [](uint32_t value, const Part& part) { return value < part.first_number; });
    const Part& part = *(after - 1);
    return {part.track, number - part.first_number};
  }
  /// Strictly earlier; for equal starts the first in track order stays.
  bool Before(uint32_t a, uint32_t b) const { return StartOf(Call(a)) < StartOf(Call(b)); }
  int64_t StartOf(LaunchRef call) const { return trace_.tracks[call.track].events.start_ns[call.row]; }

  const model::RankTrace& trace_;
  std::vector<Part> parts_;
  uint32_t low_ = 0;
  std::vector<uint32_t> dense_;                        // by id - low_; 0 = no call
  std::vector<std::pair<uint32_t, uint32_t>> sorted_;  // (id, call number)
};

void FindLaunches(RankContext* context) {
  const model::RankTrace& trace = context->trace();
  context->launches.resize(trace.tracks.size());
  if (!trace.HasDeviceEvents()) return;
  const LaunchIndex index(trace);
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    const Track& track = trace.tracks[t];
    if (track.lane != Lane::kDevice) continue;
    std::vector<LaunchRef>& launches = context->launches[t];
    launches.resize(track.events.size());
    const Column<uint32_t>& correlation = track.events.correlation;
    for (size_t row = 0; row < correlation.size(); ++row) launches[row] = index.Find(correlation[row]);
  }
}

/// Holistic Trace Analysis' scope: CPU events that start before the last step, device events whose launch call does.
void DropLastStep(RankContext* context) {
  const model::RankTrace& trace = context->trace();
  const int64_t cutoff_ns = context->steps.back().start_ns;
  context->cpu_cutoff_ns = cutoff_ns;
  context->in_scope.resize(trace.tracks.size());
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    const std::vector<LaunchRef>& launches = context->launches[t];
    std::vector<uint8_t>& in_scope = context->in_scope[t];
    in_scope.resize(launches.size());
    for (size_t row = 0; row < launches.size(); ++row) {
      const LaunchRef launch = launches[row];
      in_scope[row] = launch.found() && trace.tracks[launch.track].events.start_ns[launch.row] < cutoff_ns ? 1 : 0;
    }
  }
}

}  // namespace

RankContext MakeRankContext(const RunContext& shared, size_t rank_index) {
  RankContext context;
  context.shared = &shared;
  context.rank_index = rank_index;
  context.steps = model::FindSteps(context.trace(), context.names(), shared.options.step_name);
  FindLaunches(&context);
  if (shared.options.drop_last_step && context.steps.size() >= 2) DropLastStep(&context);
  return context;
}

}  // namespace lockstep::analysis
