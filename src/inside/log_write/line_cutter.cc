#include "inside/log_write/line_cutter.h"

#include "base/nanoseconds.h"

namespace lockstep::logs {
namespace {

constexpr size_t kMostLineBytes = size_t{64} << 10;
constexpr int64_t kQuiet_ns = kSecondNs;
constexpr int64_t kStanding_ns = 10'000'000'000;

/// What is seen of a line on a terminal, roughly: a shorter text over a longer one leaves none of it.
std::string_view Visible(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t back = line.rfind('\r');
  return back == std::string_view::npos ? line : line.substr(back + 1);
}

}  // namespace

void LineCutter::Add(std::string_view bytes, int64_t monotonic_ns, const Take& take) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (end != std::string_view::npos && unfinished_.empty() && part.size() <= kMostLineBytes) {
      TakeWhole(part, take);
      continue;
    }
    if (unfinished_.empty()) first_ns_ = monotonic_ns;
    last_ns_ = monotonic_ns;
    unfinished_.append(part);
    if (unfinished_.size() > kMostLineBytes) {
      // A progress bar that never ends its line is not as long as it looks.
      const size_t back = unfinished_.find_last_not_of('\r');
      const size_t seen = back == std::string::npos ? std::string::npos : unfinished_.rfind('\r', back);
      if (seen != std::string::npos) unfinished_.erase(0, seen + 1);
    }
    for (; unfinished_.size() > kMostLineBytes; unfinished_.erase(0, kMostLineBytes)) {
      take(std::string_view(unfinished_).substr(0, kMostLineBytes));
      is_begun_ = true;
    }
    if (end == std::string_view::npos) continue;
    TakeWhole(unfinished_, take);
    unfinished_.clear();
  }
}

void LineCutter::TakeWhole(std::string_view line, const Take& take) {
  const std::string_view visible = Visible(line);
  if (!visible.empty() || !is_begun_) take(visible);
  is_begun_ = false;
}

void LineCutter::Tick(int64_t monotonic_ns, const Take& take) {
  if (unfinished_.empty()) return;
  if (monotonic_ns - last_ns_ >= kQuiet_ns || monotonic_ns - first_ns_ >= kStanding_ns) Flush(take);
}

void LineCutter::Flush(const Take& take) {
  const std::string_view line = Visible(unfinished_);
  if (!line.empty()) {
    take(line);
    is_begun_ = true;
  }
  unfinished_.clear();
}

}  // namespace lockstep::logs
