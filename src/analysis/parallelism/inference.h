#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/parallelism/inference_mark.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// Middle and tail of some durations, interpolated as QuantileOfSorted does.
struct DurationQuantiles {
  int64_t median_ns = 0;
  int64_t p95_ns = 0;
  int64_t p99_ns = 0;
};

/// The phases of one kind of one rank, as one engine marked them. A phase lasts from the start of its range, or the end
/// of the phase before it on that thread where that is later, to the end of its range or of the device work launched in
/// it, whichever is later: so phases of one thread do not overlap, and their times add up.
/// Source: docs/metrics.md#inference.
struct InferenceRow {
  size_t rank_index = 0;
  InferenceEngine engine = InferenceEngine::kPlain;
  InferencePhase phase = InferencePhase::kDecode;
  uint64_t phase_count = 0;
  int64_t total_ns = 0;
  DurationQuantiles duration;
  std::optional<double> mean_request_count = {};  ///< Batch size; absent when a name does not say.
  std::optional<int64_t> token_count = {};        ///< Sum; absent when a name does not say.
  std::optional<double> tokens_per_s = {};        ///< token_count / total_ns.
  std::optional<int64_t> busy_ns = {};            ///< Of total_ns, a device works; absent without device events.
  std::optional<double> busy_ratio = {};
};

/// How requests went that a program recorded as such (model::RequestRecord).
struct RequestOutcomes {
  NameId kind;
  uint64_t failed_count = 0;
  uint64_t unfinished_count = 0;  ///< Were under way when the recording ended.
  int64_t output_count = 0;       ///< Tokens, or what the program counts; of all of them.
};

/// The requests that one rank marks by ranges, or of one kind that its program recorded.
struct InferenceRequestRow {
  size_t rank_index = 0;
  uint64_t request_count = 0;
  uint64_t latency_count = 0;      ///< Requests that latency and first_token are of: those that ended and did not fail.
  DurationQuantiles latency;       ///< Start of the range to its end, or that of the device work launched in it.
  uint64_t first_token_count = 0;  ///< Requests around a prefill, whose end tells when the first token was there.
  std::optional<DurationQuantiles> first_token = {};
  std::optional<RequestOutcomes> recorded = {};  ///< Absent: ranges mark them.
};

/// One rank's part; there is nothing across ranks.
struct InferencePartial {
  std::vector<InferenceRow> rows;  ///< By (engine, phase).
  std::optional<InferenceRequestRow> requests;
  std::vector<InferenceRequestRow> recorded_requests;  ///< By kind's name.
};

struct Inference {
  static constexpr std::string_view kPass = "inference";

  std::vector<InferenceRow> rows;             ///< By rank, engine, phase.
  std::vector<InferenceRequestRow> requests;  ///< By rank, those that ranges mark first, then by kind.
};

/// Reads annotations of CPU threads, launches and device events. Empty when nothing is marked. Cost: O(annotations),
/// and where phases are marked O(device events x log(marks)).
InferencePartial MapInference(const RankContext& context);

}  // namespace lockstep::analysis
