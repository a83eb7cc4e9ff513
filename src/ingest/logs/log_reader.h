#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/bytes/byte_source.h"
#include "ingest/logs/log_files.h"
#include "ingest/logs/log_filter.h"
#include "model/log_line/line.h"

namespace lockstep::logs {

/// A line of one rank. The views live until the reader it comes from goes on.
struct LogLine {
  int64_t time_unix_ns = 0;  ///< Corrected; not below that of the line before.
  bool has_time = false;     ///< It, or a line above it in the same log, says a time.
  Level level = Level::kInfo;
  std::optional<int32_t> rank = {};
  std::string_view host = {};    ///< Empty where the line has no head.
  std::string_view source = {};  ///< "out", "err", who logged it; empty where the line has no head.
  std::string_view text = {};    ///< Without head and launchers' prefixes; JSON's may hold line ends.
};

/// What was seen while reading, for the reader of the output to know.
struct LogCounts {
  uint64_t line_count = 0;  ///< All, wanted or not.
  uint64_t wanted_count = 0;
  uint64_t byte_count = 0;               ///< Decompressed.
  uint64_t untimed_count = 0;            ///< Lines before the first that says a time.
  std::vector<std::string> problems;     ///< Files that could not be read whole, one sentence each.
  std::vector<std::string> clock_steps;  ///< Clocks that were set meanwhile.
};

/// Reads the log of one process from its oldest file to the one that is written. Lines without a head of ours are taken
/// as programs and launchers write them: time, level and rank from the text, else the line above's, else the file's
/// name. No allocation for a line. Not thread-safe.
class LogReader {
 public:
  /// What a rank's wall clock reads too much, in ns.
  using ClockOffset = std::function<int64_t(std::optional<int32_t> rank)>;

  LogReader(LogFamily family, const LogFilter& filter, ClockOffset offset);

  /// The next line that is wanted; false: there is none now. Once `follows`, what is appended later comes with later
  /// calls, also after the log has been rotated; a line without its end is waited for.
  bool Next(LogLine* line, bool follows);

  const LogCounts& counts() const { return counts_; }
  const std::string& host() const { return host_; }  ///< Of the last line that says one.
  const std::string& path() const { return family_.path; }
  std::optional<int32_t> rank() const { return last_rank_ ? last_rank_ : family_.rank; }

 private:
  bool NextBytes(std::string_view* line, bool follows);
  bool Refill(bool follows);
  bool OpenNext();
  Result<std::unique_ptr<ingest::ByteSource>> OpenAsItIsNow(LogFile* file) const;
  bool TakeUpRotated();
  bool Understand(std::string_view bytes, LogLine* line);
  void ReadPlain(std::string_view bytes, LogLine* line);
  void SetTime(int64_t time_ns, LogLine* line);
  void LookAtClock(const LineHead& head);
  void Problem(const std::string& path, const Error& error);

  LogFamily family_;
  const LogFilter& filter_;
  ClockOffset offset_;
  size_t next_file_ = 0;
  std::unique_ptr<ingest::ByteSource> source_;
  LogFile current_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool is_at_file_end_ = true;
  bool has_weak_ranks_ = false;  ///< srun --label in this file.
  bool is_first_fill_ = false;

  std::string storage_;
  std::string colourless_;
  LevelReader levels_;
  std::optional<int64_t> last_time_ns_;
  std::optional<int64_t> clock_difference_ns_;
  std::optional<int32_t> last_rank_;
  std::string host_;
  LogCounts counts_;
};

}  // namespace lockstep::logs
