#include "inside/nccl_profiler/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "inside/nccl_profiler/atomics.h"
#include "inside/process/process_facts.h"

namespace lockstep::instrument {
namespace {

constexpr uint32_t kCommunicators = 256;
constexpr uint32_t kDefaultOperations = 16384;
constexpr uint32_t kLeastOperations = 64;
constexpr uint32_t kMostOperations = 1 << 22;
constexpr uint32_t kTotals = 1024;
constexpr uint32_t kTotalTries = 32;
constexpr int kTries = 64;  // Slots that are looked at for a free one.

int64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

uint32_t OperationCapacity() {
  const char* const text = getenv("LOCKSTEP_NCCL_OPERATIONS");
  if (text == nullptr || *text < '0' || *text > '9') return kDefaultOperations;
  const unsigned long number = strtoul(text, nullptr, 10);
  return number < kLeastOperations  ? kLeastOperations
         : number > kMostOperations ? kMostOperations
                                    : static_cast<uint32_t>(number);
}

/// A name that nothing else has: host and process, and a number where the process had one before.
template <unsigned kSize>
int CreateFile(const char* folder, const char* host, int rank, uint64_t bytes, char (&path)[kSize]) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    char rank_text[32] = "";
    if (rank >= 0) snprintf(rank_text, sizeof rank_text, "rank%d.", rank);
    char attempt_text[16] = "";
    if (attempt > 0) snprintf(attempt_text, sizeof attempt_text, ".%d", attempt);
    const int length = snprintf(path, sizeof path, "%s/lockstep-nccl.%s%s.%d%s.ring", folder, rank_text, host,
                                static_cast<int>(getpid()), attempt_text);
    if (length < 0 || static_cast<size_t>(length) >= sizeof path) return -1;
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return -1;
    // Pages that were promised here cannot fail later, where a write would be a signal.
    if (posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0) return fd;
    close(fd);
    unlink(path);
    return -1;
  }
  return -1;
}

}  // namespace

int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }

bool Ring::Open(int interface_version, bool records_steps, bool reuses_enqueued) {
  reuses_enqueued_ = reuses_enqueued;
  const uint32_t capacity = OperationCapacity();
  const uint64_t communicator_offset = kRingHeaderBytes;
  const uint64_t operation_offset = communicator_offset + uint64_t{kCommunicators} * sizeof(RingCommunicator);
  const uint64_t total_offset = operation_offset + uint64_t{capacity} * sizeof(RingOperation);
  const uint64_t bytes = total_offset + uint64_t{kTotals} * sizeof(RingTotal);
  const char* folder = getenv("LOCKSTEP_NCCL_DIR");
  const bool is_default = folder == nullptr || *folder == '\0';
  if (is_default) folder = "/dev/shm";
  char host[sizeof RingHeader::host] = "";
  gethostname(host, sizeof host - 1);
  char host_in_name[sizeof host];
  ReadHostName(host_in_name, sizeof host_in_name);
  const RankFacts facts = ReadRankFacts();
  char path[kMostPathBytes];
  const int fd = CreateFile(folder, host_in_name, facts.rank, bytes, path);
  if (fd < 0) return false;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return false;
  auto* const header = static_cast<RingHeader*>(memory);
  header->version = kRingVersion;
  header->header_bytes = kRingHeaderBytes;
  pid_ = getpid();
  header->pid = pid_;
  header->rank = facts.rank;
  header->world_size = facts.world_size;
  header->local_rank = facts.local_rank;
  header->anchor_monotonic_ns = ClockNs(CLOCK_MONOTONIC);
  header->anchor_unix_ns = ClockNs(CLOCK_REALTIME);
  header->communicator_capacity = kCommunicators;
  header->communicator_bytes = sizeof(RingCommunicator);
  header->communicator_offset = communicator_offset;
  header->operation_capacity = capacity;
  header->operation_bytes = sizeof(RingOperation);
  header->operation_offset = operation_offset;
  header->total_capacity = kTotals;
  header->total_bytes = sizeof(RingTotal);
  header->total_offset = total_offset;
  header->interface_version = static_cast<uint32_t>(interface_version);
  header->records_steps = records_steps ? 1 : 0;
  CopyText(host, header->host);
  auto* const base = static_cast<char*>(memory);
  communicators_ = reinterpret_cast<RingCommunicator*>(base + communicator_offset);
  operations_ = reinterpret_cast<RingOperation*>(base + operation_offset);
  totals_ = reinterpret_cast<RingTotal*>(base + total_offset);
  memcpy(header->magic, kRingMagic, sizeof kRingMagic);
  header_ = header;
  if (is_default) CopyText(path, path_);
  return true;
}

void Ring::RemoveAtExit() {
  if (header_ != nullptr && path_[0] != '\0' && header_->pid == getpid()) unlink(path_);
}

