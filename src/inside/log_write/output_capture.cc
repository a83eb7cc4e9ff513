#include "inside/log_write/output_capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

namespace lockstep::logs {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr int kPipeBytes = 1 << 20;
constexpr size_t kMostQueuedBytes = size_t{16} << 20;
constexpr auto kTick = std::chrono::milliseconds(250);
constexpr auto kStuckAfter = std::chrono::milliseconds(500);
constexpr auto kPatience = std::chrono::seconds(10);
constexpr int kLeftoverWait_ms = 200;

/// Threads that begin while it lives get no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

Error NoPipe() {
  return {.code = ErrorCode::kIo, .message = fmt::format("no pipe: {}", std::generic_category().message(errno))};
}

/// Above 2: a pipe that were one of the standard streams would be closed when the others are put in place.
UniqueFd Above(UniqueFd fd) {
  if (fd.get() > 2) return fd;
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace

Result<std::unique_ptr<OutputCapture>> OutputCapture::Start(LogSink sink, const Console& console) {
  std::unique_ptr<OutputCapture> capture(new OutputCapture(std::move(sink)));
  constexpr std::array<const char*, 2> kSources = {"out", "err"};
  const std::array<int, 2> consoles = {console.output, console.error};
  for (size_t i = 0; i < 2; ++i) {
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return NoPipe();
    Stream& stream = capture->streams_[i];
    stream = {.source = kSources[i],
              .reader = Above(UniqueFd(ends[0])),
              .writer = Above(UniqueFd(ends[1])),
              .console = consoles[i]};
    if (!stream.reader.valid() || !stream.writer.valid()) return NoPipe();
    ::fcntl(stream.reader.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(stream.reader.get(), F_SETPIPE_SZ, kPipeBytes);  // Where the user may; 64 KiB do as well.
  }
  capture->stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!capture->stop_.valid()) return NoPipe();
  const SignalsBlocked blocked;
  capture->writing_thread_ = std::thread([writing = capture->writing_] { writing->Run(); });
  capture->reading_thread_ = std::thread([raw = capture.get()] { raw->ReadAll(); });
  return capture;
}

OutputCapture::~OutputCapture() { Finish(); }

void OutputCapture::ReadAll() {
  bool is_stopping = false;
  auto deadline = std::chrono::steady_clock::time_point::max();
  while (is_open()) {
    std::array<pollfd, 3> waited = {pollfd{streams_[0].reader.get(), POLLIN, 0},
                                    pollfd{streams_[1].reader.get(), POLLIN, 0},
                                    pollfd{is_stopping ? -1 : stop_.get(), POLLIN, 0}};
    ::poll(waited.data(), waited.size(), is_stopping ? kLeftoverWait_ms / 4 : -1);
    if (!is_stopping && (waited[2].revents & POLLIN) != 0) {
      is_stopping = true;
      deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLeftoverWait_ms);
    }
    bool got = false;
    for (size_t i = 0; i < 2; ++i) {
      if (waited[i].revents != 0) got = ReadSome(i) || got;
    }
    if (is_stopping && !got && std::chrono::steady_clock::now() >= deadline) break;
    // What keeps coming is not the command's.
    if (is_stopping && std::chrono::steady_clock::now() >= deadline + std::chrono::seconds(1)) break;
  }
  const MutexLock lock(writing_->mutex);
  writing_->is_closed = true;
  writing_->changed.notify_all();
}

bool OutputCapture::ReadSome(size_t index) {
  Stream& stream = streams_[index];
  Chunk chunk{.stream = index, .time = {}, .bytes = std::string(kReadBytes, '\0')};
  const ssize_t count = ::read(stream.reader.get(), chunk.bytes.data(), chunk.bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (count <= 0) {
    stream.reader = UniqueFd();
    return false;
  }
  chunk.time = LineTime::Now();
  chunk.bytes.resize(static_cast<size_t>(count));
  PassOn(stream, chunk.bytes);
  MutexLock lock(writing_->mutex);
  const auto fits = [&]() LOCKSTEP_REQUIRES(writing_->mutex) {
    return writing_->queued_bytes + chunk.bytes.size() <= kMostQueuedBytes;
  };
  // A program that writes faster than a disk is given a moment, one that a hanging disk would hold up is not.
  if (!fits() && !writing_->is_stuck) writing_->is_stuck = !writing_->taken.wait_for(lock, kStuckAfter, fits);
  if (!fits()) {
    writing_->lost_lines += static_cast<uint64_t>(std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n'));
  } else {
    chunk.bytes.shrink_to_fit();
    writing_->queued_bytes += chunk.bytes.size();
    writing_->queue.push_back(std::move(chunk));
  }
  writing_->changed.notify_all();
  return true;
}

void OutputCapture::PassOn(Stream& stream, std::string_view bytes) {
  while (stream.console >= 0 && !bytes.empty()) {
    const ssize_t count = ::write(stream.console, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd waited = {stream.console, POLLOUT, 0};
      ::poll(&waited, 1, -1);
    } else if (errno != EINTR) {
      stream.console = -1;  // Its reader has gone; the log goes on.
    }
  }
}

void OutputCapture::Writing::Run() {
  MutexLock lock(mutex);
  for (;;) {
    changed.wait_for(lock, kTick, [this]() LOCKSTEP_REQUIRES(mutex) { return !queue.empty() || is_closed; });
    std::deque<Chunk> chunks;
    chunks.swap(queue);
    queued_bytes = 0;
    is_stuck = false;
    taken.notify_all();
    const uint64_t lost = std::exchange(lost_lines, 0);
    const bool ends = is_closed;
    lock.unlock();
    for (const Chunk& chunk : chunks) Write(chunk);
    if (lost > 0) sink.CountLost(lost, "the disk is slower than the program writes");
    if (ends) {
      End();
    } else {
      const LineTime now = LineTime::Now();
      for (size_t i = 0; i < 2; ++i) {
        cutters[i].Tick(now.monotonic_ns, [&](std::string_view line) { Append(now, i, line); });
      }
      sink.Flush(now);
    }
    lock.lock();
    if (ends) break;
  }
  is_done = true;
  changed.notify_all();
}

void OutputCapture::Writing::Write(const Chunk& chunk) {
  const size_t i = chunk.stream;
  cutters[i].Add(chunk.bytes, chunk.time.monotonic_ns, [&](std::string_view line) { Append(chunk.time, i, line); });
}

void OutputCapture::Writing::Append(const LineTime& time, size_t stream, std::string_view line) {
  if (const auto parsed = ParseLine(line, &storage); parsed && parsed->head.monotonic_ns) {
    const LineHead& head = parsed->head;
    sink.Append({head.time_unix_ns, *head.monotonic_ns}, head.level, head.source, parsed->text);
  } else {
    sink.Append(time, levels[stream].Next(line), stream == 0 ? "out" : "err", line);
  }
}

void OutputCapture::Writing::End() {
  const LineTime now = LineTime::Now();
  for (size_t i = 0; i < 2; ++i) {
    cutters[i].Flush([&](std::string_view line) { Append(now, i, line); });
  }
  sink.Flush(now);
}

void OutputCapture::Finish() {
  for (Stream& stream : streams_) stream.writer = UniqueFd();
  if (!reading_thread_.joinable()) {
    if (!writing_thread_.joinable()) return;
    const MutexLock lock(writing_->mutex);
    writing_->is_closed = true;
    writing_->changed.notify_all();
  } else {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(stop_.get(), &one, sizeof one);
    reading_thread_.join();
  }
  {
    MutexLock lock(writing_->mutex);
    writing_->changed.wait_for(lock, kPatience,
                               [this]() LOCKSTEP_REQUIRES(writing_->mutex) { return writing_->is_done; });
    if (!writing_->is_done) {
      lock.unlock();
      writing_thread_.detach();  // It holds on to what it needs.
      return;
    }
  }
  writing_thread_.join();
  if (is_open()) GoOnInBackground();
}

void OutputCapture::GoOnInBackground() {
  const pid_t pid = ::fork();
  if (pid != 0) {
    for (Stream& stream : streams_) stream.reader = UniqueFd();
    return;
  }
  // The one thread of a new process. It ends with those who write.
  for (const int ended_by : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(ended_by, SIG_IGN);
  // A reader that waits for the end of our own streams also waits for the writers, if their output goes there.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_used = (streams_[0].reader.valid() && streams_[0].console == standard) ||
                         (streams_[1].reader.valid() && streams_[1].console == standard);
    if (!is_used) ::dup2(nothing, standard);
  }
  while (is_open()) {
    std::array<pollfd, 2> waited = {pollfd{streams_[0].reader.get(), POLLIN, 0},
                                    pollfd{streams_[1].reader.get(), POLLIN, 0}};
    ::poll(waited.data(), waited.size(), -1);
    for (size_t i = 0; i < 2; ++i) {
      if (waited[i].revents != 0) ReadSome(i);
    }
    const MutexLock lock(writing_->mutex);
    for (const Chunk& chunk : writing_->queue) writing_->Write(chunk);
    writing_->queue.clear();
    writing_->queued_bytes = 0;
    writing_->is_stuck = false;
    writing_->sink.Flush(LineTime::Now());
  }
  writing_->End();
  ::_exit(0);
}

}  // namespace lockstep::logs
