#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/live/job_view.h"
#include "present/export/tensorboard/event_file.h"

namespace lockstep::export_live {

/// A running job in TensorBoard's event files, look by look: a folder for each rank and one for the job, a new event
/// file in each. What is in them: docs/export.md#a-running-job. What was not measured, and what a node that does not
/// answer said before, is not written. Not thread-safe.
class Board {
 public:
  /// `folder` is made when missing. Nothing is written beyond `limit_bytes` of all files together.
  Board(std::string folder, uint64_t limit_bytes) : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  /// Errors: kIo, kPermissionDenied.
  Status Take(const live::JobView& job, int64_t unix_ns);

  size_t run_count() const { return runs_.size(); }
  uint64_t scalar_count() const { return scalar_count_; }
  bool is_full() const { return byte_count_ >= limit_bytes_; }

 private:
  /// TensorBoard's word for a folder.
  struct Run {
    std::unique_ptr<tensorboard::EventLog> log;
    uint64_t counted = 0;              ///< Steps that the rank said last,
    uint64_t before = 0;               ///< and those of processes that were the rank before.
    std::optional<int64_t> last_step;  ///< That was written.

    /// Never goes back: a restarted rank continues the count.
    int64_t Number(uint64_t count);
  };

  Status Write(const std::string& name, const std::vector<tensorboard::ScalarValue>& values, int64_t step,
               double wall_time_s);
  Status TakeRank(const std::string& name, const live::RankView& rank, double wall_time_s);
  Status TakeJob(const live::JobView& job, double wall_time_s);

  const std::string folder_;
  const uint64_t limit_bytes_;
  std::map<std::string, Run> runs_;
  uint64_t byte_count_ = 0;
  uint64_t scalar_count_ = 0;
};

}  // namespace lockstep::export_live
