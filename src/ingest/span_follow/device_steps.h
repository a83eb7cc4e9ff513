#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "model/stages/step_stages.h"

namespace lockstep::ingest::span_follow {

/// Puts the times that stages last on a rank's device in place of those on its host, step by step, as counters of the
/// rank tell them afterwards (docs/formats/span-trace.md#device-times). Bounded: 65,536 steps wait for theirs, and as
/// many times, of 1,048,576 parts, for their steps.
class DeviceSteps {
 public:
  /// The stage that a span of a name is in, and whom it waits for there; nullopt: in none.
  using SpanOf = std::function<std::optional<model::StageSpan>(std::string_view span_name, int64_t ns)>;

  /// The next counter of the rank; those of other names are passed over.
  void TakeCounter(std::string_view name, double value, const SpanOf& span_of);
  /// Steps that are complete, after the next ones `from_host`. Those before the device's times begin, or after they
  /// have ended, stay the host's; others of which the device has none are left out.
  std::vector<model::StepStages> Take(std::vector<model::StepStages> from_host);

  bool has_times() const { return newest_.has_value(); }  ///< Of any step.

 private:
  struct Timed {
    int64_t number = 0;
    uint64_t part_count = 0;
    int64_t duration_ns = 0;
    std::vector<model::StageSpan> spans = {};
  };
  void AddPart(const model::StageSpan& span);
  void EndStep(std::optional<int64_t> part_count);
  void PopTimed();

  std::optional<int64_t> first_;  ///< The device's times are told from this step on.
  std::optional<int64_t> newest_;
  std::optional<Timed> begun_;  ///< Its end is not told so far.
  std::deque<Timed> timed_;
  size_t span_count_ = 0;  ///< Of `timed_`.
  std::deque<model::StepStages> waiting_;
  int64_t end_ns_ = INT64_MIN;  ///< Of the last step that the device timed.
};

}  // namespace lockstep::ingest::span_follow
