#include "node/control/client/same_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/median.h"
#include "base/nanoseconds.h"

namespace lockstep::control {
namespace {

// Kineto's length of a window where the request names none, and how late its thread usually is to end it.
constexpr int64_t kDefaultLength = 500 * kMillisecondNs;
constexpr int64_t kLateEnd = 60 * kMillisecondNs;
// On overloaded processors it also begins late, which shortens the window, or ends far later.
constexpr int64_t kLeastLength = kDefaultLength / 4;
constexpr int64_t kMostLength = 4 * kDefaultLength;

}  // namespace

const char* VerdictName(StepAgreement::Verdict verdict) {
  switch (verdict) {
    case StepAgreement::Verdict::kSame: return "same";
    case StepAgreement::Verdict::kApart: return "apart";
    case StepAgreement::Verdict::kUnknown: return "unknown";
  }
  return "unknown";
}

bool BecameDuration(const TraceFacts& facts, int32_t iterations) {
  if (facts.first_step || !facts.start_unix_ns || !facts.end_unix_ns || iterations <= 0) return false;
  const int64_t length = *facts.end_unix_ns - *facts.start_unix_ns;
  const auto count = static_cast<int64_t>(facts.optimizer_step_count);
  // Nearly always it is the optimizers' steps that count.
  if (count == 0) return length >= kLeastLength && length <= kMostLength;
  // A window of steps that lasts 500 ms by chance holds each optimizer's step once an iteration.
  return count % iterations != 0 && length >= kDefaultLength - kMillisecondNs && length <= kDefaultLength + kLateEnd;
}

StepAgreement CompareSteps(const std::vector<StepTrace>& traces, int32_t iterations, int32_t roundup) {
  StepAgreement result;
  std::vector<int64_t> starts;
  std::vector<int64_t> steps;
  int64_t clock_error = 0;
  bool unread = false;
  for (size_t i = 0; i < traces.size(); ++i) {
    const TraceFacts& facts = traces[i].facts;
    if (!facts.start_unix_ns || !facts.end_unix_ns || *facts.end_unix_ns <= *facts.start_unix_ns) {
      unread = true;
      continue;
    }
    if (BecameDuration(facts, iterations)) {
      result.without_steps.push_back(i);
      continue;
    }
    starts.push_back(*facts.start_unix_ns - traces[i].clock_correction_ns);
    steps.push_back((*facts.end_unix_ns - *facts.start_unix_ns) / std::max(iterations, 1));
    clock_error = std::max(clock_error, traces[i].clock_error_ns);
  }
  if (starts.empty()) {
    result.reason = "no trace contains where its window begins and ends";
    return result;
  }
  const auto [first, last] = std::minmax_element(starts.begin(), starts.end());
  result.step_ns = UpperMedian(&steps);
  result.first_start_ns = *first;
  if (starts.size() == 1) {
    result.reason = "there is only one trace of steps";
    return result;
  }
  result.spread_ns = *last - *first;
  if (std::all_of(traces.begin(), traces.end(), [](const StepTrace& trace) { return trace.facts.first_step; })) {
    const bool same = std::all_of(traces.begin(), traces.end(), [&](const StepTrace& trace) {
      return trace.facts.first_step == traces.front().facts.first_step;
    });
    result.verdict = same ? StepAgreement::Verdict::kSame : StepAgreement::Verdict::kApart;
    const auto cut = std::find_if(traces.begin(), traces.end(), [&](const StepTrace& trace) {
      return trace.facts.step_count.value_or(iterations) < iterations;
    });
    if (cut != traces.end()) {
      result.verdict = StepAgreement::Verdict::kApart;
      result.reason =
          fmt::format("a trace has {} of {} steps: no step ended for a long time", *cut->facts.step_count, iterations);
    }
    return result;
  }
  const int64_t limit = *result.step_ns * std::max(roundup, 1) / 2;
  if (*result.spread_ns >= limit + 2 * clock_error) {
    result.verdict = StepAgreement::Verdict::kApart;
  } else if (*result.spread_ns + 2 * clock_error >= limit) {
    result.reason = fmt::format("the nodes' clocks are known to {:.1f} ms only, and a step takes {:.1f} ms",
                                static_cast<double>(clock_error) / 1e6, static_cast<double>(*result.step_ns) / 1e6);
  } else if (unread) {
    result.reason = "a trace does not contain where its window begins and ends";
  } else {
    result.verdict = StepAgreement::Verdict::kSame;
  }
  return result;
}

}  // namespace lockstep::control
