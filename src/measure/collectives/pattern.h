#pragma once

#include <cstdint>
#include <span>

#include "measure/collectives/operation.h"

namespace lockstep::collective_bench {

/// What ranks send so that every result can be told beforehand: small whole numbers, of which every order of adding
/// gives the same sum, in floating point as well (to 100,000 ranks in float32, which counts exactly to 2^24; uint8
/// wraps around).
double PatternValue(int rank, size_t index);

/// Fills a piece of what `rank` sends, which begins at element `first`.
void FillSend(const Call& call, int rank, size_t first, std::span<std::byte> bytes);

/// Elements of `bytes`, a piece from element `first` on of what `rank` of `size` received, that are not what they must
/// be. Of reduce only the root's count.
uint64_t CountWrong(const Call& call, int rank, int size, size_t first, std::span<const std::byte> bytes);

}  // namespace lockstep::collective_bench
