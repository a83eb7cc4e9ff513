#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::control {

/// A Kineto trace's own metadata, read while its bytes pass. Times are the node's wall clock.
struct TraceFacts {
  uint64_t bytes = 0;
  /// Begins with "{", ends with "}" and has the list of events: a file that was cut has not. Whether every event is
  /// sound only a reader can say.
  bool whole = false;
  std::optional<int64_t> start_unix_ns;  ///< "Iteration Start: PyTorch Profiler": where the window begins.
  std::optional<int64_t> end_unix_ns;    ///< "Record Window End".
  uint32_t optimizer_step_count = 0;     ///< "Optimizer.step#..." annotations.
  std::optional<int64_t> first_step;     ///< "lockstep_first_step" of lockstep's own tracer: its number in the job.
  std::optional<int64_t>
      step_count;  ///< "lockstep_step_count" of the same: fewer than asked where none ended for long.
};

/// Scans a trace as it comes, in pieces of any size. Memory: 64 KiB and the largest piece. The bytes are from outside:
/// damaged ones give absent facts.
class TraceScanner {
 public:
  void Feed(std::string_view bytes);
  /// Ends the scan; the scanner is done for.
  TraceFacts Finish();

 private:
  void Scan(size_t limit);
  void Note(size_t needle, std::string_view rest);

  std::string buffer_;
  TraceFacts facts_;
  char first_ = 0;
  char last_ = 0;
  bool has_events_ = false;
  std::optional<int64_t> base_ns_;
  std::optional<int64_t> start_ns_;  ///< Relative to the base, which may come at the end of the file.
  std::optional<int64_t> end_ns_;
};

/// "4419348313913.417" microseconds as nanoseconds, exactly; nullopt where the text begins with no such number or with
/// one beyond 292 years.
std::optional<int64_t> MicrosecondsAsNs(std::string_view text);

}  // namespace lockstep::control
