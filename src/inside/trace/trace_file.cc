#include "inside/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/process/process_facts.h"
#include "inside/trace/chunk_header.h"
#include "inside/trace/clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace lockstep::instrument {
namespace {

constexpr uint64_t kFirstSegmentBytes = uint64_t{256} << 10;
constexpr uint64_t kLargestSegmentBytes = uint64_t{4} << 20;
constexpr uint64_t kSmallestSegmentBytes = uint64_t{16} << 10;
constexpr uint32_t kSmallestRestBytes = 512;

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
  header->keeps_newest = settings.keeps_newest ? 1 : 0;
  header->dropped_records = __atomic_load_n(&unseen_drops_, __ATOMIC_RELAXED);
  header->used_bytes = kHeaderBytes;
  header->begin = ReadAnchor();
  ReadHostName(header->host, sizeof(header->host));
  ReadProgram(header->program, sizeof(header->program));
  __atomic_signal_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, kFileMagic, sizeof(kFileMagic));
  fd_ = fd;
  limit_bytes_ = settings.limit_bytes;
  keeps_newest_ = settings.keeps_newest;
  cannot_grow_ = false;
  copy_count_ = 0;
  next_copy_ = 0;
  end_ = kHeaderBytes;
  __atomic_store_n(&is_full_, false, __ATOMIC_RELAXED);
  __atomic_store_n(&header_, header, __ATOMIC_RELEASE);
  return true;
}

// Under the lock.
bool TraceFile::Grow() {
  if (is_full() || cannot_grow_ || segment_count_ == kMostSegments) return false;
  uint64_t wanted = segment_count_ == 0 ? kFirstSegmentBytes : segments_[segment_count_ - 1].size_bytes * 2;
  if (wanted > kLargestSegmentBytes) wanted = kLargestSegmentBytes;
  // The other half is that of copies: without room for one, threads would have to stop.
  const uint64_t most = keeps_newest_ ? limit_bytes_ / 2 : limit_bytes_;
  for (; wanted >= kSmallestSegmentBytes; wanted /= 2) {
    if (end_ + wanted > limit_bytes_ || kHeaderBytes + mapped_bytes_ + wanted > most) continue;
    if (posix_fallocate(fd_, static_cast<off_t>(end_), static_cast<off_t>(wanted)) != 0) continue;
    void* const base = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(end_));
    if (base == MAP_FAILED) continue;
    segments_[segment_count_] = {static_cast<char*>(base), end_, wanted};
    ++segment_count_;
    mapped_bytes_ += wanted;
    used_of_last_ = 0;
    end_ += wanted;
    __atomic_store_n(&header_->used_bytes, end_, __ATOMIC_RELAXED);
    return true;
  }
  cannot_grow_ = true;
  return false;
}

// Under the lock.
Chunk TraceFile::TakeRest(uint32_t least_bytes) {
  for (int i = rest_count_ - 1; i >= 0; --i) {
    const Rest rest = rests_[i];
    if (rest.size_bytes < least_bytes) continue;
    rests_[i] = rests_[--rest_count_];
    return {reinterpret_cast<ChunkHeader*>(rest.begin), rest.size_bytes};
  }
  return {};
}

// Under the lock. The chunk that its thread left longest ago is replaced.
Chunk TraceFile::TakeLeft(uint32_t least_bytes) {
  const auto at = [this](uint32_t i) -> Rest& { return left_[(next_left_ + i) % kMostLeft]; };
  for (uint32_t i = 0; i < left_count_; ++i) {
    const Rest found = at(i);
    if (found.size_bytes < least_bytes) continue;
    for (uint32_t older = i; older > 0; --older) at(older) = at(older - 1);
    next_left_ = (next_left_ + 1) % kMostLeft;
    --left_count_;
    __atomic_fetch_add(&header_->overwritten_chunks, 1, __ATOMIC_RELAXED);
    auto* const chunk = reinterpret_cast<ChunkHeader*>(found.begin);
    EmptyChunk(chunk, found.size_bytes);
    return {chunk, found.size_bytes};
  }
  return {};
}

