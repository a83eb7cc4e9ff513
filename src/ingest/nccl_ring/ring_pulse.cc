#include "ingest/nccl_ring/ring_pulse.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "ingest/nccl_ring/ring_tables.h"
#include "inside/nccl_profiler/ring_format.h"

namespace lockstep::ingest {
namespace {

using instrument::CommunicatorState;
using instrument::OperationState;
using instrument::RingCommunicator;
using instrument::RingHeader;
using instrument::RingOperation;
using instrument::RingTotal;

constexpr uint32_t kMostTotals = 4096;
constexpr uint64_t kMostOperationBytes = uint64_t{16} << 20;
constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
constexpr uint32_t kFirstWithKernels = 3;

/// Communicators by their index in the file.
using Index = std::map<uint32_t, size_t>;

void AddTotals(const std::vector<RingTotal>& raw, const Index& index, NcclRingPulse* pulse) {
  std::map<std::pair<size_t, std::string>, NcclRingTotal> totals;
  for (const RingTotal& from : raw) {
    const auto communicator = index.find(from.communicator);
    if (from.state != instrument::TotalState::kUsed || communicator == index.end()) continue;
    std::string function = Printable(std::string_view(from.function, ::strnlen(from.function, sizeof from.function)));
    NcclRingTotal& into = totals[{communicator->second, function}];
    into.communicator = communicator->second;
    into.function = std::move(function);
    into.begun += from.begun;
    into.enqueued += from.enqueued;
    into.started += from.started;
    into.completed += from.completed;
    into.bytes += from.bytes;
    into.duration_ns += from.duration_ns;
  }
  pulse->totals.emplace();
  for (auto& [key, total] : totals) pulse->totals->push_back(std::move(total));
}

bool IsUnderWay(const RingOperation& operation, uint32_t interface_version) {
  // Before NCCL reported kernels, the end of an enqueued operation may never be reported.
  const bool may_be_over = interface_version < kFirstWithKernels && operation.state == OperationState::kEnqueued;
  return operation.number != 0 && !may_be_over && operation.state >= OperationState::kBegun &&
         operation.state < OperationState::kDone;
}

Status FindOldest(const ReadRingAt& read, const RingHeader& header, const Index& index, NcclRingPulse* pulse) {
  const uint64_t each = header.operation_bytes;
  if (each < sizeof(RingOperation) || each > kMostRingElementBytes || header.operation_offset > INT64_MAX / 2) {
    return CorruptRing("the NCCL plugin's record has a damaged header");
  }
  if (header.operation_capacity > kMostOperationBytes / each) {
    pulse->knows_oldest = false;
    return {};
  }
  const uint64_t in_piece = kPieceBytes / each;
  for (uint64_t from = 0; from < header.operation_capacity; from += in_piece) {
    const auto count = static_cast<uint32_t>(std::min(in_piece, header.operation_capacity - from));
    std::vector<RingOperation> operations;
    RETURN_IF_ERROR(ReadRingElements(read, header.operation_offset, from, count, each, &operations));
    for (const RingOperation& operation : operations) {
      const auto communicator = index.find(operation.communicator);
      if (communicator == index.end() || operation.begin_ns <= 0 || !IsUnderWay(operation, header.interface_version))
        continue;
      std::optional<int64_t>& oldest = pulse->oldest_begin_ns[communicator->second];
      oldest = std::min(oldest.value_or(operation.begin_ns), operation.begin_ns);
    }
  }
  return {};
}

/// Those whose count is one rank's share of what all have.
bool IsOfAllRanks(std::string_view function) {
  constexpr std::string_view kFunctions[] = {"AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"};
  return std::find(std::begin(kFunctions), std::end(kFunctions), function) != std::end(kFunctions);
}

}  // namespace

Result<NcclRingPulse> ReadNcclRingPulse(const ReadRingAt& read) {
  ASSIGN_OR_RETURN(const RingHeader header, ReadRingHeader(read));
  if (header.total_capacity > kMostTotals) return CorruptRing("the NCCL plugin's record has a damaged header");
  NcclRingPulse pulse;
  pulse.pid = header.pid;
  if (header.rank >= 0) pulse.rank = header.rank;
  if (header.world_size > 0) pulse.world_size = header.world_size;
  pulse.host = Printable(std::string_view(header.host, ::strnlen(header.host, sizeof header.host)));
  pulse.opened_unix_ns = header.anchor_unix_ns;
  pulse.interface_version = header.interface_version;
  // Totals before communicators: one that is new by then has no sums yet, instead of sums without a name.
  std::vector<RingTotal> totals;
  RETURN_IF_ERROR(ReadRingElements(read, header.total_offset, 0, header.total_capacity, header.total_bytes, &totals));
  std::vector<RingCommunicator> communicators;
  RETURN_IF_ERROR(ReadRingElements(read, header.communicator_offset, 0, header.communicator_capacity,
                                   header.communicator_bytes, &communicators));
  Index index;
  bool is_any_under_way = false;
  for (uint32_t i = 0; i < communicators.size(); ++i) {
    const RingCommunicator& raw = communicators[i];
    if (raw.state != CommunicatorState::kOpen && raw.state != CommunicatorState::kFinalized) continue;
    index.emplace(i, pulse.communicators.size());
    NcclRingCommunicator& communicator = pulse.communicators.emplace_back();
    communicator.id = raw.id;
    communicator.name = Printable(std::string_view(raw.name, ::strnlen(raw.name, sizeof raw.name)));
    communicator.rank = raw.rank;
    if (raw.rank_count > 0) communicator.rank_count = raw.rank_count;
    communicator.is_finalized = raw.state == CommunicatorState::kFinalized;
    communicator.collective_count = raw.collective_count;
    communicator.p2p_count = raw.p2p_count;
    communicator.done_count = raw.done_count;
    is_any_under_way = is_any_under_way || raw.collective_count + raw.p2p_count != raw.done_count;
  }
  pulse.oldest_begin_ns.resize(pulse.communicators.size());
  if (header.total_capacity > 0) AddTotals(totals, index, &pulse);
  if (is_any_under_way) RETURN_IF_ERROR(FindOldest(read, header, index, &pulse));
  return pulse;
}

std::optional<double> SizeFactor(std::string_view function, std::optional<int32_t> rank_count) {
  if (!IsOfAllRanks(function)) return 1;
  if (!rank_count) return std::nullopt;
  return *rank_count;
}

std::optional<double> BusFactor(std::string_view function, std::optional<int32_t> rank_count) {
  if (!rank_count || *rank_count < 2) return std::nullopt;
  const double n = *rank_count;
  if (function == "AllReduce") return 2 * (n - 1) / n;
  if (IsOfAllRanks(function)) return (n - 1) / n;
  if (function == "Broadcast" || function == "Reduce" || function == "Send" || function == "Recv") return 1;
  return std::nullopt;
}

}  // namespace lockstep::ingest
