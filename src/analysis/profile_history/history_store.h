#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/profile_history/capture_record.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::profile_history {

/// What captures take on disk.
struct KeptBytes {
  uint64_t traces = 0;
  uint64_t reports = 0;
  uint64_t history = 0;
  uint64_t total() const { return traces + reports + history; }
};

/// The folder that a job's captures are kept in: profile.jsonl with a line each, and captures/NAME/ with the traces,
/// report.html and comparison.html of those that there is still room for (docs/formats/profile-history.md). One
/// program at a time has it. One thread.
class HistoryStore {
 public:
  /// Makes it if need be, and reads what is there: lines that are not records are counted and left alone. Errors:
  /// kFailedPrecondition (another program keeps captures there), kIo, kPermissionDenied.
  static Result<HistoryStore> Open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const std::vector<CaptureRecord>& past() const { return past_; }  ///< As it was when this was opened, oldest first.
  size_t skipped_line_count() const { return skipped_line_count_; }

  /// A new name for a capture that begins now, with its folder for traces made.
  Result<std::string> Begin(int64_t unix_ns);
  std::string TraceFolder(const std::string& capture) const;
  std::string ReportFile(const std::string& capture) const;
  std::string ComparisonFile(const std::string& capture) const;
  bool HasTraces(const std::string& capture) const;

  /// Adds its line, on disk when this returns.
  Status Append(const CaptureRecord& record);
  /// Removes what does not fit: traces, oldest capture first, then reports likewise. Lines stay. Returns what is left.
  KeptBytes KeepWithin(uint64_t budget_bytes);

 private:
  HistoryStore() = default;
  Status ReadPast();
  std::vector<std::string> Captures() const;

  std::string folder_;
  UniqueFd lock_;
  UniqueFd file_;
  bool ends_inside_line_ = false;  ///< A program was killed while it wrote.
  std::vector<CaptureRecord> past_;
  size_t skipped_line_count_ = 0;
};

}  // namespace lockstep::profile_history
