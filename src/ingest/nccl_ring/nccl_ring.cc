#include "ingest/nccl_ring/nccl_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <type_traits>

#include "base/utf8.h"
#include "inside/nccl_profiler/ring_format.h"

namespace lockstep::ingest {
namespace {

using instrument::CommunicatorState;
using instrument::OperationKind;
using instrument::OperationState;
using instrument::RingCommunicator;
using instrument::RingHeader;
using instrument::RingOperation;

constexpr uint64_t kMostCommunicators = 1 << 16;
constexpr uint64_t kMostOperations = 1 << 24;
/// Far enough from the ends of int64 that sums cannot overflow.
constexpr int64_t kMostNs = INT64_MAX / 4;

Error Corrupt(std::string message) { return {.code = ErrorCode::kCorruptData, .message = std::move(message)}; }

template <size_t kSize>
std::string Text(const char (&text)[kSize]) {
  return Printable(std::string_view(text, ::strnlen(text, kSize)));
}

/// Element `index` of a table whose elements may have grown in later versions.
template <typename T>
T Element(std::string_view bytes, uint64_t offset, uint32_t element_bytes, uint64_t index) {
  T element;
  std::memcpy(&element, bytes.data() + offset + index * element_bytes, sizeof(T));
  return element;
}

/// Enumerations of a file are any number.
template <typename Enum>
uint64_t NumberOf(Enum value) {
  return static_cast<uint64_t>(static_cast<std::underlying_type_t<Enum>>(value));
}

class Times {
 public:
  explicit Times(const RingHeader& header) : offset_ns_(header.anchor_unix_ns - header.anchor_monotonic_ns) {}
  std::optional<int64_t> Unix(int64_t monotonic_ns) const {
    if (monotonic_ns <= 0 || monotonic_ns > kMostNs) return std::nullopt;
    return monotonic_ns + offset_ns_;
  }

 private:
  int64_t offset_ns_;
};

std::optional<NcclRingOperation> ReadOperation(const RingOperation& raw, const Times& times,
                                               const std::map<uint32_t, size_t>& communicators) {
  const uint64_t state = NumberOf(raw.state);
  const auto communicator = communicators.find(raw.communicator);
  const auto begin_ns = times.Unix(raw.begin_ns);
  if (raw.number == 0 || communicator == communicators.end() || !begin_ns || state < 1 ||
      state > NumberOf(OperationState::kDone) ||
      (raw.kind != OperationKind::kCollective && raw.kind != OperationKind::kPointToPoint)) {
    return std::nullopt;
  }
  NcclRingOperation operation;
  operation.number = raw.number;
  operation.order = raw.order;
  operation.communicator = communicator->second;
  operation.is_p2p = raw.kind == OperationKind::kPointToPoint;
  operation.state = raw.state == OperationState::kDone     ? NcclRingState::kDone
                    : raw.state == OperationState::kEnding ? NcclRingState::kRunning
                                                           : static_cast<NcclRingState>(state);
  operation.function = Text(raw.function);
  operation.datatype = Text(raw.datatype);
  operation.algorithm = Text(raw.algorithm);
  operation.protocol = Text(raw.protocol);
  operation.element_count = raw.element_count;
  operation.root = raw.root;
  operation.channel_count = raw.channel_count;
  operation.begin_unix_ns = *begin_ns;
  operation.enqueued_unix_ns = times.Unix(raw.enqueued_ns);
  operation.running_unix_ns = times.Unix(raw.first_kernel_ns);
  if (operation.state == NcclRingState::kDone) operation.done_unix_ns = times.Unix(raw.done_ns);
  if (raw.first_device_ns > 0 && raw.last_device_ns >= raw.first_device_ns &&
      raw.last_device_ns - raw.first_device_ns < static_cast<uint64_t>(kMostNs)) {
    operation.device_ns = static_cast<int64_t>(raw.last_device_ns - raw.first_device_ns);
  }
  const uint64_t waiting = NumberOf(raw.waiting_for);
  if (waiting <= NumberOf(instrument::WaitingFor::kNetwork)) operation.waiting_for = static_cast<NcclRingWait>(waiting);
  operation.waiting_peer = raw.waiting_peer;
  operation.device_wait_ns = raw.device_wait_ns;
  operation.peer_wait_ns = raw.peer_wait_ns;
  operation.network_wait_ns = raw.network_wait_ns;
  return operation;
}

/// Texts by index, [0] empty, each once.
class Texts {
 public:
  explicit Texts(std::vector<std::string>* texts) : texts_(texts) { texts_->emplace_back(); }
  uint32_t Of(const std::string& text) {
    if (text.empty()) return 0;
    const auto [found, is_new] = index_.try_emplace(text, static_cast<uint32_t>(texts_->size()));
    if (is_new) texts_->push_back(text);
    return found->second;
  }

