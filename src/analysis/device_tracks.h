#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/activity.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// The streams of one device of a rank: indices into RankTrace::tracks.
struct DeviceTracks {
  DeviceOrdinal device;
  std::vector<size_t> tracks;
};

/// One entry per device with events, by ordinal.
std::vector<DeviceTracks> FindDeviceTracks(const model::RankTrace& trace);

/// Cursor of MergeByStart over the events of one device track that are in scope.
class DeviceCursor {
 public:
  DeviceCursor(const RankContext& context, size_t track)
      : events_(&context.trace().tracks[track].events), is_communication_(&context.shared->is_communication) {
    if (!context.in_scope.empty() && !context.in_scope[track].empty()) scope_ = context.in_scope[track].data();
    SkipOutOfScope();
  }

  bool done() const { return row_ >= events_->size(); }
  int64_t start() const { return events_->start_ns[row_]; }
  int64_t end() const { return events_->end_ns(row_); }
  Activity activity() const {
    if (events_->category[row_] != model::Category::kKernel) return Activity::kMemory;
    return (*is_communication_)[events_->name[row_].value] ? Activity::kCommunication : Activity::kCompute;
  }
  void Next() {
    ++row_;
    SkipOutOfScope();
  }

 private:
  void SkipOutOfScope() {
    if (scope_ == nullptr) return;
    while (row_ < events_->size() && scope_[row_] == 0) ++row_;
  }

  const model::EventColumns* events_;
  const std::vector<bool>* is_communication_;
  const uint8_t* scope_ = nullptr;
  size_t row_ = 0;
};

std::vector<DeviceCursor> MakeCursors(const RankContext& context, const DeviceTracks& device);

}  // namespace lockstep::analysis
