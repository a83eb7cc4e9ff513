#include "inside/log_write/rotated_compressor.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "model/log_line/compressed_log.h"
#include "model/log_line/log_name.h"

namespace lockstep::logs {
namespace {

constexpr const char* kEnding = ".gz";
constexpr std::string_view kTemporaryEnding = ".gz.tmp";
// 100 MB of lines full of numbers: 0.63 s of a processor to 29 % at level 1, 2.2 s to 25 % at level 6.
constexpr int kLevel = 1;
constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr time_t kForgotten_s = 3600;  ///< No file of ours takes that long.

enum class State { kRunning, kDone, kFailed };

/// It runs with idle priority for processor and disk. If the system refuses, it is an ordinary thread.
void BecomeIdle() {
  const sched_param none = {};
  ::sched_setscheduler(0, SCHED_IDLE, &none);
  constexpr int kOfThread = 1, kIdleClass = 3 << 13;  // linux/ioprio.h, which is not everywhere.
  ::syscall(SYS_ioprio_set, kOfThread, 0, kIdleClass);
}

bool WriteAll(int fd, const unsigned char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t done = ::write(fd, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    count -= static_cast<size_t>(done);
  }
  return true;
}

/// What processes that were killed in the middle left behind. Others' files are not ours to take away.
void RemoveForgotten(const std::string& folder) {
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  const time_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(entries)) {
    std::string_view name = entry->d_name;
    if (!name.ends_with(kTemporaryEnding)) continue;
    name.remove_suffix(kTemporaryEnding.size());
    struct stat status = {};
    if (IsOwnLogName(name) && ::fstatat(::dirfd(entries), entry->d_name, &status, 0) == 0 && S_ISREG(status.st_mode) &&
        now - status.st_mtime > kForgotten_s) {
      ::unlinkat(::dirfd(entries), entry->d_name, 0);
    }
  }
  ::closedir(entries);
}

}  // namespace

/// Outlives the compressor where that does not wait.
struct RotatedCompressor::Work {
  UniqueFd from;
  UniqueFd to;
  struct stat plain = {};
  std::string folder;
  std::atomic<bool> is_cancelled = false;
  std::atomic<State> state = State::kRunning;

  bool Compress();
};

bool RotatedCompressor::Work::Compress() {
  // Before zlib's memory, which would not be freed if these could not be allocated.
  std::vector<unsigned char> in(kBlockBytes), out(kBlockBytes);
  std::string comment = CompressedFromComment(plain.st_ino);
  z_stream stream = {};
  constexpr int kGzip = 16, kMemory = 8;
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, MAX_WBITS + kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) return false;
  gz_header header = {};
  header.time = static_cast<uLong>(plain.st_mtim.tv_sec);
  header.os = 3;  // Unix
  header.comment = reinterpret_cast<Bytef*>(comment.data());
  ::deflateSetHeader(&stream, &header);
  off_t taken = 0;
  bool is_good = true, is_end = false;
  while (is_good && !is_end && !is_cancelled.load(std::memory_order_relaxed)) {
    ssize_t count = -1;
    do {
      count = ::read(from.get(), in.data(), in.size());
    } while (count < 0 && errno == EINTR);
    is_good = count >= 0;
    if (!is_good) break;
    is_end = count == 0;
    taken += count;
    stream.next_in = in.data();
    stream.avail_in = static_cast<uInt>(count);
    do {
      stream.next_out = out.data();
      stream.avail_out = static_cast<uInt>(out.size());
      ::deflate(&stream, is_end ? Z_FINISH : Z_NO_FLUSH);
      is_good = WriteAll(to.get(), out.data(), out.size() - stream.avail_out);
    } while (is_good && stream.avail_out == 0);
  }
  ::deflateEnd(&stream);
  if (!is_good || !is_end || taken != plain.st_size) return false;
  // The lines in it are as old as they were, and are on disk before the plain ones go.
  const timespec times[2] = {plain.st_atim, plain.st_mtim};
  ::futimens(to.get(), times);
  ::posix_fadvise(from.get(), 0, 0, POSIX_FADV_DONTNEED);
  return ::fdatasync(to.get()) == 0;
}

