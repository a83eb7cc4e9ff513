#include "analysis/parallelism/group_kind.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"

namespace lockstep::analysis {
namespace {

using Words = std::vector<std::string>;

/// "EXPERT_MODEL_PARALLEL_GROUP", "mesh_dp-shard", "tp:0" -> lower-case words of letters.
Words SplitWords(std::string_view text) {
  Words words;
  std::string word;
  for (const char c : text) {
    if (IsLetter(c)) {
      word.push_back(Lower(c));
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

bool Has(const Words& words, std::string_view wanted) {
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

template <size_t kCount>
bool HasAny(const Words& words, const std::array<std::string_view, kCount>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](std::string_view word) { return Has(words, word); });
}

constexpr std::array<std::string_view, 9> kDataWords = {"data", "dp",        "ddp",   "fsdp",   "hsdp",
                                                        "zero", "replicate", "shard", "replica"};
constexpr std::array<std::string_view, 4> kTensorWords = {"tensor", "tp", "mp", "tensorparallel"};
constexpr std::array<std::string_view, 4> kPipelineWords = {"pipeline", "pp", "pipe", "stage"};
constexpr std::array<std::string_view, 5> kExpertWords = {"expert", "ep", "experts", "moe", "edp"};
constexpr std::array<std::string_view, 5> kContextWords = {"context", "cp", "ulysses", "ring", "dcp"};

}  // namespace

const char* GroupKindName(GroupKind kind) {
  constexpr std::array<const char*, 9> kNames = {"data",      "tensor", "pipeline", "expert", "context",
                                                 "embedding", "mixed",  "world",    "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

const char* GroupBasisName(GroupBasis basis) {
  constexpr std::array<const char*, 5> kNames = {"description", "name", "membership", "traffic", "none"};
  return kNames[static_cast<size_t>(basis)];
}

const char* ConfidenceName(Confidence confidence) {
  constexpr std::array<const char*, 4> kNames = {"high", "medium", "low", "none"};
  return kNames[static_cast<size_t>(confidence)];
}

std::optional<GroupKind> GroupKindOfText(std::string_view text) {
  const Words words = SplitWords(text.substr(0, 256));
  if (Has(words, "world")) return GroupKind::kWorld;
  if (Has(words, "embedding")) return GroupKind::kEmbedding;
  const bool data = HasAny(words, kDataWords) || Has(words, "edp");
  const bool tensor = HasAny(words, kTensorWords);
  const bool pipeline = HasAny(words, kPipelineWords);
  const bool expert = HasAny(words, kExpertWords);
  const bool context = HasAny(words, kContextWords);
  // Megatron: DATA_PARALLEL_GROUP_WITH_CP; torchtitan: dp_shard_cp, dp_shard_mod_ep. Gradients go over all of them.
  if (data && !tensor && !pipeline) return GroupKind::kData;
  // Megatron's experts have groups of their own: EXPERT_TENSOR_PARALLEL_GROUP splits an expert's layers.
  if (expert && tensor && !data && !pipeline && !context && !Has(words, "and")) return GroupKind::kTensor;
  const int kinds = int{data} + int{tensor} + int{pipeline} + int{expert} + int{context};
  if (kinds > 1) return GroupKind::kMixed;
  if (tensor) return GroupKind::kTensor;
  if (pipeline) return GroupKind::kPipeline;
  if (expert) return GroupKind::kExpert;
  if (context) return GroupKind::kContext;
  // Without experts, Megatron's MODEL_PARALLEL_GROUP is tensor and pipeline together.
  if (Has(words, "model") && Has(words, "parallel")) return GroupKind::kMixed;
  if (Has(words, "sequence") || (Has(words, "sp") && !Has(words, "mesh"))) return GroupKind::kContext;
  return std::nullopt;
}

}  // namespace lockstep::analysis