 private:
  std::vector<std::string>* texts_;
  std::map<std::string, uint32_t> index_;
};

}  // namespace

std::string TorchOperation(std::string_view function) {
  if (function == "AlltoAll") return "all_to_all";
  std::string snake;
  for (const char c : function) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper && !snake.empty()) snake += '_';
    snake += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return snake;
}

std::string TorchType(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"ncclInt8", "Char"},
                                                                      {"ncclUint8", "Byte"},
                                                                      {"ncclInt32", "Int"},
                                                                      {"ncclInt64", "Long"},
                                                                      {"ncclUint32", "UInt32"},
                                                                      {"ncclUint64", "UInt64"},
                                                                      {"ncclFloat16", "Half"},
                                                                      {"ncclFloat32", "Float"},
                                                                      {"ncclFloat64", "Double"},
                                                                      {"ncclBfloat16", "BFloat16"},
                                                                      {"ncclFloat8e4m3", "Float8_e4m3fn"},
                                                                      {"ncclFloat8e5m2", "Float8_e5m2"}};
  for (const auto& [nccls, torchs] : kNames) {
    if (type == nccls) return std::string(torchs);
  }
  return std::string(type);
}

bool StartsNcclRing(std::string_view bytes) {
  return bytes.starts_with(std::string_view(instrument::kRingMagic, sizeof instrument::kRingMagic));
}

Result<NcclRing> ReadNcclRing(std::string_view bytes) {
  RingHeader header;
  if (!StartsNcclRing(bytes) || bytes.size() < sizeof header)
    return Corrupt("is not a record of lockstep's NCCL plugin");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != instrument::kRingVersion) {
    return Corrupt(fmt::format("is version {} of the NCCL plugin's record; version {} is known", header.version,
                               instrument::kRingVersion));
  }
  const auto fits = [&](uint64_t offset, uint64_t count, uint64_t each, uint64_t least, uint64_t most) {
    return each >= least && each <= 1 << 16 && count <= most && offset <= bytes.size() &&
           count * each <= bytes.size() - offset;
  };
  if (!fits(header.communicator_offset, header.communicator_capacity, header.communicator_bytes,
            sizeof(RingCommunicator), kMostCommunicators) ||
      !fits(header.operation_offset, header.operation_capacity, header.operation_bytes, sizeof(RingOperation),
            kMostOperations)) {
    return Corrupt("the NCCL plugin's record is cut short, or its header is damaged");
  }
  if (header.anchor_unix_ns < 0 || header.anchor_unix_ns > kMostNs || header.anchor_monotonic_ns < 0 ||
      header.anchor_monotonic_ns > kMostNs) {
    return Corrupt("the NCCL plugin's record has an impossible clock");
  }
  NcclRing ring;
  ring.pid = header.pid;
  ring.host = Text(header.host);
  if (header.rank >= 0) ring.rank = header.rank;
  if (header.world_size > 0) ring.world_size = header.world_size;
  if (header.local_rank >= 0) ring.local_rank = header.local_rank;
  ring.operation_capacity = header.operation_capacity;
  ring.interface_version = header.interface_version;
  ring.operation_count = header.operation_count;
  // Older files do not count them apart.
  if (header.total_capacity > 0) ring.dropped_operation_count = header.dropped_operation_count;
  ring.dropped_count = header.dropped_count + header.dropped_step_count + header.dropped_communicator_count;
  std::map<uint32_t, size_t> index;
  for (uint32_t i = 0; i < header.communicator_capacity; ++i) {
    const auto raw = Element<RingCommunicator>(bytes, header.communicator_offset, header.communicator_bytes, i);
    if (raw.state != CommunicatorState::kOpen && raw.state != CommunicatorState::kFinalized) continue;
    index.emplace(i, ring.communicators.size());
    NcclRingCommunicator& communicator = ring.communicators.emplace_back();
    communicator.id = raw.id;
    communicator.name = Text(raw.name);
    communicator.rank = raw.rank;
    if (raw.rank_count > 0) communicator.rank_count = raw.rank_count;
    communicator.is_finalized = raw.state == CommunicatorState::kFinalized;
    communicator.collective_count = raw.collective_count;
    communicator.p2p_count = raw.p2p_count;
    communicator.done_count = raw.done_count;
  }
  const Times times(header);
  for (uint32_t i = 0; i < header.operation_capacity; ++i) {
    const auto raw = Element<RingOperation>(bytes, header.operation_offset, header.operation_bytes, i);
    if (auto operation = ReadOperation(raw, times, index)) ring.operations.push_back(std::move(*operation));
  }
  std::stable_sort(ring.operations.begin(), ring.operations.end(),
                   [](const auto& a, const auto& b) { return a.number < b.number; });
  return ring;
}

