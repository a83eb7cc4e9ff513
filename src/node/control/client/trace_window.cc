#include "node/control/client/trace_window.h"

#include <algorithm>
#include <limits>

#include "base/ascii.h"
#include "base/text_scan.h"

namespace lockstep::control {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
// A fact is the needle and what stands within this after it.
constexpr size_t kReachBytes = 512;

enum Needle : size_t { kBase, kEvents, kStart, kEnd, kStep, kFirstStep, kStepCount, kNeedleCount };
constexpr std::array<std::string_view, kNeedleCount> kNeedles = {
    "\"baseTimeNanoseconds\"", "\"traceEvents\"",   "\"Iteration Start: PyTorch Profiler\"",
    "\"Record Window End\"",   "\"Optimizer.step#", "\"lockstep_first_step\"",
    "\"lockstep_step_count\""};

std::string_view AfterColon(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && (IsSpace(text[at]) || text[at] == ':')) ++at;
  return text.substr(at);
}

std::optional<int64_t> DigitsOf(std::string_view text) {
  return text.empty() || !IsDigit(text[0]) ? std::nullopt : LeadingNumber(text);
}

// The value of "ts" in what is left of an event, before it ends.
std::optional<int64_t> TimeIn(std::string_view rest) {
  rest = rest.substr(0, rest.find('}'));
  const size_t key = rest.find("\"ts\"");
  if (key == std::string_view::npos) return std::nullopt;
  return MicrosecondsAsNs(AfterColon(rest.substr(key + 4)));
}

std::optional<int64_t> Sum(std::optional<int64_t> base, std::optional<int64_t> time) {
  if (!time) return std::nullopt;
  int64_t sum = 0;
  // Before 2.4 there is no base: times are since 1970.
  if (__builtin_add_overflow(base.value_or(0), *time, &sum)) return std::nullopt;
  return sum;
}

}  // namespace

std::optional<int64_t> MicrosecondsAsNs(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1000 - 1;
  if (text.empty() || !IsDigit(text[0])) return std::nullopt;
  int64_t whole = 0;
  size_t at = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    if (whole > (kMost - 9) / 10) return std::nullopt;
    whole = whole * 10 + (text[at] - '0');
  }
  int64_t ns = whole * 1000;
  if (at < text.size() && text[at] == '.') {
    int64_t unit = 100;
    for (++at; at < text.size() && IsDigit(text[at]); ++at, unit /= 10) ns += (text[at] - '0') * unit;
  }
  return ns;
}

void TraceScanner::Feed(std::string_view bytes) {
  for (size_t i = 0; first_ == 0 && i < bytes.size(); ++i) {
    if (!IsSpace(bytes[i])) first_ = bytes[i];
  }
  for (size_t i = bytes.size(); i > 0; --i) {
    if (IsSpace(bytes[i - 1])) continue;
    last_ = bytes[i - 1];
    break;
  }
  facts_.bytes += bytes.size();
  buffer_ += bytes;
  if (buffer_.size() >= kBlockBytes) Scan(buffer_.size() - kReachBytes);
}

// Looks at the needles that begin below `limit`, and lets go of what lies before it.
void TraceScanner::Scan(size_t limit) {
  const std::string_view text = buffer_;
  for (size_t needle = 0; needle < kNeedleCount; ++needle) {
    const std::string_view word = kNeedles[needle];
    const std::string_view area = text.substr(0, std::min(text.size(), limit + word.size() - 1));
    for (size_t at = area.find(word); at != std::string_view::npos; at = area.find(word, at + word.size())) {
      Note(needle, text.substr(at + word.size(), kReachBytes));
    }
  }
  buffer_.erase(0, limit);
}

void TraceScanner::Note(size_t needle, std::string_view rest) {
  switch (needle) {
    case kBase: base_ns_ = DigitsOf(AfterColon(rest)); break;
    case kEvents: has_events_ = true; break;
    case kStart: start_ns_ = TimeIn(rest); break;
    case kEnd: end_ns_ = TimeIn(rest); break;
    case kStep: ++facts_.optimizer_step_count; break;
    case kStepCount: facts_.step_count = DigitsOf(AfterColon(rest)); break;
    case kFirstStep: facts_.first_step = DigitsOf(AfterColon(rest)); break;
    default: break;
  }
}

TraceFacts TraceScanner::Finish() {
  Scan(buffer_.size());
  facts_.whole = first_ == '{' && last_ == '}' && has_events_;
  facts_.start_unix_ns = Sum(base_ns_, start_ns_);
  facts_.end_unix_ns = Sum(base_ns_, end_ns_);
  return facts_;
}

}  // namespace lockstep::control
