#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// A communicator of NCCL's as the profiler plugin keeps it.
struct NcclRingCommunicator {
  uint64_t id = 0;  ///< Equal on all its ranks.
  std::string name;
  int32_t rank = 0;
  std::optional<int32_t> rank_count = {};
  bool is_finalized = false;
  uint64_t collective_count = 0;
  uint64_t p2p_count = 0;
  uint64_t done_count = 0;
};

enum class NcclRingState : uint8_t { kBegun = 1, kEnqueued, kRunning, kDone };
enum class NcclRingWait : uint8_t { kNothing, kOwnDevice, kPeer, kNetwork };

/// One collective or point-to-point operation.
struct NcclRingOperation {
  uint64_t number = 0;      ///< Of the process.
  uint64_t order = 0;       ///< Of its kind on the communicator, from 1 on.
  size_t communicator = 0;  ///< Into NcclRing::communicators.
  bool is_p2p = false;
  NcclRingState state = NcclRingState::kBegun;
  std::string function;  ///< "AllReduce"
  std::string datatype;  ///< "ncclFloat32"
  std::string algorithm;
  std::string protocol;
  uint64_t element_count = 0;
  int32_t root = 0;  ///< Or peer.
  uint32_t channel_count = 0;
  int64_t begin_unix_ns = 0;
  std::optional<int64_t> enqueued_unix_ns = {};
  std::optional<int64_t> running_unix_ns = {};
  std::optional<int64_t> done_unix_ns = {};
  std::optional<int64_t> device_ns = {};  ///< First to last kernel, by the device's timer.
  NcclRingWait waiting_for = NcclRingWait::kNothing;
  int32_t waiting_peer = 0;
  int64_t device_wait_ns = 0;
  int64_t peer_wait_ns = 0;
  int64_t network_wait_ns = 0;
};

/// What the plugin of one process has recorded.
struct NcclRing {
  int32_t pid = 0;
  std::string host;
  std::optional<int32_t> rank = {};
  std::optional<int32_t> world_size = {};
  std::optional<int32_t> local_rank = {};
  uint64_t operation_capacity = 0;  ///< Slots.
  uint32_t interface_version = 0;
  uint64_t operation_count = 0;  ///< Begun; those that are not in `operations` were overwritten.
  uint64_t dropped_operation_count = 0;
  uint64_t dropped_count = 0;  ///< Operations, proxies and communicators for which there was no room.
  std::vector<NcclRingCommunicator> communicators;
  std::vector<NcclRingOperation> operations;  ///< By number.
};

bool StartsNcclRing(std::string_view bytes);

/// Reads the file of a process, dead or alive; of one that is alive, operations that change meanwhile are left out.
/// Errors: kCorruptData (none, of another version, or cut). Format: docs/formats/nccl-ring.md.
Result<NcclRing> ReadNcclRing(std::string_view bytes);

/// "AllReduce" as PyTorch calls it: "all_reduce".
std::string TorchOperation(std::string_view function);
/// "ncclFloat32" as PyTorch calls it: "Float".
std::string TorchType(std::string_view type);

/// As a flight record, so that `lockstep hang` takes it like PyTorch's own: a communicator is a group, `order` the
/// sequence.
evidence::FlightRecord ToFlightRecord(const NcclRing& ring);

}  // namespace lockstep::ingest
