#include "analysis/parallelism/inference_mark.h"

#include <algorithm>
#include <string>

#include "base/ascii.h"
#include "base/letter_case.h"

namespace lockstep::analysis {
namespace {

/// A name this long is none of these.
constexpr size_t kMaxMarkLength = 512;
/// Counts above it are not counts.
constexpr int64_t kMaxCount = 1'000'000'000'000;

/// Takes parts off the front of a name.
class NameReader {
 public:
  explicit NameReader(std::string_view rest) : rest_(rest) {}

  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  /// Moves behind the next `text`; false, and nothing moved, when there is none.
  bool SkipPast(std::string_view text) {
    const size_t at = rest_.find(text);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + text.size());
    return true;
  }
  std::optional<int64_t> TakeNumber() {
    int64_t number = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && IsDigit(rest_[digits]); ++digits) {
      number = number * 10 + (rest_[digits] - '0');
      if (number > kMaxCount) return std::nullopt;
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    return number;
  }

 private:
  std::string_view rest_;
};

/// A count of requests and their tokens.
struct Batch {
  int64_t requests = 0;
  std::optional<int64_t> tokens = {};
};

/// The phase of a batch with prompts and of one that generates; absent when both are empty.
std::optional<InferenceMark> FromBatches(InferenceEngine engine, const Batch& prompts, const Batch& generating) {
  if (prompts.requests == 0 && generating.requests == 0) return std::nullopt;
  InferenceMark mark;
  mark.engine = engine;
  mark.phase = generating.requests == 0 ? InferencePhase::kPrefill
               : prompts.requests == 0  ? InferencePhase::kDecode
                                        : InferencePhase::kMixed;
  mark.request_count = prompts.requests + generating.requests;
  if (prompts.tokens && generating.tokens) mark.token_count = *prompts.tokens + *generating.tokens;
  return mark;
}

/// "1(888)" or, with figures for a roofline behind, "1(888_788544)" and "1(sq888sk888...)".
std::optional<Batch> TakeVllmBatch(NameReader* name) {
  const auto requests = name->TakeNumber();
  if (!requests || !name->Take("(")) return std::nullopt;
  name->Take("sq");
  const auto tokens = name->TakeNumber();
  if (!tokens || !name->SkipPast(")")) return std::nullopt;
  return Batch{*requests, *tokens};
}

std::optional<InferenceMark> ParseVllm(std::string_view text) {
  NameReader name(text);
  name.Take("execute_");
  if (name.Take("context_")) {
    const auto prompts = TakeVllmBatch(&name);
    if (!prompts || !name.Take("_generation_")) return std::nullopt;
    const auto generating = TakeVllmBatch(&name);
    if (!generating) return std::nullopt;
    return FromBatches(InferenceEngine::kVllm, *prompts, *generating);
  }
  if (!name.Take("new_")) return std::nullopt;
  const auto fresh = name.TakeNumber();
  if (!fresh || !name.Take("_cached_")) return std::nullopt;
  const auto cached = name.TakeNumber();
  if (!cached || *fresh + *cached == 0) return std::nullopt;
  // Requests that were there before may still be reading their prompts, piece by piece.
  return InferenceMark{.phase = *cached == 0 ? InferencePhase::kPrefill : InferencePhase::kMixed,
                       .engine = InferenceEngine::kVllm,
                       .request_count = *fresh + *cached};
}

/// The number behind "<key>=", where the key is a word.
std::optional<int64_t> ValueOf(std::string_view name, std::string_view key) {
  for (size_t at = name.find(key); at != std::string_view::npos; at = name.find(key, at + 1)) {
    if (at > 0 && (IsLetter(name[at - 1]) || name[at - 1] == '_')) continue;
    NameReader value(name.substr(at + key.size()));
    if (value.Take("=")) return value.TakeNumber();
  }
  return std::nullopt;
}

std::optional<InferenceMark> ParseSglang(std::string_view name) {
  NameReader reader(name);
  if (!reader.Take("step[")) return std::nullopt;
  InferenceMark mark;
  mark.engine = InferenceEngine::kSglang;
  mark.request_count = ValueOf(name, "bs");
  if (reader.Take("EXTEND ") || reader.Take("SPLIT_PREFILL ")) {
    mark.phase = InferencePhase::kPrefill;
    mark.token_count = ValueOf(name, "toks");
  } else if (reader.Take("DECODE ")) {
    mark.phase = InferencePhase::kDecode;
    mark.token_count = mark.request_count;
  } else if (reader.Take("TARGET_VERIFY ")) {
    mark.phase = InferencePhase::kDecode;
    mark.speculative = true;
  } else if (reader.Take("MIXED ")) {
    mark.phase = InferencePhase::kMixed;
    const auto prompts = ValueOf(name, "c_sq");
    const auto generating = ValueOf(name, "g_sq");
    if (prompts && generating) mark.token_count = *prompts + *generating;
  } else {
    return std::nullopt;
  }
  if (!mark.request_count || *mark.request_count == 0) return std::nullopt;
  return mark;
}

std::optional<InferenceMark> ParseTensorRtLlm(std::string_view text) {
  NameReader name(text);
  name.Take("[Executor] ");
  if (name.Take("_forward_step")) {
    if (name.Take(" ") && !name.TakeNumber()) return std::nullopt;
    if (!name.Take(": ")) return std::nullopt;
  } else if (!name.Take("executeStep: ")) {
    return std::nullopt;
  }
  Batch prompts;
  Batch generating;
  const auto contexts = name.TakeNumber();
  if (!contexts || !name.Take(" ctx reqs, ")) return std::nullopt;
  auto generations = name.TakeNumber();
  if (generations && name.Take(" ctx tokens, ")) {
    prompts.tokens = generations;
    generations = name.TakeNumber();
  }
  if (!generations || !name.Take(" gen reqs")) return std::nullopt;
  prompts.requests = *contexts;
  generating.requests = *generations;
  if (*generations == 0) generating.tokens = 0;  // How many tokens a generating request guesses is not in the name.
  return FromBatches(InferenceEngine::kTensorRtLlm, prompts, generating);
}

/// Whether `lower` has `word` with no letter at either side.
bool HasWord(std::string_view lower, std::string_view word) {
  for (size_t at = lower.find(word); at != std::string_view::npos; at = lower.find(word, at + 1)) {
    const size_t after = at + word.size();
    if ((at == 0 || !IsLetter(lower[at - 1])) && (after == lower.size() || !IsLetter(lower[after]))) return true;
  }
  return false;
}

std::optional<int64_t> FirstValue(std::string_view name, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto value = ValueOf(name, key)) return value;
  }
  return std::nullopt;
}

