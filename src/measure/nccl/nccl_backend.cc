#include "measure/nccl/nccl_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <map>
#include <thread>
#include <utility>

#include "base/archive.h"
#include "inside/launch/rank_environment.h"
#include "measure/nccl/agreement.h"

namespace lockstep::nccl_bench {
namespace {

using collective_bench::Call;
using collective_bench::DataType;
using collective_bench::Operation;
using collective_bench::Reduction;

constexpr unsigned kStreamNonBlocking = 1;
constexpr std::chrono::milliseconds kAskEvery{20};

NcclType TypeOf(DataType type) {
  switch (type) {
    case DataType::kUint8: return kNcclUint8;
    case DataType::kInt32: return kNcclInt32;
    case DataType::kInt64: return kNcclInt64;
    case DataType::kFloat32: return kNcclFloat32;
    case DataType::kFloat64: return kNcclFloat64;
  }
  return kNcclUint8;
}

NcclReduction ReductionOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum: return kNcclSum;
    case Reduction::kMin: return kNcclMin;
    case Reduction::kMax: return kNcclMax;
  }
  return kNcclSum;
}

CudaAddress AddressOf(const void* memory) { return reinterpret_cast<CudaAddress>(memory); }

/// Each process's rank on its host: what its launcher says, else its place among those of its host name.
Result<int32_t> LocalRank(Communicator* communicator, const launch::Environment& environment) {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  ArchiveWriter writer;
  writer(std::string(host.data()));
  const std::vector<std::string> told = communicator->Gather(writer.TakeBytes());
  std::vector<int32_t> places;
  std::map<std::string, int32_t> count_by_host;
  for (const std::string& bytes : told) {
    std::string name;
    ArchiveReader reader(bytes);
    reader(name);
    places.push_back(count_by_host[name]++);
  }
  std::string bytes = ToBytes(places);
  communicator->Broadcast(&bytes);
  ASSIGN_OR_RETURN(places, FromBytes<std::vector<int32_t>>(bytes));
  const auto said = launch::FindRank(environment).local_rank;
  return said ? *said : places.at(communicator->process());
}

}  // namespace

NcclBackend::NcclBackend(Communicator* communicator, const NcclOptions& options)
    : communicator_(communicator),
      options_(options),
      rank_(static_cast<int>(communicator->process())),
      size_(static_cast<int>(communicator->process_count())),
      watchdog_(rank_, options.timeout) {}

Result<std::unique_ptr<NcclBackend>> NcclBackend::Create(Communicator* communicator,
                                                         const launch::Environment& environment,
                                                         const NcclOptions& options) {
  std::unique_ptr<NcclBackend> backend(new NcclBackend(communicator, options));
  ASSIGN_OR_RETURN(const int32_t local_rank, LocalRank(communicator, environment));
  RETURN_IF_ERROR(Agree(communicator, backend->OpenAll(environment, local_rank)));
  RETURN_IF_ERROR(backend->CheckDevices());
  RETURN_IF_ERROR(backend->Connect());
  return backend;
}

NcclBackend::~NcclBackend() {
  // After an error the communicator was aborted, or the others do not come to its end.
  if (comm_ == nullptr) return;
  const Watchdog::Watch watch(&watchdog_, "ncclCommDestroy");
  nccl_.call.comm_destroy(comm_);
  if (barrier_memory_ != 0) cuda_.memory_free(barrier_memory_);
}

