#include "measure/mpi/mpi_backend.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace lockstep::mpi_bench {
namespace {

using collective_bench::Call;
using collective_bench::DataType;
using collective_bench::Operation;
using collective_bench::Reduction;

constexpr int kTag = 7;
constexpr size_t kAlignment = 4096;
constexpr size_t kMostInt = INT32_MAX;
constexpr size_t kMostBlock = size_t{1} << 20;
#if MPI_VERSION >= 4
constexpr bool kReducesLarge = true;
#else
constexpr bool kReducesLarge = false;
#endif

/// The largest power of two that divides it, bounded: at least what 16 bytes hold, of which shares are multiples.
size_t BlockOf(size_t count) { return std::min(count & (~count + 1), kMostBlock); }

MPI_Datatype TypeOf(DataType type) {
  switch (type) {
    case DataType::kUint8: return MPI_UINT8_T;
    case DataType::kInt32: return MPI_INT32_T;
    case DataType::kInt64: return MPI_INT64_T;
    case DataType::kFloat32: return MPI_FLOAT;
    case DataType::kFloat64: return MPI_DOUBLE;
  }
  return MPI_BYTE;
}

MPI_Op OpOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum: return MPI_SUM;
    case Reduction::kMin: return MPI_MIN;
    case Reduction::kMax: return MPI_MAX;
  }
  return MPI_SUM;
}

}  // namespace

std::string MpiBackend::name() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view said(text.data(), static_cast<size_t>(length));
  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..." or "MPICH Version:  \t4.0.2\nMPICH Release date: ..."
  std::string version(said.substr(0, said.find_first_of(",\n")));
  const std::string_view label = " Version:";
  if (const size_t at = version.find(label); at != std::string::npos) {
    const size_t number = version.find_first_not_of(" \t", at + label.size());
    version = version.substr(0, at) + " " + (number == std::string::npos ? "" : version.substr(number));
  }
  return "MPI (" + version + ")";
}

bool MpiBackend::Has(Operation operation, bool in_place) const {
  if (operation == Operation::kBroadcast) return in_place;  // One buffer.
  if (operation == Operation::kSendReceive) return !in_place;
  return true;
}

Result<void*> MpiBackend::Allocate(size_t bytes) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, kAlignment, bytes) != 0) {
    return Error{.code = ErrorCode::kLimitExceeded, .message = "there is not enough memory"};
  }
  return memory;
}

void MpiBackend::Free(void* memory) { std::free(memory); }
Status MpiBackend::CopyIn(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}
Status MpiBackend::CopyOut(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}

size_t MpiBackend::InPlaceSendOffset(const Call& call) const {
  // MPI's reduce_scatter reads all from the beginning of the buffer and leaves its result there.
  return call.operation == Operation::kAllGather ? communicator_.process() * call.count : 0;
}

MpiBackend::~MpiBackend() {
  for (auto& [key, type] : blocks_) MPI_Type_free(&type);
}

bool MpiBackend::IsLarge(const Call& call) const {
  const auto size = static_cast<int>(communicator_.process_count());
  return std::max(SendElements(call, size), ReceiveElements(call, size)) > kMostInt;
}

size_t MpiBackend::max_count(const Call& call) const {
  if (HasReduction(call.operation)) return kReducesLarge ? SIZE_MAX : kMostInt;
  return kMostInt * BlockOf(call.count);
}

MpiBackend::Shape MpiBackend::ShapeOf(const Call& call) {
  if (!IsLarge(call)) return {static_cast<int>(call.count), TypeOf(call.type)};
  const size_t block = BlockOf(call.count);
  MPI_Datatype& type = blocks_.emplace(std::pair(call.type, block), MPI_DATATYPE_NULL).first->second;
  if (type == MPI_DATATYPE_NULL) {
    MPI_Type_contiguous(static_cast<int>(block), TypeOf(call.type), &type);
    MPI_Type_commit(&type);
  }
  return {static_cast<int>(call.count / block), type};
}

#if MPI_VERSION >= 4
namespace {

void ReduceLarge(const Call& call, const void* from, void* receive) {
  const auto count = static_cast<MPI_Count>(call.count);
  const MPI_Datatype type = TypeOf(call.type);
  const MPI_Op op = OpOf(call.reduction);
  if (call.operation == Operation::kAllReduce) {
    MPI_Allreduce_c(from, receive, count, type, op, MPI_COMM_WORLD);
  } else if (call.operation == Operation::kReduceScatter) {
    MPI_Reduce_scatter_block_c(from, receive, count, type, op, MPI_COMM_WORLD);
  } else {
    MPI_Reduce_c(from, receive, count, type, op, call.root, MPI_COMM_WORLD);
  }
}

}  // namespace
#endif

Status MpiBackend::Run(const Call& call, const void* send, void* receive) {
  const MPI_Op op = OpOf(call.reduction);
  const auto rank = static_cast<int>(communicator_.process());
  const auto size = static_cast<int>(communicator_.process_count());
  // Reduce in place is for the root; the others send what is in the buffer.
  const bool sends_buffer = call.in_place && call.operation == Operation::kReduce && rank != call.root;
  const void* const from = sends_buffer ? receive : call.in_place ? MPI_IN_PLACE : send;
  void* const into = sends_buffer ? nullptr : receive;
#if MPI_VERSION >= 4
  if (HasReduction(call.operation) && IsLarge(call)) {
    ReduceLarge(call, from, into);
    return {};
  }
#endif
  const auto [count, type] = ShapeOf(call);
  switch (call.operation) {
    case Operation::kAllReduce: MPI_Allreduce(from, receive, count, type, op, MPI_COMM_WORLD); break;
    case Operation::kAllGather: MPI_Allgather(from, count, type, receive, count, type, MPI_COMM_WORLD); break;
    case Operation::kReduceScatter: MPI_Reduce_scatter_block(from, receive, count, type, op, MPI_COMM_WORLD); break;
    case Operation::kBroadcast: MPI_Bcast(receive, count, type, call.root, MPI_COMM_WORLD); break;
    case Operation::kReduce: MPI_Reduce(from, into, count, type, op, call.root, MPI_COMM_WORLD); break;
    case Operation::kAllToAll: MPI_Alltoall(from, count, type, receive, count, type, MPI_COMM_WORLD); break;
    case Operation::kSendReceive:
      MPI_Sendrecv(send, count, type, (rank + 1) % size, kTag, receive, count, type, (rank + size - 1) % size, kTag,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      break;
  }
  return {};
}

Status MpiBackend::Barrier() {
  MPI_Barrier(MPI_COMM_WORLD);
  return {};
}

Status MpiBackend::Transfer(int from, int to, void* memory, size_t bytes) {
  const auto rank = static_cast<int>(communicator_.process());
  const auto count = static_cast<int>(bytes);
  if (rank == from) MPI_Send(memory, count, MPI_BYTE, to, kTag, MPI_COMM_WORLD);
  if (rank == to) MPI_Recv(memory, count, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return {};
}

}  // namespace lockstep::mpi_bench
