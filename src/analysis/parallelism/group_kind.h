#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::analysis {

/// What a process group is for.
enum class GroupKind : uint8_t {
  kData,       ///< Replicas, or shards, of the same parameters: gradients are reduced, sharded weights gathered.
  kTensor,     ///< Parts of one layer, with or without its sequence parallelism.
  kPipeline,   ///< Stages of layers: activations are sent and received.
  kExpert,     ///< Experts of a mixture: tokens are exchanged.
  kContext,    ///< Parts of one sequence.
  kEmbedding,  ///< First and last pipeline stage, which tie an embedding.
  kMixed,      ///< Several of these together, such as tensor and data.
  kWorld,      ///< All ranks, and nothing says for what.
  kUnknown,
};
const char* GroupKindName(GroupKind kind);  ///< "data", "tensor", ..., "world", "unknown".

/// What the kind was taken from, in order of trust.
enum class GroupBasis : uint8_t {
  kDescription,  ///< The description that its creator gave.
  kName,         ///< The name that its creator gave.
  kMembership,   ///< Which ranks are in it, beside the job's other groups, and what it is used for.
  kTraffic,      ///< What it is used for alone.
  kNone,         ///< Nothing was enough.
};
const char* GroupBasisName(GroupBasis basis);  ///< "description", "name", "membership", "traffic", "none".

enum class Confidence : uint8_t { kHigh, kMedium, kLow, kNone };
const char* ConfidenceName(Confidence confidence);  ///< "high", "medium", "low", "none".

/// The kind that a group's name or description states, from the words of Megatron ("TENSOR_MODEL_PARALLEL_GROUP"),
/// torch's DeviceMesh ("mesh_dp_shard"), torchtitan, vLLM and SGLang ("tp", "pp"), DeepSpeed and FSDP. Absent when it
/// states none: "", "0", "undefined", "default_pg", "mesh_dim_0", a hash.
/// Source: docs/metrics.md#process-groups.
std::optional<GroupKind> GroupKindOfText(std::string_view text);

}  // namespace lockstep::analysis