std::optional<InferenceMark> ParsePlain(std::string_view name) {
  const std::string lower = Lowered(name);
  const bool prefill = HasWord(lower, "prefill");
  const bool decode = HasWord(lower, "decode");
  if (!prefill && !decode) return std::nullopt;
  InferenceMark mark;
  mark.phase = !decode ? InferencePhase::kPrefill : prefill ? InferencePhase::kMixed : InferencePhase::kDecode;
  mark.request_count = FirstValue(lower, {"bs", "batch_size", "batch", "reqs", "requests"});
  mark.token_count = FirstValue(lower, {"tok", "toks", "tokens", "num_tokens"});
  return mark;
}

}  // namespace

const char* InferencePhaseName(InferencePhase phase) {
  switch (phase) {
    case InferencePhase::kPrefill: return "prefill";
    case InferencePhase::kDecode: return "decode";
    case InferencePhase::kMixed: return "mixed";
  }
  return "mixed";
}

const char* InferenceEngineName(InferenceEngine engine) {
  switch (engine) {
    case InferenceEngine::kVllm: return "vllm";
    case InferenceEngine::kSglang: return "sglang";
    case InferenceEngine::kTensorRtLlm: return "tensorrt_llm";
    case InferenceEngine::kPlain: return "plain";
  }
  return "plain";
}

std::optional<InferenceMark> ParseInferenceMark(std::string_view name) {
  if (name.size() > kMaxMarkLength) return std::nullopt;
  if (name.starts_with("step[")) return ParseSglang(name);
  if (const auto mark = ParseVllm(name)) return mark;
  if (const auto mark = ParseTensorRtLlm(name)) return mark;
  return ParsePlain(name);
}

bool IsRequestMark(std::string_view name) {
  if (name.size() > kMaxMarkLength) return false;
  const std::string lower = Lowered(name);
  NameReader reader(lower);
  size_t length = 0;
  for (const std::string_view word : {"request", "req"}) {
    if (length == 0 && reader.Take(word)) length = word.size();
  }
  if (length == 0) return false;
  const size_t begin = std::min(lower.find_first_not_of(" _:#/-=", length), lower.size());
  if (begin == length) return false;
  const std::string_view id = std::string_view(lower).substr(begin);
  const bool has_digit = std::any_of(id.begin(), id.end(), IsDigit);
  return has_digit && std::all_of(id.begin(), id.end(), [](char c) {
           return IsDigit(c) || IsLetter(c) || c == '-' || c == '_' || c == '.' || c == '#';
         });
}

}  // namespace lockstep::analysis
