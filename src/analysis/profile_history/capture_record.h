#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/finding.h"
#include "base/result.h"

namespace lockstep::profile_history {

/// One number of a capture that is followed from capture to capture.
struct Figure {
  std::string name;  ///< "step", "exposed_communication", "kernel:NAME", "busbw:all_reduce 4096".
  std::string unit;  ///< "ns", "ratio", "bytes", "bytes_per_s".
  double value = 0;
  double whole = 0;                  ///< What it is part of, in the same unit: the step; 0: nothing.
  std::optional<int32_t> rank = {};  ///< Whose it is, where it is one rank's.
  /// More of it is worse, but for bandwidth.
  bool is_worse_when_less() const { return unit == "bytes_per_s"; }
};

/// "done": every rank is there; "partial"; "failed": there are no figures.
enum class Outcome : uint8_t { kDone, kPartial, kFailed };
const char* OutcomeName(Outcome outcome);
std::optional<Outcome> FindOutcome(const std::string& name);

/// The part of a capture that is kept permanently: docs/formats/profile-history.md.
struct CaptureRecord {
  std::string capture = {};  ///< Its folder's name below captures/: "20261122T010623Z".
  int64_t time_unix_ns = 0;
  std::string job_id = {};
  int32_t world_size = 0;
  Outcome outcome = Outcome::kDone;
  std::string reason = {};  ///< Of what failed or is partial.
  int64_t took_ns = 0;      ///< Capture and analysis.
  int64_t step_count = 0;
  std::vector<Figure> figures = {};
  std::vector<std::pair<int32_t, int64_t>> own_ns = {};  ///< By rank: its own time a step, waiting for others left out.
  std::vector<analysis::Finding> findings = {};          ///< Without evidence and advice: the report has them.
};

/// One line without its line break; texts are made valid UTF-8 and cut at the limits that ReadRecord has.
std::string WriteRecord(const CaptureRecord& record);

/// Reads a line. Errors: kCorruptData, kLimitExceeded; bounded whatever the line holds.
Result<CaptureRecord> ReadRecord(const std::string& line);

// Limits of a line.
constexpr size_t kMostLineBytes = size_t{4} << 20;
constexpr size_t kMostFigures = 256;
constexpr size_t kMostRanks = 65'536;
constexpr size_t kMostFindings = 100;
constexpr size_t kMostNameBytes = 200;
constexpr size_t kMostTextBytes = 2000;

}  // namespace lockstep::profile_history
