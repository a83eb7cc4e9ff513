#pragma once

#include <prometheus/metric_family.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::agent {

/// What one look has found.
struct Reading {
  bool is_present = true;  ///< False: the node has nothing of the kind (no GPU, no InfiniBand).
  std::vector<prometheus::MetricFamily> families = {};  ///< What was not measured is absent.
  bool is_whole = true;                                 ///< False: the look failed, and this is what there is to say.
  std::string trouble = {};                             ///< Why it failed, for the log; empty: nothing to log.
};

/// One source of metrics, with a thread of its own: a sensor that hangs delays no other.
class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual const char* name() const = 0;  ///< Label "collector": "spans", "nvml".
  virtual std::chrono::milliseconds period() const { return std::chrono::seconds(1); }
  /// A look that takes longer is said to have failed, and what was there before is not told any more.
  virtual std::chrono::milliseconds deadline() const { return std::chrono::seconds(5); }
  /// Looks. May take its time; called by one thread.
  virtual Result<Reading> Look() = 0;
  /// Ends a look under way, as far as that can be done. From another thread, when no further look will be wanted.
  virtual void Stop() {}
};

}  // namespace lockstep::agent