int Ring::AddCommunicator(uint64_t id, const char* name, int rank, int rank_count, int node_count) {
  for (uint32_t i = 0; i < kCommunicators; ++i) {
    RingCommunicator& communicator = communicators_[i];
    auto expected = CommunicatorState::kFree;
    if (!Replace(&communicator.state, &expected, CommunicatorState::kOpen, __ATOMIC_ACQ_REL)) {
      continue;
    }
    communicator.rank = rank;
    communicator.rank_count = rank_count;
    communicator.node_count = node_count;
    communicator.begin_ns = MonotonicNs();
    CopyText(name, communicator.name);
    Store(&communicator.id, id, __ATOMIC_RELEASE);
    return static_cast<int>(i);
  }
  __atomic_fetch_add(&header_->dropped_communicator_count, 1, __ATOMIC_RELAXED);
  return -1;
}

int Ring::FindOrAddCommunicator(uint64_t id, const char* name, int rank) {
  for (uint32_t i = 0; i < kCommunicators; ++i) {
    RingCommunicator& communicator = communicators_[i];
    if (Load(&communicator.state, __ATOMIC_ACQUIRE) == CommunicatorState::kFree) break;
    // Two ranks of one communicator in one process have the same id.
    if (Load(&communicator.id, __ATOMIC_ACQUIRE) == id && communicator.rank == rank) {
      return static_cast<int>(i);
    }
  }
  return AddCommunicator(id, name, rank, 0, 0);
}

void Ring::EndCommunicator(int index) {
  communicators_[index].end_ns = MonotonicNs();
  Store(&communicators_[index].state, CommunicatorState::kFinalized, __ATOMIC_RELEASE);
}

RingOperation* Ring::Claim(uint64_t* number) {
  for (int i = 0; i < kTries; ++i) {
    const uint64_t next = __atomic_fetch_add(&header_->operation_count, 1, __ATOMIC_RELAXED) + 1;
    RingOperation* const operation = &operations_[(next - 1) % header_->operation_capacity];
    OperationState state = Load(&operation->state, __ATOMIC_ACQUIRE);
    // An operation under way stays: it is what a hang is explained by.
    const bool may_go = state == OperationState::kFree || state == OperationState::kDone ||
                        (reuses_enqueued_ && state == OperationState::kEnqueued);
    if (!may_go) continue;
    if (!Replace(&operation->state, &state, OperationState::kBegun, __ATOMIC_ACQ_REL)) {
      continue;
    }
    Store(&operation->number, 0, __ATOMIC_RELEASE);
    constexpr size_t kFrom = offsetof(RingOperation, sequence);
    memset(reinterpret_cast<char*>(operation) + kFrom, 0, sizeof(RingOperation) - kFrom);
    operation->waiting_for = WaitingFor::kNothing;
    *number = next;
    return operation;
  }
  __atomic_fetch_add(&header_->dropped_count, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&header_->dropped_operation_count, 1, __ATOMIC_RELAXED);
  return nullptr;
}

void Ring::CountDropped(int communicator, OperationKind kind) {
  // Ranks compare operations by their number on the communicator, so that one that is not kept must have its own.
  if (communicator < 0 || communicator >= static_cast<int>(kCommunicators)) return;
  RingCommunicator& counts = communicators_[communicator];
  __atomic_fetch_add(kind == OperationKind::kCollective ? &counts.collective_count : &counts.p2p_count, 1,
                     __ATOMIC_RELAXED);
}

uint32_t Ring::FindOrAddTotal(uint32_t communicator, const char (&function)[24]) {
  uint64_t words[3];
  static_assert(sizeof words == sizeof function);
  memcpy(words, function, sizeof words);
  const uint64_t hash = (words[0] ^ words[1] * 31 ^ words[2] * 1031 ^ communicator) * 0x9E3779B97F4A7C15U;
  for (uint32_t i = 0; i < kTotalTries; ++i) {
    const auto index = static_cast<uint32_t>((hash >> 40) + i) % kTotals;
    RingTotal& total = totals_[index];
    TotalState state = Load(&total.state, __ATOMIC_ACQUIRE);
    if (state == TotalState::kFree && Replace(&total.state, &state, TotalState::kFilling, __ATOMIC_ACQ_REL)) {
      total.communicator = communicator;
      memcpy(total.function, function, sizeof total.function);
      Store(&total.state, TotalState::kUsed, __ATOMIC_RELEASE);
      return index + 1;
    }
    // One that another thread is just filling is passed over: its pair may have a second element then.
    if (state == TotalState::kUsed && total.communicator == communicator &&
        memcmp(total.function, function, sizeof total.function) == 0) {
      return index + 1;
    }
  }
  __atomic_fetch_add(&header_->dropped_total_count, 1, __ATOMIC_RELAXED);
  return 0;
}

void Ring::Publish(RingOperation* operation, uint64_t number) { Store(&operation->number, number, __ATOMIC_RELEASE); }

bool Ring::Holds(const void* pointer) const {
  const auto* const at = static_cast<const char*>(pointer);
  const auto* const begin = reinterpret_cast<const char*>(operations_);
  return at >= begin && at < begin + uint64_t{header_->operation_capacity} * sizeof(RingOperation);
}

}  // namespace lockstep::instrument
