#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "inside/log_write/rotating_file.h"
#include "model/log_line/line.h"

namespace lockstep::logs {

/// A rank's file that never fails its user: where it cannot be written (a full disk) lines are counted, it is tried
/// again each second, and once it works the file says how many are missing. Not thread-safe.
class LogSink {
 public:
  /// `tell` is called once, with why lines are being lost.
  LogSink(RotatingFile file, LineWriter writer, std::function<void(const std::string&)> tell)
      : file_(std::move(file)), writer_(std::move(writer)), tell_(std::move(tell)) {}

  /// Puts a line by; Flush writes it.
  void Append(const LineTime& time, Level level, std::string_view source, std::string_view text);
  void Flush(const LineTime& now);
  /// Lines that were lost before they came here.
  void CountLost(uint64_t lines, const std::string& reason);

  const std::string& path() const { return file_.path(); }

 private:
  void Lose(std::string_view lines, const std::string& reason);

  RotatingFile file_;
  LineWriter writer_;
  std::function<void(const std::string&)> tell_;
  std::string waiting_;
  uint64_t lost_count_ = 0;  ///< Not yet said in the file.
  std::string lost_why_;
  bool has_told_ = false;
  bool is_failing_ = false;
  int64_t next_try_ns_ = 0;  ///< Monotonic.
};

}  // namespace lockstep::logs
