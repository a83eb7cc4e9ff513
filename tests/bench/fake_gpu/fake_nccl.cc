// A stand-in for NCCL (libnccl.so.2) between processes of one machine without devices: it carries the operations out
// over Unix sockets, on the streams of the stand-in for CUDA's driver. Faults are planted by the environment:
//   FAKE_NCCL_VERSION           what ncclGetVersion says (22105)
//   FAKE_NCCL_WRONG_RANK        whose results of all_reduce have a wrong element
//   FAKE_NCCL_SLOW_RANK_A, _B   between whom sends take 20 ms longer
//   FAKE_NCCL_INIT_ERROR_RANK   for whom ncclCommInitRank fails
//   FAKE_NCCL_STUCK_INIT_RANK   who never comes to ncclCommInitRank
//   FAKE_NCCL_STUCK_RANK        who never comes to reduce_scatter
//   FAKE_NCCL_STUCK_CALL_RANK   for whom the call of reduce_scatter itself does not come back
//   FAKE_NCCL_ASYNC_ERROR_RANK  for whom reduce_scatter never ends and leaves an asynchronous error
// FAKE_NCCL_LACKS_REDUCE_SCATTER, a definition: a library without that function.
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "exchange.h"
#include "fake_cuda_driver.h"

namespace {

using fake_nccl::Mesh;
using fake_nccl::Transfer;
using Stream = CudaStreamOpaque*;

constexpr int kSuccess = 0;
constexpr int kSystemError = 2;
constexpr int kRemoteError = 6;
constexpr int kCudaUnknown = 999;

int Setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

struct UniqueId {
  char internal[128];
};

}  // namespace

struct ncclComm {
  ncclComm(const std::string& name, int rank, int size) : mesh(name, rank, size) {}
  Mesh mesh;
  std::atomic<int> async_error = 0;
};

namespace {

size_t BytesOf(int type) { return type == 1 ? 1 : type == 2 || type == 7 ? 4 : 8; }

template <typename T>
void ReduceInto(T* to, const T* from, size_t count, int reduction) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = reduction == 0   ? static_cast<T>(to[i] + from[i])
            : reduction == 2 ? std::max(to[i], from[i])
                             : std::min(to[i], from[i]);
  }
}

void ReduceInto(std::byte* to, const std::byte* from, size_t count, int type, int reduction) {
  const auto as = [&](auto* example) {
    using T = std::remove_pointer_t<decltype(example)>;
    ReduceInto(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), count, reduction);
  };
  switch (type) {
    case 1: return as(static_cast<uint8_t*>(nullptr));
    case 2: return as(static_cast<int32_t*>(nullptr));
    case 4: return as(static_cast<int64_t*>(nullptr));
    case 7: return as(static_cast<float*>(nullptr));
    default: return as(static_cast<double*>(nullptr));
  }
}

/// Everybody's `count` elements at `from(peer)` go to each, and what comes is reduced into `to`, where it is wanted.
template <typename From>
int Reduce(Mesh& mesh, const From& from, std::byte* to, size_t count, int type, int reduction,
           const std::vector<int>& receivers) {
  const size_t bytes = count * BytesOf(type);
  const bool receives = std::find(receivers.begin(), receivers.end(), mesh.rank) != receivers.end();
  std::vector<std::vector<std::byte>> parts(static_cast<size_t>(mesh.size));
  std::vector<Transfer> transfers;
  for (const int receiver : receivers) transfers.push_back({receiver, from(receiver), nullptr, bytes});
  for (int peer = 0; receives && peer < mesh.size; ++peer) {
    parts[static_cast<size_t>(peer)].resize(bytes);
    transfers.push_back({peer, nullptr, parts[static_cast<size_t>(peer)].data(), bytes});
  }
  if (!mesh.Exchange(std::move(transfers))) return kCudaUnknown;
  if (!receives) return 0;
  for (size_t peer = 1; peer < parts.size(); ++peer) {
    ReduceInto(parts[0].data(), parts[peer].data(), count, type, reduction);
  }
  std::memcpy(to, parts[0].data(), bytes);
  return 0;
}

std::vector<int> Everybody(const Mesh& mesh) {
  std::vector<int> all;
  for (int rank = 0; rank < mesh.size; ++rank) all.push_back(rank);
  return all;
}

const std::byte* Bytes(const void* memory) { return static_cast<const std::byte*>(memory); }
std::byte* Bytes(void* memory) { return static_cast<std::byte*>(memory); }

struct Group {
  int depth = 0;
  std::vector<Transfer> transfers;
  ncclComm* comm = nullptr;
  Stream stream = nullptr;
};
thread_local Group group;

bool IsSlow(int rank, int peer) {
  const int a = Setting("FAKE_NCCL_SLOW_RANK_A");
  const int b = Setting("FAKE_NCCL_SLOW_RANK_B");
  return (rank == a && peer == b) || (rank == b && peer == a);
}

int EndGroup() {
  if (group.comm == nullptr) return kSuccess;
  FakeCudaQueue(group.stream, [comm = group.comm, transfers = std::move(group.transfers)] {
    for (const Transfer& transfer : transfers) {
      if (transfer.send != nullptr && transfer.bytes > 1000 && IsSlow(comm->mesh.rank, transfer.peer))
        ::usleep(200'000);
    }
    return comm->mesh.Exchange(transfers) ? 0 : kCudaUnknown;
  });
  group = {};
  return kSuccess;
}

int AddTransfer(const Transfer& transfer, ncclComm* comm, Stream stream) {
  group.transfers.push_back(transfer);
  group.comm = comm;
  group.stream = stream;
  return group.depth == 0 ? EndGroup() : kSuccess;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = std::getenv("FAKE_NCCL_VERSION") == nullptr ? 22105 : Setting("FAKE_NCCL_VERSION");
  return kSuccess;
}

int ncclGetUniqueId(UniqueId* id) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) return kSystemError;
  std::memset(id->internal, 0, sizeof(id->internal));
  std::snprintf(id->internal, sizeof(id->internal), "fake-nccl-%016llx", static_cast<unsigned long long>(random));
  return kSuccess;
}

