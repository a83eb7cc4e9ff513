#include "ingest/nccl_ring/ring_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ingest/nccl_ring/ring_tables.h"
#include "inside/nccl_profiler/ring_format.h"

namespace lockstep::ingest {
namespace {

using instrument::CommunicatorState;
using instrument::OperationState;
using instrument::RingCommunicator;
using instrument::RingHeader;
using instrument::RingOperation;

constexpr uint64_t kMostLookedAt = 65536;

void Append(const void* from, size_t size, std::string* to) { to->append(static_cast<const char*>(from), size); }

}  // namespace

Result<std::string> CopyNewest(const ReadRingAt& read, size_t most_operations) {
  ASSIGN_OR_RETURN(RingHeader header, ReadRingHeader(read));
  if (header.operation_capacity == 0) return CorruptRing("the NCCL plugin's record has a damaged header");
  std::vector<RingCommunicator> communicators;
  RETURN_IF_ERROR(ReadRingElements(read, header.communicator_offset, 0, header.communicator_capacity,
                                   header.communicator_bytes, &communicators));
  while (!communicators.empty() && communicators.back().state == CommunicatorState::kFree) communicators.pop_back();

  const uint64_t capacity = header.operation_capacity;
  const uint64_t looked_at = std::min(capacity, kMostLookedAt);
  // The newest lie before the slot that comes next.
  const uint64_t next = header.operation_count % capacity;
  const uint64_t from = looked_at == capacity ? 0 : (next + capacity - looked_at) % capacity;
  const uint64_t to_end = std::min(looked_at, capacity - from);
  std::vector<RingOperation> operations;
  RETURN_IF_ERROR(ReadRingElements(read, header.operation_offset, from, to_end, header.operation_bytes, &operations));
  RETURN_IF_ERROR(
      ReadRingElements(read, header.operation_offset, 0, looked_at - to_end, header.operation_bytes, &operations));
  std::erase_if(operations, [](const RingOperation& operation) { return operation.number == 0; });
  std::stable_sort(operations.begin(), operations.end(), [](const RingOperation& a, const RingOperation& b) {
    const bool a_is_done = a.state == OperationState::kDone, b_is_done = b.state == OperationState::kDone;
    return a_is_done != b_is_done ? b_is_done : a.number > b.number;
  });
  const auto under_way =
      static_cast<size_t>(std::count_if(operations.begin(), operations.end(), [](const RingOperation& operation) {
        return operation.state != OperationState::kDone;
      }));
  if (operations.size() > under_way + most_operations) operations.resize(under_way + most_operations);

  header.communicator_capacity = static_cast<uint32_t>(communicators.size());
  header.communicator_bytes = sizeof(RingCommunicator);
  header.communicator_offset = instrument::kRingHeaderBytes;
  header.operation_capacity = static_cast<uint32_t>(operations.size());
  header.operation_bytes = sizeof(RingOperation);
  header.operation_offset = header.communicator_offset + communicators.size() * sizeof(RingCommunicator);
  header.total_capacity = 0;
  std::string copy;
  Append(&header, sizeof header, &copy);
  copy.resize(instrument::kRingHeaderBytes, '\0');
  Append(communicators.data(), communicators.size() * sizeof(RingCommunicator), &copy);
  Append(operations.data(), operations.size() * sizeof(RingOperation), &copy);
  return copy;
}

}  // namespace lockstep::ingest
