#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/run.h"
#include "model/step.h"
#include "present/export/timeline/timeline.h"

namespace lockstep::timeline {

/// What is written of one rank's window.
struct RankSelection {
  using Stretches = std::vector<std::pair<int64_t, int64_t>>;  ///< Sorted, half open, ns.
  bool selected = false;                                       ///< The rank is, and in its window something may be.
  /// With steps: the stretches of time that count, on the rank's own clock, sorted; events that start in one count.
  std::optional<Stretches> host_ns = {};
  std::optional<Stretches> device_ns = {};
  std::vector<model::Step> steps = {};  ///< Markers.
};

/// The selection, resolved against a run.
class RunSelection {
 public:
  /// Errors: kInvalidArgument when a rank or step was named and there is none; the message says what there is.
  static Result<RunSelection> Resolve(const model::Run& run, const Options& options);

  const RankSelection& rank(size_t rank_index) const { return ranks_[rank_index]; }
  bool HasLane(model::Lane lane) const;
  /// Whether an event of this rank and lane that starts at `start_ns` (the rank's own clock) is written.
  bool Contains(size_t rank_index, model::Lane lane, int64_t start_ns) const;
  /// The same of what lies on no lane, such as a line of a log.
  bool ContainsTime(size_t rank_index, int64_t time_ns) const;
  bool flows() const { return selection_.flows; }

 private:
  explicit RunSelection(const model::Run& run, Selection selection) : run_(&run), selection_(std::move(selection)) {}
  bool InStretches(size_t rank_index, const std::optional<RankSelection::Stretches>& stretches, int64_t time_ns) const;

  const model::Run* run_;
  Selection selection_;
  int64_t from_ns_ = INT64_MIN;  ///< Aligned clock.
  int64_t to_ns_ = INT64_MAX;
  std::vector<RankSelection> ranks_;
};

}  // namespace lockstep::timeline
