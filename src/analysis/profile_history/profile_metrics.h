#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/profile_history/history_store.h"
#include "analysis/profile_history/job_history.h"

namespace lockstep::profile_history {

/// A metric as docs/watch.md lists it.
struct ProfileMetricSpec {
  const char* name;
  const char* type;    ///< "counter", "gauge".
  const char* labels;  ///< Separated by commas.
  const char* help;
};
const std::vector<ProfileMetricSpec>& ProfileMetricSpecs();

/// How captures went since the program began.
struct CaptureCounts {
  uint64_t done = 0;
  uint64_t partial = 0;
  uint64_t failed = 0;
  uint64_t skipped_silent = 0;   ///< The job was silent.
  uint64_t skipped_busy = 0;     ///< Another capture of it was under way.
  uint64_t skipped_overrun = 0;  ///< This program's own one before was.
  uint64_t skipped() const { return skipped_silent + skipped_busy + skipped_overrun; }
};

struct ProfileFacts {
  std::string job_id;
  int64_t now_unix_ns = 0;  ///< Of the last look.
  CaptureCounts counts = {};
  uint64_t regression_count = 0;
  std::optional<int64_t> last_success_unix_ns = {};
  std::optional<int64_t> last_took_ns = {};
  KeptBytes kept = {};
  uint64_t budget_bytes = 0;
};

/// In Prometheus's text format. Figures of kernels and collectives are written only while they are a regression: their
/// names would make too many series.
std::string ProfileMetricsText(const ProfileFacts& facts, const JobHistory& history);

}  // namespace lockstep::profile_history
