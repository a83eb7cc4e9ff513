#include "inside/log_write/log_sink.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nanoseconds.h"

namespace lockstep::logs {
namespace {

constexpr size_t kMostWaitingBytes = size_t{1} << 20;
constexpr int64_t kRetry_ns = kSecondNs;

}  // namespace

void LogSink::Append(const LineTime& time, Level level, std::string_view source, std::string_view text) {
  writer_.Append(time, level, source, text, &waiting_);
  if (waiting_.size() >= kMostWaitingBytes) Flush(time);
}

void LogSink::CountLost(uint64_t lines, const std::string& reason) {
  lost_count_ += lines;
  lost_why_ = reason;
  if (!has_told_) tell_(fmt::format("{}: lines are lost: {}; the job goes on", path(), reason));
  has_told_ = true;
}

void LogSink::Lose(std::string_view lines, const std::string& reason) {
  CountLost(static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n')), reason);
}

void LogSink::Flush(const LineTime& now) {
  if (waiting_.empty() && lost_count_ == 0) return;
  if (is_failing_ && now.monotonic_ns < next_try_ns_) {
    if (!waiting_.empty()) Lose(waiting_, lost_why_);
    waiting_.clear();
    return;
  }
  std::string said;
  if (lost_count_ > 0) {
    writer_.Append(now, Level::kWarning, "lockstep", fmt::format("{} lines were lost here: {}", lost_count_, lost_why_),
                   &said);
  }
  Status status;
  size_t written = 0;
  if (!said.empty()) {
    status = file_.Write(said);
    if (status) lost_count_ = 0;
  }
  if (status) status = file_.Write(waiting_, &written);
  is_failing_ = !status;
  if (!status) {
    next_try_ns_ = now.monotonic_ns + kRetry_ns;
    Lose(std::string_view(waiting_).substr(written), status.error().message);
  }
  waiting_.clear();
}

}  // namespace lockstep::logs