Chunk TraceFile::Take(uint32_t wanted_bytes, uint32_t least_bytes) {
  Lock();
  if (const Chunk rest = TakeRest(least_bytes); rest.header != nullptr) {
    Unlock();
    return rest;
  }
  if ((segment_count_ == 0 || used_of_last_ == segments_[segment_count_ - 1].size_bytes) && !Grow()) {
    // If the oldest chunks are replaced, threads that have a chunk can continue even when no space is left.
    const Chunk left = is_full() || !keeps_newest_ ? Chunk{} : TakeLeft(least_bytes);
    if (!keeps_newest_) BecomeFull();
    Unlock();
    return left;
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

void TraceFile::Leave(ChunkHeader* chunk, Slot* rest, uint32_t rest_bytes) {
  // What is used again must not fall to pieces for one record each.
  const uint32_t used_bytes = chunk->size_bytes - rest_bytes;
  if (keeps_newest_ && used_bytes < kSmallestRestBytes) {
    const uint32_t kept_bytes = kSmallestRestBytes - used_bytes;
    rest_bytes = rest_bytes > kept_bytes ? rest_bytes - kept_bytes : 0;
    rest += kept_bytes / sizeof(Slot);
  }
  // Behind zeros a reader goes on at a page: no chunk may lie there before it.
  const bool ends_at_page = (reinterpret_cast<uintptr_t>(rest) + rest_bytes) % kPageBytes == 0;
  Lock();
  if (rest_bytes >= kSmallestRestBytes && ends_at_page && rest_count_ < kMostRests) {
    chunk->size_bytes -= rest_bytes;
    rests_[rest_count_++] = {rest, rest_bytes};
  }
  if (keeps_newest_ && left_count_ < kMostLeft) {
    left_[(next_left_ + left_count_++) % kMostLeft] = {reinterpret_cast<Slot*>(chunk), chunk->size_bytes};
  }
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

// Half of the file is theirs, the other half that of the chunks that threads write into. Null: none is free.
TraceFile::Copy* TraceFile::ReserveCopy() {
  const uint64_t room = limit_bytes_ / 2 / kCopyBytes;
  const auto most = static_cast<uint32_t>(room < kMostCopies ? room : kMostCopies);
  Copy* copy = nullptr;
  bool is_used = false;
  Lock();
  if (!is_full() && copy_count_ < most && end_ + kCopyBytes <= limit_bytes_) {
    copy = &copies_[copy_count_++];
    copy->page = static_cast<uint32_t>(end_ / kPageBytes);
    end_ += kCopyBytes;
    __atomic_store_n(&header_->used_bytes, end_, __ATOMIC_RELAXED);
  } else if (!is_full()) {
    // A thread that was stopped in the middle of its copy keeps its place, however often others go round.
    for (uint32_t i = 0; i < copy_count_ && copy == nullptr; ++i) {
      if (!copies_[next_copy_].is_busy) copy = &copies_[next_copy_];
      next_copy_ = (next_copy_ + 1) % copy_count_;
    }
    is_used = true;
    __atomic_fetch_add(&header_->overwritten_chunks, 1, __ATOMIC_RELAXED);
  }
  if (copy != nullptr) copy->is_busy = true;
  Unlock();
  // A reader finds no chunk here meanwhile, and neither after we were killed.
  const uint32_t no_magic = 0;
  if (copy != nullptr && is_used) {
    (void)!pwrite(fd_, &no_magic, sizeof(no_magic), static_cast<off_t>(uint64_t{copy->page} * kPageBytes));
  }
  return copy;
}

bool TraceFile::WriteAt(uint64_t offset, const void* bytes, uint64_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = pwrite(fd_, at, count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    offset += static_cast<uint64_t>(written);
    count -= static_cast<uint64_t>(written);
  }
  return true;
}

// Places that are used again have one size, or a shorter chunk would leave a hole behind it.
bool TraceFile::WriteCopy(uint64_t offset, const ChunkHeader* chunk, uint64_t place_bytes) {
  static const char zeros[kPageBytes] = {};
  ChunkHeader head = *chunk;
  head.magic = 0;
  head.is_copy = 1;  // Only there: whoever follows the file need not look at it again.
  head.size_bytes = static_cast<uint32_t>(place_bytes);
  // Its length comes first, so that a reader of a killed process's file skips it.
  if (!WriteAt(offset, &head, sizeof(head))) return false;
  if (!WriteAt(offset + sizeof(head), chunk + 1, chunk->size_bytes - sizeof(head))) return false;
  for (uint64_t at = chunk->size_bytes; at < place_bytes; at += sizeof(zeros)) {
    const uint64_t rest = place_bytes - at;
    if (!WriteAt(offset + at, zeros, rest < sizeof(zeros) ? rest : sizeof(zeros))) return false;
  }
  // The magic last: until then there is no chunk.
  return WriteAt(offset, &chunk->magic, sizeof(chunk->magic));
}

bool TraceFile::Append(const ChunkHeader* chunk) {
  bool is_whole = false;
  if (!keeps_newest_) {
    const uint64_t offset = ReserveBytes(chunk->size_bytes);
    is_whole = offset != 0 && WriteCopy(offset, chunk, chunk->size_bytes);
  } else if (Copy* const copy = ReserveCopy(); copy != nullptr) {
    is_whole = WriteCopy(uint64_t{copy->page} * kPageBytes, chunk, kCopyBytes);
    Lock();
    copy->is_busy = false;
    Unlock();
  } else {
    return !is_full();
  }
  if (!is_whole) BecomeFull();
  return is_whole;
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
  mapped_bytes_ = 0;
  used_of_last_ = 0;
  rest_count_ = 0;
  left_count_ = 0;
  unseen_drops_ = 0;
}

}  // namespace lockstep::instrument
