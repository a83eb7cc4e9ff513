#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::nccl_bench {

// The part of NCCL's C interface that is called, as its documentation and nccl.h have it: nothing of NCCL is needed to
// build. Signatures and values are the same from 2.7 (the first with send and receive) to 2.32.

struct NcclUniqueId {
  char internal[128];
};
static_assert(sizeof(NcclUniqueId) == 128);

using NcclComm = struct NcclCommOpaque*;
using NcclStream = struct CudaStreamOpaque*;  // The driver's and the runtime's streams are one.

enum NcclResult : int { kNcclSuccess = 0, kNcclInProgress = 7 };
enum NcclType : int { kNcclUint8 = 1, kNcclInt32 = 2, kNcclInt64 = 4, kNcclFloat32 = 7, kNcclFloat64 = 8 };
enum NcclReduction : int { kNcclSum = 0, kNcclMax = 2, kNcclMin = 3 };

/// NCCL's functions, once its library is open.
struct NcclInterface {
  NcclResult (*get_version)(int* version) = nullptr;
  NcclResult (*get_unique_id)(NcclUniqueId* id) = nullptr;
  NcclResult (*comm_init_rank)(NcclComm* comm, int rank_count, NcclUniqueId id, int rank) = nullptr;
  NcclResult (*comm_destroy)(NcclComm comm) = nullptr;
  NcclResult (*comm_abort)(NcclComm comm) = nullptr;
  NcclResult (*comm_get_async_error)(NcclComm comm, NcclResult* error) = nullptr;
  const char* (*get_error_string)(NcclResult result) = nullptr;
  const char* (*get_last_error)(NcclComm comm) = nullptr;  ///< Of 2.13; null before.
  NcclResult (*all_reduce)(const void* send, void* receive, size_t count, NcclType type, NcclReduction reduction,
                           NcclComm comm, NcclStream stream) = nullptr;
  NcclResult (*all_gather)(const void* send, void* receive, size_t send_count, NcclType type, NcclComm comm,
                           NcclStream stream) = nullptr;
  NcclResult (*reduce_scatter)(const void* send, void* receive, size_t receive_count, NcclType type,
                               NcclReduction reduction, NcclComm comm, NcclStream stream) = nullptr;
  NcclResult (*broadcast)(const void* send, void* receive, size_t count, NcclType type, int root, NcclComm comm,
                          NcclStream stream) = nullptr;
  NcclResult (*reduce)(const void* send, void* receive, size_t count, NcclType type, NcclReduction reduction, int root,
                       NcclComm comm, NcclStream stream) = nullptr;
  NcclResult (*send)(const void* from, size_t count, NcclType type, int peer, NcclComm comm,
                     NcclStream stream) = nullptr;
  NcclResult (*receive)(void* to, size_t count, NcclType type, int peer, NcclComm comm, NcclStream stream) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
};

}  // namespace lockstep::nccl_bench