int ncclCommInitRank(ncclComm** comm, int size, UniqueId id, int rank) {
  if (rank == Setting("FAKE_NCCL_INIT_ERROR_RANK")) return kSystemError;
  while (rank == Setting("FAKE_NCCL_STUCK_INIT_RANK")) ::pause();
  // Those of a rank that fails wait in vain; here they fail too, as NCCL's do when its connection closes.
  if (Setting("FAKE_NCCL_INIT_ERROR_RANK") >= 0) return kRemoteError;
  *comm = new ncclComm(std::string(id.internal), rank, size);
  return kSuccess;
}

int ncclCommDestroy(ncclComm* /*comm*/) { return kSuccess; }

int ncclCommAbort(ncclComm* comm) {
  comm->mesh.Abort();
  return kSuccess;
}

int ncclCommGetAsyncError(ncclComm* comm, int* error) {
  *error = comm->async_error;
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kSystemError   ? "unhandled system error (run with NCCL_DEBUG=INFO for details)"
         : result == kRemoteError ? "remote process exited or there was a network error"
                                  : "error of the stand-in";
}

const char* ncclGetLastError(ncclComm* /*comm*/) { return "planted by a test"; }

int ncclAllReduce(const void* send, void* receive, size_t count, int type, int reduction, ncclComm* comm,
                  Stream stream) {
  FakeCudaQueue(stream, [=] {
    const int error = Reduce(
        comm->mesh, [&](int) { return Bytes(send); }, Bytes(receive), count, type, reduction, Everybody(comm->mesh));
    if (comm->mesh.rank == Setting("FAKE_NCCL_WRONG_RANK") && count > 100) Bytes(receive)[17] ^= std::byte{0x40};
    return error;
  });
  return kSuccess;
}

int ncclAllGather(const void* send, void* receive, size_t count, int type, ncclComm* comm, Stream stream) {
  FakeCudaQueue(stream, [=] {
    const size_t bytes = count * BytesOf(type);
    // In place it is a part of what is received.
    const std::vector<std::byte> own(Bytes(send), Bytes(send) + bytes);
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < comm->mesh.size; ++peer) {
      transfers.push_back({peer, own.data(), nullptr, bytes});
      transfers.push_back({peer, nullptr, Bytes(receive) + static_cast<size_t>(peer) * bytes, bytes});
    }
    return comm->mesh.Exchange(std::move(transfers)) ? 0 : kCudaUnknown;
  });
  return kSuccess;
}

#ifndef FAKE_NCCL_LACKS_REDUCE_SCATTER
int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int reduction, ncclComm* comm,
                      Stream stream) {
  while (comm->mesh.rank == Setting("FAKE_NCCL_STUCK_CALL_RANK")) ::pause();
  FakeCudaQueue(stream, [=] {
    if (comm->mesh.rank == Setting("FAKE_NCCL_ASYNC_ERROR_RANK")) comm->async_error = kRemoteError;
    while (comm->async_error != 0 || comm->mesh.rank == Setting("FAKE_NCCL_STUCK_RANK")) ::usleep(1000);
    const size_t bytes = count * BytesOf(type);
    return Reduce(
        comm->mesh, [&](int peer) { return Bytes(send) + static_cast<size_t>(peer) * bytes; }, Bytes(receive), count,
        type, reduction, Everybody(comm->mesh));
  });
  return kSuccess;
}
#endif

int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, ncclComm* comm, Stream stream) {
  FakeCudaQueue(stream, [=] {
    const size_t bytes = count * BytesOf(type);
    std::vector<Transfer> transfers;
    for (int peer = 0; comm->mesh.rank == root && peer < comm->mesh.size; ++peer) {
      transfers.push_back({peer, Bytes(send), nullptr, bytes});
    }
    transfers.push_back({root, nullptr, Bytes(receive), bytes});
    return comm->mesh.Exchange(std::move(transfers)) ? 0 : kCudaUnknown;
  });
  return kSuccess;
}

int ncclReduce(const void* send, void* receive, size_t count, int type, int reduction, int root, ncclComm* comm,
               Stream stream) {
  FakeCudaQueue(stream, [=] {
    return Reduce(comm->mesh, [&](int) { return Bytes(send); }, Bytes(receive), count, type, reduction, {root});
  });
  return kSuccess;
}

int ncclSend(const void* send, size_t count, int type, int peer, ncclComm* comm, Stream stream) {
  return AddTransfer({peer, Bytes(send), nullptr, count * BytesOf(type)}, comm, stream);
}

int ncclRecv(void* receive, size_t count, int type, int peer, ncclComm* comm, Stream stream) {
  return AddTransfer({peer, nullptr, Bytes(receive), count * BytesOf(type)}, comm, stream);
}

int ncclGroupStart() {
  ++group.depth;
  return kSuccess;
}

int ncclGroupEnd() { return --group.depth == 0 ? EndGroup() : kSuccess; }

}  // extern "C"