Status NcclBackend::OpenAll(const launch::Environment& environment, int32_t local_rank) {
  ASSIGN_OR_RETURN(nccl_, OpenNccl(NcclCandidates(options_.library_path, environment)));
  auto cuda = CudaDriver::Open();
  // The message also says that NCCL itself was found.
  if (!cuda) {
    Error error = std::move(cuda).error();
    error.message += fmt::format(" (NCCL {} is there: {})", nccl_.version, nccl_.library.path());
    return error;
  }
  cuda_ = std::move(*cuda);
  const int ordinal = local_rank % cuda_.device_count;
  int device = 0;
  RETURN_IF_ERROR(cuda_.Check(cuda_.device_get(&device, ordinal), "cuDeviceGet"));
  std::array<char, 256> name = {};
  std::array<char, 32> bus = {};
  CudaUuid uuid = {};
  RETURN_IF_ERROR(cuda_.Check(cuda_.device_get_name(name.data(), name.size() - 1, device), "cuDeviceGetName"));
  RETURN_IF_ERROR(cuda_.Check(cuda_.device_get_pci_bus_id(bus.data(), bus.size() - 1, device), "cuDeviceGetPCIBusId"));
  RETURN_IF_ERROR(cuda_.Check(cuda_.device_get_uuid(&uuid, device), "cuDeviceGetUuid"));
  device_text_ = fmt::format("device {} [{}] {}", ordinal, bus.data(), name.data());
  device_identity_.assign(reinterpret_cast<const char*>(uuid.bytes), sizeof(uuid.bytes));
  CudaContext context = nullptr;
  RETURN_IF_ERROR(cuda_.Check(cuda_.primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain"));
  // NCCL asks the runtime for the device, which is that of the thread's context.
  RETURN_IF_ERROR(cuda_.Check(cuda_.context_set_current(context), "cuCtxSetCurrent"));
  RETURN_IF_ERROR(cuda_.Check(cuda_.stream_create(&stream_, kStreamNonBlocking), "cuStreamCreate"));
  return cuda_.Check(cuda_.memory_allocate(&barrier_memory_, sizeof(int64_t)), "cuMemAlloc");
}

Status NcclBackend::CheckDevices() {
  ArchiveWriter writer;
  writer(device_identity_, device_text_, nccl_.version);
  Status good;
  std::map<std::string, size_t> by_identity;
  std::string first_version;
  const std::vector<std::string> told = communicator_->Gather(writer.TakeBytes());
  for (size_t rank = 0; rank < told.size() && good; ++rank) {
    std::string identity;
    std::string text;
    std::string version;
    ArchiveReader reader(told[rank]);
    reader(identity, text, version);
    if (rank == 0) first_version = version;
    const auto [other, is_new] = by_identity.emplace(identity, rank);
    if (!is_new) {
      good =
          Error{.code = ErrorCode::kFailedPrecondition,
                .message = fmt::format("ranks {} and {} are on the same device ({}), which NCCL refuses: start no more "
                                       "ranks on a host than it has devices, or let each see its own "
                                       "(CUDA_VISIBLE_DEVICES)",
                                       other->second, rank, text)};
    } else if (version != first_version) {
      good =
          Error{.code = ErrorCode::kFailedPrecondition,
                .message = fmt::format("rank 0 has NCCL {}, rank {} has {}: name one for all with --nccl-library PATH",
                                       first_version, rank, version)};
    }
  }
  // What the root found, in its words.
  std::string word = good ? "" : good.error().message;
  communicator_->Broadcast(&word);
  if (word.empty()) return {};
  return Error{.code = ErrorCode::kFailedPrecondition, .message = word};
}

Status NcclBackend::Connect() {
  NcclUniqueId id = {};
  Status made;
  if (communicator_->is_root()) {
    const Watchdog::Watch watch(&watchdog_, "ncclGetUniqueId");
    made = Check(nccl_.call.get_unique_id(&id), "ncclGetUniqueId");
  }
  RETURN_IF_ERROR(Agree(communicator_, made));
  std::string bytes(id.internal, sizeof(id.internal));
  communicator_->Broadcast(&bytes);
  bytes.copy(id.internal, sizeof(id.internal));
  Status connected;
  {
    const Watchdog::Watch watch(&watchdog_, "ncclCommInitRank");
    connected = Check(nccl_.call.comm_init_rank(&comm_, size_, id, rank_), "ncclCommInitRank");
  }
  if (!connected) comm_ = nullptr;
  const Status all = Agree(communicator_, connected);
  if (!all && comm_ != nullptr) {
    const Watchdog::Watch watch(&watchdog_, "ncclCommAbort");
    nccl_.call.comm_abort(std::exchange(comm_, nullptr));
  }
  return all;
}

Status NcclBackend::Check(NcclResult result, const char* call) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return {};
  const char* const text = nccl_.call.get_error_string(result);
  const char* const last = nccl_.call.get_last_error == nullptr ? nullptr : nccl_.call.get_last_error(comm_);
  return Error{.code = ErrorCode::kFailedPrecondition,
               .message = fmt::format("{}: {}{}{}; NCCL_DEBUG=INFO says more, lockstep nccl-log reads it", call,
                                      text == nullptr ? "error" : text, last == nullptr || *last == '\0' ? "" : ": ",
                                      last == nullptr ? "" : last)};
}

Error NcclBackend::Abandon(std::string message) {
  const Watchdog::Watch watch(&watchdog_, "ncclCommAbort");
  nccl_.call.comm_abort(std::exchange(comm_, nullptr));
  return {.code = ErrorCode::kFailedPrecondition, .message = std::move(message), .rank = rank_};
}

std::string NcclBackend::name() const {
  return fmt::format("NCCL {} (CUDA driver {}.{})", nccl_.version, cuda_.version / 1000, cuda_.version % 1000 / 10);
}

bool NcclBackend::Has(Operation operation, bool in_place) const {
  // All-to-all and the ring are groups of sends and receives, which may not overlap.
  return !in_place || (operation != Operation::kAllToAll && operation != Operation::kSendReceive);
}

Result<void*> NcclBackend::Allocate(size_t bytes) {
  CudaAddress address = 0;
  RETURN_IF_ERROR(cuda_.Check(cuda_.memory_allocate(&address, bytes), "cuMemAlloc"));
  return reinterpret_cast<void*>(address);
}

void NcclBackend::Free(void* memory) {
  // Freeing waits for the device, which after an error may not end; the process does.
  if (comm_ != nullptr) cuda_.memory_free(AddressOf(memory));
}

Status NcclBackend::CopyIn(void* to, const void* from, size_t bytes) {
  const Status begun = cuda_.Check(cuda_.copy_to_device(AddressOf(to), from, bytes, stream_), "cuMemcpyHtoDAsync");
  if (!begun) return Abandon(begun.error().message);
  queued_ = "a copy to the device";
  return Wait();
}

Status NcclBackend::CopyOut(void* to, const void* from, size_t bytes) {
  const Status begun = cuda_.Check(cuda_.copy_to_host(to, AddressOf(from), bytes, stream_), "cuMemcpyDtoHAsync");
  if (!begun) return Abandon(begun.error().message);
  queued_ = "a copy from the device";
  return Wait();
}

size_t NcclBackend::InPlaceSendOffset(const Call& call) const {
  return call.operation == Operation::kAllGather ? static_cast<size_t>(rank_) * call.count : 0;
}

size_t NcclBackend::InPlaceReceiveOffset(const Call& call) const {
  return call.operation == Operation::kReduceScatter ? static_cast<size_t>(rank_) * call.count : 0;
}

Status NcclBackend::Run(const Call& call, const void* send, void* receive) {
  const NcclInterface& nccl = nccl_.call;
  const NcclType type = TypeOf(call.type);
  const NcclReduction reduction = ReductionOf(call.reduction);
  const size_t count = call.count;
  const size_t element = BytesOf(call.type);
  const auto* from = static_cast<const std::byte*>(send);
  auto* to = static_cast<std::byte*>(receive);
  if (call.in_place) {
    from = to + InPlaceSendOffset(call) * element;
    to += InPlaceReceiveOffset(call) * element;
  }
  queued_ = OperationName(call.operation);
  // What connects at the first call waits for the others in it.
  auto watch = std::make_optional<Watchdog::Watch>(&watchdog_, queued_);
  const auto group = [&](const auto& body) -> Status {
    RETURN_IF_ERROR(Check(nccl.group_start(), "ncclGroupStart"));
    const Status inside = body();
    const Status ended = Check(nccl.group_end(), "ncclGroupEnd");
    return inside ? ended : inside;
  };
  Status queued;
  switch (call.operation) {
    case Operation::kAllReduce:
      queued = Check(nccl.all_reduce(from, to, count, type, reduction, comm_, stream_), "ncclAllReduce");
      break;
    case Operation::kAllGather:
      queued = Check(nccl.all_gather(from, to, count, type, comm_, stream_), "ncclAllGather");
      break;
    case Operation::kReduceScatter:
      queued = Check(nccl.reduce_scatter(from, to, count, type, reduction, comm_, stream_), "ncclReduceScatter");
      break;
    case Operation::kBroadcast:
      queued = Check(nccl.broadcast(from, to, count, type, call.root, comm_, stream_), "ncclBroadcast");
      break;
    case Operation::kReduce:
      queued = Check(nccl.reduce(from, to, count, type, reduction, call.root, comm_, stream_), "ncclReduce");
      break;
    case Operation::kAllToAll:
      queued = group([&]() -> Status {
        for (int peer = 0; peer < size_; ++peer) {
          const size_t at = static_cast<size_t>(peer) * count * element;
          RETURN_IF_ERROR(Check(nccl.send(from + at, count, type, peer, comm_, stream_), "ncclSend"));
          RETURN_IF_ERROR(Check(nccl.receive(to + at, count, type, peer, comm_, stream_), "ncclRecv"));
        }
        return {};
      });
      break;
    case Operation::kSendReceive:
      queued = group([&]() -> Status {
        RETURN_IF_ERROR(Check(nccl.send(from, count, type, (rank_ + 1) % size_, comm_, stream_), "ncclSend"));
        return Check(nccl.receive(to, count, type, (rank_ + size_ - 1) % size_, comm_, stream_), "ncclRecv");
      });
      break;
  }
  watch.reset();
  if (!queued) return Abandon(queued.error().message);
  return {};
}

Status NcclBackend::Wait() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Clock::time_point ask_at = begin + kAskEvery;
  std::string wrong;
  while (wrong.empty()) {
    const CudaResult state = cuda_.stream_query(stream_);
    if (state == kCudaSuccess) return {};
    const Clock::time_point now = Clock::now();
    if (state != kCudaNotReady) {
      wrong = cuda_.Check(state, queued_).error().message;
    } else if (now >= ask_at) {
      ask_at = now + kAskEvery;
      NcclResult error = kNcclSuccess;
      Status asked = Check(nccl_.call.comm_get_async_error(comm_, &error), "ncclCommGetAsyncError");
      if (asked) asked = Check(error, queued_);
      if (!asked) wrong = asked.error().message;
      if (now - begin > options_.timeout) {
        wrong = fmt::format(
            "{} did not end in {} s: another rank is stuck, lost, or slower than that; --timeout SECONDS waits longer",
            queued_, options_.timeout.count());
      }
    }
    std::this_thread::yield();
  }
  return Abandon(std::move(wrong));
}

Status NcclBackend::Barrier() {
  Call call;
  call.type = DataType::kInt64;
  call.count = 1;
  call.in_place = true;
  void* const memory = reinterpret_cast<void*>(barrier_memory_);
  RETURN_IF_ERROR(Run(call, memory, memory));
  return Wait();
}

Status NcclBackend::Transfer(int from, int to, void* memory, size_t bytes) {
  if (rank_ != from && rank_ != to) return {};
  queued_ = "a transfer between two ranks";
  std::string error;
  {
    const Watchdog::Watch watch(&watchdog_, queued_);
    const Status queued = rank_ == from
                              ? Check(nccl_.call.send(memory, bytes, kNcclUint8, to, comm_, stream_), "ncclSend")
                              : Check(nccl_.call.receive(memory, bytes, kNcclUint8, from, comm_, stream_), "ncclRecv");
    if (!queued) error = queued.error().message;
  }
  if (!error.empty()) return Abandon(error);
  return Wait();
}

}  // namespace lockstep::nccl_bench
