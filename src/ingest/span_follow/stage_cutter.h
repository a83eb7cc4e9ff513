#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/span_follow/device_steps.h"
#include "ingest/span_follow/span_follower.h"
#include "model/stages/step_stages.h"

namespace lockstep::ingest::span_follow {

/// Cuts the steps of a process into the stages that its spans on the same thread name, or its device's times tell.
/// Bounded: 256 threads, 65,536 spans a thread and 262,144 in all wait for the end of their step. Not thread-safe.
class StageCutter {
 public:
  /// Steps that have ended, on the device too where its times are told, in the order of `followed`. `name_of` as
  /// SpanFollower::NameOf.
  std::vector<model::StepStages> Take(const Followed& followed,
                                      const std::function<const std::string&(uint32_t)>& name_of);

  /// As RankStages::groups: those that were seen. It only grows, up to model::kMostGroups.
  const std::vector<std::string>& groups() const { return groups_; }

  /// As model::RankStages.
  bool has_device_times() const { return device_.has_times(); }

 private:
  struct Kind {
    model::Stage stage = model::Stage::kOther;
    model::WaitedFor waited_for = {};
  };
  struct Part {
    int64_t start_ns;
    int64_t end_ns;
    Kind kind;
  };
  using Parts = std::vector<Part>;

  std::optional<Kind> KindOf(std::string_view span_name);
  void AddParts(const Followed& followed, const std::function<const std::string&(uint32_t)>& name_of);
  static model::StepStages Cut(const FollowedStep& step, Parts& parts, size_t* next);
  void DropUntil(int64_t end_ns);

  std::unordered_map<uint64_t, Parts> parts_;  ///< Of steps that have not ended, by thread.
  std::optional<int64_t> newest_end_ns_;       ///< Of any step.
  std::vector<std::string> groups_;
  DeviceSteps device_;
};

}  // namespace lockstep::ingest::span_follow