evidence::FlightRecord ToFlightRecord(const NcclRing& ring) {
  using evidence::EntryState;
  evidence::FlightRecord record;
  record.version = "2.10";
  Texts texts(&record.texts);
  record.size_lists.emplace_back();
  record.stacks.emplace_back();
  std::map<uint64_t, uint32_t> sizes;
  for (const NcclRingCommunicator& communicator : ring.communicators) {
    evidence::FlightGroup& group = record.groups.emplace_back();
    group.local_id = static_cast<int64_t>(record.groups.size()) - 1;
    group.name = fmt::format("communicator {:#x}", communicator.id);
    group.description = communicator.name;
  }
  for (const NcclRingOperation& operation : ring.operations) {
    const NcclRingCommunicator& communicator = ring.communicators[operation.communicator];
    evidence::FlightEntry& entry = record.entries.emplace_back();
    entry.record_id = static_cast<int64_t>(operation.number & INT64_MAX);
    const auto order = static_cast<int64_t>(operation.order & INT64_MAX);
    (operation.is_p2p ? entry.p2p_sequence : entry.collective_sequence) = order;
    entry.is_p2p = operation.is_p2p;
    entry.group = static_cast<uint32_t>(operation.communicator);
    std::string name = "nccl:" + TorchOperation(operation.function);
    if (operation.is_p2p) {
      const bool sends = operation.function == "Send";
      name += fmt::format(" {}{}{}", communicator.rank, sends ? "->" : "<-", operation.root);
    }
    entry.operation = texts.Of(name);
    entry.input_dtypes = entry.output_dtypes = texts.Of(TorchType(operation.datatype));
    const auto [size, is_new] =
        sizes.try_emplace(operation.element_count, static_cast<uint32_t>(record.size_lists.size()));
    if (is_new) record.size_lists.push_back({{static_cast<int64_t>(operation.element_count & INT64_MAX)}});
    entry.input_sizes = size->second;
    entry.output_sizes = size->second;
    entry.created_unix_ns = operation.begin_unix_ns;
    if (operation.running_unix_ns) entry.started_unix_ns = *operation.running_unix_ns;
    if (operation.done_unix_ns) entry.completed_unix_ns = *operation.done_unix_ns;
    if (operation.device_ns) entry.duration_ns = *operation.device_ns;
    entry.retired = operation.state == NcclRingState::kDone ? evidence::Tristate::kYes : evidence::Tristate::kNo;
    switch (operation.state) {
      case NcclRingState::kBegun:
      case NcclRingState::kEnqueued: entry.state = EntryState::kScheduled; break;
      case NcclRingState::kRunning: entry.state = EntryState::kStarted; break;
      case NcclRingState::kDone: entry.state = EntryState::kCompleted; break;
    }
  }
  return record;
}

}  // namespace lockstep::ingest
