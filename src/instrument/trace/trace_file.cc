#include "instrument/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instrument/process/process_facts.h"
#include "instrument/trace/clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace lockstep::instrument {
namespace {

constexpr uint64_t kFirstSegmentBytes = uint64_t{256} << 10;
constexpr uint64_t kLargestSegmentBytes = uint64_t{4} << 20;
constexpr uint64_t kSmallestSegmentBytes = uint64_t{16} << 10;

/// False where writing there would end the process: the file system has no room after all.
bool MakeWritable(void* begin, uint64_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin) & ~uintptr_t{kPageBytes - 1};
  const uint64_t whole = reinterpret_cast<uintptr_t>(begin) + bytes - address;
  // Kernels before 5.14 do not know it; pages are then had one by one.
  return madvise(reinterpret_cast<void*>(address), whole, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

void Complain(const char* path, const char* what, int error) {
  char line[4400];
  const int bytes = snprintf(line, sizeof(line),
                             "liblockstep: no spans are recorded: %s: %s: %s; the program goes on without. Set "
                             "LOCKSTEP_TRACE to a folder that can be written\n",
                             path, what, strerror(error));
  if (bytes > 0)
    (void)!write(STDERR_FILENO, line, static_cast<size_t>(bytes) < sizeof(line) ? bytes : sizeof(line) - 1);
}

/// With the folders above it.
void MakeFolder(const char* folder) {
  char path[3072];
  snprintf(path, sizeof(path), "%s", folder);
  for (char* at = path + 1; *at != '\0'; ++at) {
    if (*at != '/') continue;
    *at = '\0';
    mkdir(path, 0777);
    *at = '/';
  }
  mkdir(path, 0777);
}

}  // namespace

// A name that is taken is that of the program that this process was before it called exec, or of one whose process id
// is used again.
int TraceFile::MakeFile(const FileSettings& settings, int32_t rank) {
  char host[256];
  ReadHostName(host, sizeof(host));
  for (int attempt = 1; attempt < 1000; ++attempt) {
    char place[32] = "norank";
    if (rank >= 0) snprintf(place, sizeof(place), "rank%d", rank);
    char again[16] = "";
    if (attempt > 1) snprintf(again, sizeof(again), ".%d", attempt);
    snprintf(path_, sizeof(path_), "%s/%s-%s-pid%lld%s.spans", settings.folder, place, host,
             static_cast<long long>(getpid()), again);
    const int fd = open(path_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

bool TraceFile::Open(const FileSettings& settings) {
  const RankFacts facts = ReadRankFacts();
  MakeFolder(settings.folder);
  const int fd = MakeFile(settings, facts.rank);
  if (fd < 0) {
    Complain(path_, "cannot be made", errno);
    path_[0] = '\0';
    return false;
  }
  const int error = settings.limit_bytes < kHeaderBytes ? EFBIG : posix_fallocate(fd, 0, kHeaderBytes);
  void* const page = error != 0 ? MAP_FAILED : mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED || !MakeWritable(page, kHeaderBytes)) {
    Complain(path_, "has no room", error != 0 ? error : errno);
    if (page != MAP_FAILED) munmap(page, kHeaderBytes);
    unlink(path_);
    close(fd);
    path_[0] = '\0';
    return false;
  }
  auto* const header = static_cast<FileHeader*>(page);
  header->version = kFileVersion;
  header->header_bytes = kHeaderBytes;
  header->rank = facts.rank;
  header->world_size = facts.world_size;
  header->local_rank = facts.local_rank;
  header->clock = settings.clock;
  header->process_id = static_cast<uint64_t>(getpid());
  header->parent_id = settings.parent_id;
  header->limit_bytes = settings.limit_bytes;
  header->dropped_records = __atomic_load_n(&unseen_drops_, __ATOMIC_RELAXED);
  header->used_bytes = kHeaderBytes;
  header->begin = ReadAnchor();
  ReadHostName(header->host, sizeof(header->host));
  ReadProgram(header->program, sizeof(header->program));
  __atomic_signal_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, kFileMagic, sizeof(kFileMagic));
  fd_ = fd;
  limit_bytes_ = settings.limit_bytes;
  end_ = kHeaderBytes;
  __atomic_store_n(&is_full_, false, __ATOMIC_RELAXED);
  __atomic_store_n(&header_, header, __ATOMIC_RELEASE);
  return true;
}

// Under the lock.
bool TraceFile::Grow() {
  if (is_full() || segment_count_ == kMostSegments) return false;
  uint64_t wanted = segment_count_ == 0 ? kFirstSegmentBytes : segments_[segment_count_ - 1].size_bytes * 2;
  if (wanted > kLargestSegmentBytes) wanted = kLargestSegmentBytes;
  for (; wanted >= kSmallestSegmentBytes; wanted /= 2) {
    if (end_ + wanted > limit_bytes_) continue;
    if (posix_fallocate(fd_, static_cast<off_t>(end_), static_cast<off_t>(wanted)) != 0) continue;
    void* const base = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(end_));
    if (base == MAP_FAILED) continue;
    segments_[segment_count_] = {static_cast<char*>(base), end_, wanted};
    ++segment_count_;
    used_of_last_ = 0;
    end_ += wanted;
    __atomic_store_n(&header_->used_bytes, end_, __ATOMIC_RELAXED);
    return true;
  }
  return false;
}

Chunk TraceFile::Take(uint32_t wanted_bytes) {
  Lock();
  if (rest_count_ > 0) {
    const Rest rest = rests_[--rest_count_];
    Unlock();
    return {reinterpret_cast<ChunkHeader*>(rest.begin), rest.size_bytes};
  }
  if ((segment_count_ == 0 || used_of_last_ == segments_[segment_count_ - 1].size_bytes) && !Grow()) {
    BecomeFull();
    Unlock();
    return {};
  }
  const Segment& segment = segments_[segment_count_ - 1];
  const uint64_t left = segment.size_bytes - used_of_last_;
  const auto size_bytes = static_cast<uint32_t>(wanted_bytes < left ? wanted_bytes : left);
  char* const begin = segment.base + used_of_last_;
  used_of_last_ += size_bytes;
  Unlock();
  if (!MakeWritable(begin, size_bytes)) {
    BecomeFull();
    return {};
  }
  return {reinterpret_cast<ChunkHeader*>(begin), size_bytes};
}

void TraceFile::GiveBack(Slot* rest, uint32_t bytes) {
  Lock();
  if (rest_count_ < kMostRests) rests_[rest_count_++] = {rest, bytes};
  Unlock();
}

// 0: beyond the limit. Chunks begin at pages.
uint64_t TraceFile::ReserveBytes(uint64_t bytes) {
  const uint64_t whole = (bytes + kPageBytes - 1) & ~uint64_t{kPageBytes - 1};
  uint64_t offset = 0;
  Lock();
  if (!is_full() && end_ + whole <= limit_bytes_) {
    offset = end_;
    end_ += whole;
    __atomic_store_n(&header_->used_bytes, end_, __ATOMIC_RELAXED);
  }
  Unlock();
  return offset;
}

bool TraceFile::Append(const ChunkHeader* chunk) {
  uint64_t offset = ReserveBytes(chunk->size_bytes);
  const char* at = reinterpret_cast<const char*>(chunk);
  uint64_t left = chunk->size_bytes;
  while (offset != 0 && left > 0) {
    const ssize_t written = pwrite(fd_, at, left, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += written;
    left -= static_cast<uint64_t>(written);
    offset += static_cast<uint64_t>(written);
  }
  if (offset != 0 && left == 0) return true;
  BecomeFull();
  return false;
}

void TraceFile::CountDrop(uint64_t FileHeader::*count, uint64_t* unseen) {
  FileHeader* const header = __atomic_load_n(&header_, __ATOMIC_ACQUIRE);
  __atomic_fetch_add(header == nullptr ? unseen : &(header->*count), 1, __ATOMIC_RELAXED);
}

uint64_t TraceFile::dropped_records() const {
  const FileHeader* const header = __atomic_load_n(&header_, __ATOMIC_ACQUIRE);
  return __atomic_load_n(header == nullptr ? &unseen_drops_ : &header->dropped_records, __ATOMIC_RELAXED);
}

uint64_t TraceFile::used_bytes() const {
  const FileHeader* const header = __atomic_load_n(&header_, __ATOMIC_ACQUIRE);
  return header == nullptr ? 0 : __atomic_load_n(&header->used_bytes, __ATOMIC_RELAXED);
}

void TraceFile::Close(const Anchor& end) {
  Lock();
  if (header_ != nullptr) {
    header_->end = end;
    // Threads that still run write into chunks that they have; there are no new ones.
    BecomeFull();
    const Segment* const last = segment_count_ == 0 ? nullptr : &segments_[segment_count_ - 1];
    if (last != nullptr && last->offset + last->size_bytes == end_) {
      end_ = last->offset + used_of_last_;
      __atomic_store_n(&header_->used_bytes, end_, __ATOMIC_RELAXED);
      (void)!ftruncate(fd_, static_cast<off_t>(end_));
    }
  }
  Unlock();
}

void TraceFile::Abandon() {
  if (header_ != nullptr) munmap(header_, kHeaderBytes);
  for (int i = 0; i < segment_count_; ++i) munmap(segments_[i].base, segments_[i].size_bytes);
  if (header_ != nullptr) close(fd_);
  header_ = nullptr;
  path_[0] = '\0';
  is_full_ = false;
  segment_count_ = 0;
  used_of_last_ = 0;
  rest_count_ = 0;
  unseen_drops_ = 0;
}

}  // namespace lockstep::instrument