void RotatedCompressor::Run(const std::shared_ptr<Work>& work) {
  BecomeIdle();
  bool is_good = false;
  try {
    is_good = work->Compress();
    RemoveForgotten(work->folder);
  } catch (const std::bad_alloc&) {  // Nobody else would catch it, and the program is not ours.
    is_good = false;
  }
  work->state.store(is_good ? State::kDone : State::kFailed, std::memory_order_release);
}

RotatedCompressor::RotatedCompressor(std::string path, int oldest_age)
    : path_(std::move(path)), oldest_age_(oldest_age), owner_(::getpid()) {}

RotatedCompressor::~RotatedCompressor() {
  if (!work_) return;
  if (!is_owner()) {  // The thread, and its share in this, are the parent's.
    work_->from = UniqueFd();
    work_->to = UniqueFd();
    return;
  }
  is_off_ = true;
  if (work_->state.load(std::memory_order_acquire) != State::kRunning) {
    Finish();
  } else {
    work_->is_cancelled = true;
    ::unlink(temporary().c_str());
  }
}

bool RotatedCompressor::is_owner() const { return ::getpid() == owner_; }

std::string RotatedCompressor::Aged(int age) const { return path_ + "." + std::to_string(age); }

std::string RotatedCompressor::temporary() const { return path_ + std::string(kTemporaryEnding); }

void RotatedCompressor::OnRotated() {
  if (work_) {
    ++age_;
    Look();
  } else {
    StartNext();
  }
}

void RotatedCompressor::Look() {
  if (work_ && work_->state.load(std::memory_order_acquire) != State::kRunning) Finish();
}

void RotatedCompressor::StartNext() {
  if (is_off_ || !is_owner()) return;
  for (age_ = oldest_age_; age_ >= 1; --age_) {
    const std::string plain = Aged(age_);
    if (::access((plain + kEnding).c_str(), F_OK) != 0 && Start(plain)) return;
  }
}

bool RotatedCompressor::Start(const std::string& from) {
  auto work = std::make_shared<Work>();
  work->from = UniqueFd(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
  if (!work->from.valid() || ::fstat(work->from.get(), &work->plain) != 0 || !S_ISREG(work->plain.st_mode)) {
    return false;
  }
  const std::string to = temporary();
  const auto create = [&] {
    return UniqueFd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600));
  };
  work->to = create();
  if (!work->to.valid() && errno == EEXIST && ::unlink(to.c_str()) == 0) work->to = create();
  if (!work->to.valid()) {
    is_off_ = true;
    return false;
  }
  ::fchmod(work->to.get(), work->plain.st_mode & 0777);
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  work->folder = folder.empty() ? "." : folder.string();
  // Signals are the program's.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([work] { Run(work); }).detach();
    work_ = std::move(work);
  } catch (const std::system_error&) {
    ::unlink(to.c_str());
    is_off_ = true;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return work_ != nullptr;
}

void RotatedCompressor::Finish() {
  const std::shared_ptr<Work> work = std::move(work_);
  work_.reset();
  if (!is_owner()) return;
  const bool is_good = work->state.load(std::memory_order_acquire) == State::kDone;
  const std::string plain = Aged(age_);
  struct stat status = {};
  const bool is_there = age_ <= oldest_age_ && ::stat(plain.c_str(), &status) == 0 &&
                        status.st_ino == work->plain.st_ino && status.st_size == work->plain.st_size;
  // A reader finds one of the two at any time, and the plain one while both exist.
  if (is_good && is_there && ::rename(temporary().c_str(), (plain + kEnding).c_str()) == 0) {
    ::unlink(plain.c_str());
  } else {
    ::unlink(temporary().c_str());
  }
  is_off_ = is_off_ || !is_good;
  StartNext();
}

}  // namespace lockstep::logs
