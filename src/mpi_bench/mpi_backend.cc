#include "mpi_bench/mpi_backend.h"

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace lockstep::mpi_bench {
namespace {

using collective_bench::Call;
using collective_bench::DataType;
using collective_bench::Operation;
using collective_bench::Reduction;

constexpr int kTag = 7;
constexpr size_t kAlignment = 4096;

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
  const std::string version(text.data(), static_cast<size_t>(length));
  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..." or "MPICH Version:  4.0.2\nMPICH Release date: ..."
  return "MPI (" + version.substr(0, version.find_first_of(",\n")) + ")";
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
void MpiBackend::CopyIn(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
void MpiBackend::CopyOut(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

size_t MpiBackend::InPlaceSendOffset(const Call& call) const {
  // MPI's reduce_scatter reads all from the beginning of the buffer and leaves its result there.
  return call.operation == Operation::kAllGather ? communicator_.process() * call.count : 0;
}

Status MpiBackend::Run(const Call& call, const void* send, void* receive) {
  const auto count = static_cast<int>(call.count);
  const MPI_Datatype type = TypeOf(call.type);
  const MPI_Op op = OpOf(call.reduction);
  const auto rank = static_cast<int>(communicator_.process());
  const auto size = static_cast<int>(communicator_.process_count());
  const void* const from = call.in_place ? MPI_IN_PLACE : send;
  switch (call.operation) {
    case Operation::kAllReduce: MPI_Allreduce(from, receive, count, type, op, MPI_COMM_WORLD); break;
    case Operation::kAllGather: MPI_Allgather(from, count, type, receive, count, type, MPI_COMM_WORLD); break;
    case Operation::kReduceScatter: MPI_Reduce_scatter_block(from, receive, count, type, op, MPI_COMM_WORLD); break;
    case Operation::kBroadcast: MPI_Bcast(receive, count, type, call.root, MPI_COMM_WORLD); break;
    case Operation::kReduce:
      // In place is for the root; the others send what is in the buffer.
      if (call.in_place && rank != call.root) {
        MPI_Reduce(receive, nullptr, count, type, op, call.root, MPI_COMM_WORLD);
      } else {
        MPI_Reduce(from, receive, count, type, op, call.root, MPI_COMM_WORLD);
      }
      break;
    case Operation::kAllToAll: MPI_Alltoall(from, count, type, receive, count, type, MPI_COMM_WORLD); break;
    case Operation::kSendReceive:
      MPI_Sendrecv(send, count, type, (rank + 1) % size, kTag, receive, count, type, (rank + size - 1) % size, kTag,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      break;
  }
  return {};
}

void MpiBackend::Barrier() { MPI_Barrier(MPI_COMM_WORLD); }

Status MpiBackend::Transfer(int from, int to, void* memory, size_t bytes) {
  const auto rank = static_cast<int>(communicator_.process());
  const auto count = static_cast<int>(bytes);
  if (rank == from) MPI_Send(memory, count, MPI_BYTE, to, kTag, MPI_COMM_WORLD);
  if (rank == to) MPI_Recv(memory, count, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return {};
}

}  // namespace lockstep::mpi_bench
