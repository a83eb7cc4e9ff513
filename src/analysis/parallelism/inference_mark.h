#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::analysis {

/// What a model that generates text does with its requests.
enum class InferencePhase : uint8_t {
  kPrefill,  ///< Reads prompts: tokens of contexts.
  kDecode,   ///< Generates: a token per request, or a few when speculating.
  kMixed,    ///< Both in one batch (chunked prefill).
};
const char* InferencePhaseName(InferencePhase phase);  ///< "prefill", "decode", "mixed".

/// The engine that named a range.
enum class InferenceEngine : uint8_t {
  kVllm,         ///< "execute_context_1(888)_generation_3(3)", "execute_new_1_cached_0".
  kSglang,       ///< "step[EXTEND bs=2 toks=4096]", "step[DECODE bs=16]".
  kTensorRtLlm,  ///< "[Executor] _forward_step 7: 1 ctx reqs, 3 gen reqs".
  kPlain,        ///< Any other with "prefill" or "decode" as a word: "prefill[bs=2 tok=16384]", "decode step 3".
};
const char* InferenceEngineName(InferenceEngine engine);  ///< "vllm", "sglang", "tensorrt_llm", "plain".

/// What the name of a range says of a phase. Source: docs/metrics.md#inference.
struct InferenceMark {
  InferencePhase phase = InferencePhase::kDecode;
  InferenceEngine engine = InferenceEngine::kPlain;
  std::optional<int64_t> request_count = {};
  std::optional<int64_t> token_count = {};  ///< Computed in the phase: of prompts and generated.
  /// A step that verifies guessed tokens: other decode ranges of the rank may be those of the guessing model.
  bool speculative = false;
};

/// Absent for names that mark no phase, and for steps without requests. Cost: O(length).
std::optional<InferenceMark> ParseInferenceMark(std::string_view name);

/// Whether a name marks one whole request: "request 17", "request_cmpl-4f", "req:3". The id has a digit.
bool IsRequestMark(std::string_view name);

}  // namespace lockstep::analysis
