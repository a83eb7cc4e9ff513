#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/nccl_ring/nccl_ring.h"

namespace lockstep::ingest {

/// Sums over a function's operations on a communicator, also those that were overwritten since.
struct NcclRingTotal {
  size_t communicator = 0;  ///< Into NcclRingPulse::communicators.
  std::string function;     ///< "AllReduce"
  uint64_t begun = 0;
  uint64_t enqueued = 0;
  uint64_t started = 0;
  uint64_t completed = 0;
  uint64_t bytes = 0;        ///< As NCCL counts elements: of all_gather what one rank gives.
  uint64_t duration_ns = 0;  ///< First kernel to last.
};

/// The figures that are read periodically from the ring of a running process: few, however many operations it keeps.
struct NcclRingPulse {
  int32_t pid = 0;
  std::optional<int32_t> rank = {};
  std::optional<int32_t> world_size = {};
  std::string host;
  int64_t opened_unix_ns = 0;
  uint32_t interface_version = 0;
  std::vector<NcclRingCommunicator> communicators;
  std::optional<std::vector<NcclRingTotal>> totals = {};  ///< Absent: the file has none. One a pair, in order.
  /// CLOCK_MONOTONIC of the host: when the oldest operation that is under way was begun, by communicator.
  std::vector<std::optional<int64_t>> oldest_begin_ns;
  bool knows_oldest = true;  ///< False where there are too many operations to look at.
};

/// Bytes of the file from an offset on; false when they are not all there.
using ReadRingAt = std::function<bool(uint64_t offset, std::span<char> into)>;

/// Reads through `read`, never by a mapping: a file can be cut at any time. Errors: kCorruptData.
/// Memory: a few hundred KiB; operations are looked at only where some are under way, in pieces, 16 MiB at most.
Result<NcclRingPulse> ReadNcclRingPulse(const ReadRingAt& read);

/// By what to multiply an operation's bytes to have its size by nccl-tests' convention
/// (docs/metrics.md#collective-size): the number of ranks for what gathers, scatters or exchanges, else 1. Absent when
/// that is not known.
std::optional<double> SizeFactor(std::string_view function, std::optional<int32_t> rank_count);
/// And that size to have what the bus carries: busbw over algbw. Absent for one rank and for unknown functions.
std::optional<double> BusFactor(std::string_view function, std::optional<int32_t> rank_count);

}  // namespace lockstep::ingest
