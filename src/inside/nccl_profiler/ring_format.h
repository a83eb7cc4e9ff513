#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::instrument {

// The file that the profiler plugin keeps of one process: docs/formats/nccl-ring.md. Written in place through a shared
// mapping, so that it is whole whatever becomes of the process. Numbers have the machine's byte order.

inline constexpr char kRingMagic[16] = "LOCKSTEP-NCCLR1";
inline constexpr uint32_t kRingVersion = 1;
inline constexpr uint32_t kRingHeaderBytes = 4096;
inline constexpr int32_t kUnknownRank = -1;

struct RingHeader {
  char magic[16];
  uint32_t version;
  uint32_t header_bytes;
  int32_t pid;
  int32_t rank;  ///< As the launcher says; kUnknownRank.
  int32_t world_size;
  int32_t local_rank;
  int64_t anchor_monotonic_ns;  ///< One instant by both clocks: times below are monotonic.
  int64_t anchor_unix_ns;
  uint32_t communicator_capacity;
  uint32_t communicator_bytes;  ///< Of one.
  uint64_t communicator_offset;
  uint32_t operation_capacity;
  uint32_t operation_bytes;
  uint64_t operation_offset;
  uint64_t operation_count;     ///< So many were begun; number N lies in slot (N - 1) % capacity, if it was free.
  uint64_t dropped_count;       ///< Operations that found no free slot.
  uint64_t dropped_step_count;  ///< Proxy operations and steps, likewise.
  uint64_t dropped_communicator_count;  ///< Communicators, likewise.
  uint32_t interface_version;           ///< Of NCCL's interface: 1 to 6.
  uint32_t records_steps;
  char host[64];
  uint32_t total_capacity;  ///< 0 in files that have no totals yet.
  uint32_t total_bytes;     ///< Of one.
  uint64_t total_offset;
  uint64_t dropped_total_count;      ///< Operations that no total had room for.
  uint64_t dropped_operation_count;  ///< Those of dropped_count that are operations; they still have their number.
};
static_assert(sizeof(RingHeader) <= kRingHeaderBytes);

enum class CommunicatorState : uint32_t { kFree = 0, kOpen = 1, kFinalized = 2 };

struct RingCommunicator {
  uint64_t id;  ///< Equal on all its ranks.
  int32_t rank;
  int32_t rank_count;  ///< 0: the interface does not say.
  int32_t node_count;
  CommunicatorState state;
  int64_t begin_ns;
  int64_t end_ns;
  uint64_t collective_count;  ///< Begun.
  uint64_t p2p_count;
  uint64_t done_count;  ///< Of both.
  uint64_t done_elements;
  char name[64];
  char reserved[120];
};
static_assert(sizeof(RingCommunicator) == 256);

enum class TotalState : uint32_t { kFree = 0, kFilling = 1, kUsed = 2 };

/// Sums over all operations of a function on a communicator since it began, also those that were overwritten. A pair
/// may have two elements, to be added, where two threads met it at once.
struct RingTotal {
  TotalState state;
  uint32_t communicator;
  uint64_t begun;
  uint64_t enqueued;
  uint64_t started;  ///< On the device; stays 0 before version 3.
  uint64_t completed;
  uint64_t elements;     ///< Of completed ones, as NCCL counts.
  uint64_t bytes;        ///< Elements times their type's size.
  uint64_t duration_ns;  ///< First to last kernel: the device's where it says so, else the host's.
  char function[24];
  char reserved[40];
};
static_assert(sizeof(RingTotal) == 128);

enum class OperationKind : uint8_t { kUnknown = 0, kCollective = 1, kPointToPoint = 2 };
enum class OperationState : uint8_t {
  kFree = 0,
  kBegun = 1,     ///< NCCL has planned it.
  kEnqueued = 2,  ///< It is in the stream; the device may not have come to it.
  kRunning = 3,   ///< A kernel of it runs, or its proxy works.
  kEnding = 4,    ///< The last of it has ended, and is just being written down.
  kDone = 5
};
/// What a step of the proxy waits for.
enum class WaitingFor : uint8_t { kNothing = 0, kOwnDevice = 1, kPeer = 2, kNetwork = 3 };

struct RingOperation {
  uint64_t number;  ///< From 1 on; written last when the slot is filled, 0 while it is.
  uint32_t communicator;
  OperationKind kind;
  OperationState state;
  uint8_t channel_count;
  WaitingFor waiting_for;  ///< Of the step that changed last.
  uint64_t sequence;       ///< As NCCL counts: of the communicator and function; 0 for p2p.
  uint64_t element_count;
  int32_t root;  ///< Or peer, of p2p.
  int32_t waiting_peer;
  int64_t begin_ns;
  int64_t enqueued_ns;
  int64_t first_kernel_ns;  ///< The host's times of the callbacks, which may lag.
  int64_t done_ns;
  uint64_t first_device_ns;  ///< The device's own timer; 0 where the interface has none.
  uint64_t last_device_ns;
  uint64_t progress;  ///< What has begun and ended of it (profiler.cc): of no use to readers.
  uint64_t reserved_word;
  int64_t device_wait_ns;  ///< Of all steps: the own device had not produced, or consumed.
  int64_t peer_wait_ns;
  int64_t network_wait_ns;
  uint64_t order;     ///< Of its kind on the communicator, from 1 on.
  char function[24];  ///< "AllReduce", cut to fit; ends with a zero byte, as all texts.
  char datatype[16];  ///< "ncclFloat32".
  char algorithm[16];
  char protocol[8];
  uint32_t total;  ///< Index of its RingTotal, one up; 0: none.
  char reserved[52];
};
static_assert(sizeof(RingOperation) == 256);
static_assert(offsetof(RingOperation, function) == 136);

}  // namespace lockstep::instrument
