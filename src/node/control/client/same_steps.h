#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/control/client/trace_window.h"

namespace lockstep::control {

/// One rank's trace of an iteration capture, and how to read its clock.
struct StepTrace {
  TraceFacts facts;
  int64_t clock_correction_ns = 0;  ///< Node minus caller: taken off the trace's times.
  int64_t clock_error_ns = 0;       ///< What remains unknown of it.
};

/// Whether all ranks traced the same steps. lockstep's own tracer says with which number a trace begins. Kineto reports
/// none: what tells then is that every rank began at a multiple of the round-up, and that ranks of one job pass a step
/// at nearly the same time.
struct StepAgreement {
  enum class Verdict : uint8_t {
    kSame,     ///< All began with the same number, or within half of what would be the next multiple.
    kApart,    ///< Some began with another, or a multiple later.
    kUnknown,  ///< The windows cannot be read, the clocks are too far apart, or there is one trace alone.
  };
  Verdict verdict = Verdict::kUnknown;
  std::optional<int64_t> step_ns;         ///< Median over traces of window length over iterations.
  std::optional<int64_t> spread_ns;       ///< Latest start minus earliest.
  std::optional<int64_t> first_start_ns;  ///< Earliest start, by the caller's clock.
  std::vector<size_t> without_steps;      ///< Traces of a length of time: their process had counted no step yet.
  std::string reason;                     ///< For a reader, when unknown.
};

/// True for a trace that was asked for by iterations and is of a length of time: PyTorch counted no steps when it was
/// asked, so that Kineto traced its default length, 500 ms, instead.
bool BecameDuration(const TraceFacts& facts, int32_t iterations);

StepAgreement CompareSteps(const std::vector<StepTrace>& traces, int32_t iterations, int32_t roundup);

const char* VerdictName(StepAgreement::Verdict verdict);  ///< "same", "apart", "unknown".

}  // namespace lockstep::control
