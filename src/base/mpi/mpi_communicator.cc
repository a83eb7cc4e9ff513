#include "base/mpi/mpi_communicator.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/mpi/launch.h"

namespace lockstep::mpi {
namespace {

// MPI counts in int.
constexpr uint64_t kPieceBytes = uint64_t{256} << 20;
constexpr int kTag = 1;

/// Waits until all are done; at first without sleeping, for answers that are on their way.
void WaitFor(std::vector<MPI_Request>* requests) {
  if (requests->empty()) return;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (true) {
    int done = 0;
    MPI_Testall(static_cast<int>(requests->size()), requests->data(), &done, MPI_STATUSES_IGNORE);
    if (done != 0) return;
    const auto waited = Clock::now() - begin;
    if (waited > std::chrono::microseconds(200)) {
      std::this_thread::sleep_for(
          std::clamp<Clock::duration>(waited / 16, std::chrono::microseconds(50), std::chrono::milliseconds(2)));
    } else {
      std::this_thread::yield();
    }
  }
}

void WaitFor(MPI_Request request) {
  std::vector<MPI_Request> requests = {request};
  WaitFor(&requests);
}

/// Calls `transfer` with address and length of every piece; it returns the request.
template <typename Transfer>
void InPieces(std::string* bytes, std::vector<MPI_Request>* requests, const Transfer& transfer) {
  for (uint64_t at = 0; at < bytes->size(); at += kPieceBytes) {
    const uint64_t length = std::min<uint64_t>(kPieceBytes, bytes->size() - at);
    requests->push_back(transfer(bytes->data() + at, static_cast<int>(length)));
  }
}

}  // namespace

MpiCommunicator::MpiCommunicator() {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  process_ = static_cast<size_t>(rank);
  process_count_ = static_cast<size_t>(size);
}

void MpiCommunicator::Broadcast(std::string* bytes) {
  ++traffic_.message_count;
  uint64_t size = bytes->size();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  WaitFor(request);
  bytes->resize(size);
  std::vector<MPI_Request> requests;
  InPieces(bytes, &requests, [](char* from, int length) {
    MPI_Request piece = MPI_REQUEST_NULL;
    MPI_Ibcast(from, length, MPI_BYTE, 0, MPI_COMM_WORLD, &piece);
    return piece;
  });
  WaitFor(&requests);
  (is_root() ? traffic_.sent_bytes : traffic_.received_bytes) += size;
}

std::vector<std::string> MpiCommunicator::Gather(std::string bytes) {
  ++traffic_.message_count;
  const uint64_t size = bytes.size();
  std::vector<uint64_t> sizes(is_root() ? process_count_ : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Igather(&size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  WaitFor(request);
  std::vector<MPI_Request> requests;
  if (!is_root()) {
    InPieces(&bytes, &requests, [](const char* from, int length) {
      MPI_Request piece = MPI_REQUEST_NULL;
      MPI_Isend(from, length, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &piece);
      return piece;
    });
    WaitFor(&requests);
    traffic_.sent_bytes += size;
    return {};
  }
  std::vector<std::string> gathered(process_count_);
  gathered[0] = std::move(bytes);
  for (size_t i = 1; i < process_count_; ++i) {
    gathered[i].resize(sizes[i]);
    InPieces(&gathered[i], &requests, [i](char* to, int length) {
      MPI_Request piece = MPI_REQUEST_NULL;
      MPI_Irecv(to, length, MPI_BYTE, static_cast<int>(i), kTag, MPI_COMM_WORLD, &piece);
      return piece;
    });
    traffic_.received_bytes += sizes[i];
  }
  WaitFor(&requests);
  return gathered;
}

void AbortJob(int status) {
  AwaitReader(STDERR_FILENO);
  MPI_Abort(MPI_COMM_WORLD, status);
}

size_t ProcessesOnNode() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int size = 1;
  MPI_Comm_size(node, &size);
  MPI_Comm_free(&node);
  return static_cast<size_t>(size);
}

}  // namespace lockstep::mpi
