#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/collective_kind.h"

namespace lockstep::analysis {

/// Bytes of one element, for PyTorch's spellings ("Float", "BFloat16", "Long") and C++'s ("float", "c10::Half", "long
/// int").
std::optional<int64_t> ElementBytes(std::string_view dtype);

/// What is known of one call's buffers.
struct CollectiveBuffers {
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
  std::optional<int64_t> element_bytes;
  std::optional<int32_t> group_size;
};

/// Size in nccl-tests' convention: the buffer of one rank for all_reduce, broadcast, reduce, send and recv; per-rank
/// chunk x group size for all_gather (output), reduce_scatter (input), all_to_all, gather and scatter. Absent when not
/// recorded, for barriers and when the product does not fit. Source: docs/metrics.md#collective-size.
std::optional<int64_t> CollectiveBytes(CollectiveKind kind, const CollectiveBuffers& buffers);

/// busbw / algbw for n members: all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all, gather, scatter (n-1)/n;
/// broadcast, reduce, send, recv 1. Absent for n < 2, barriers and unknown operations.
std::optional<double> BusBandwidthFactor(CollectiveKind kind, int64_t group_size);

}  // namespace lockstep::analysis
