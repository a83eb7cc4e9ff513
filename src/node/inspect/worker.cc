#include "node/inspect/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/timespec.h"
#include "base/unique_fd.h"
#include "node/inspect/proc_files.h"

namespace lockstep::inspect {
namespace {

constexpr int64_t kReapNs = kSecondNs;
constexpr int64_t kGraceNs = 200'000'000;  // The parent gives up first.

/// The kernel ends this process then. Its parent would, but may lack the right once this is another user's.
void DieAt(int64_t monotonic_ns) {
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer = {};
  const itimerspec when = {.it_interval = {}, .it_value = Timespec(monotonic_ns)};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      ::timer_settime(timer, TIMER_ABSTIME, &when, nullptr) != 0)
    ::_exit(1);
}

/// In the child: everything that was the parent's is put away, `pipe` aside. Never returns.
[[noreturn]] void RunChild(const std::function<void(const WorkerPipe&)>& work, int pipe, pid_t parent,
                           int64_t deadline_monotonic_ns) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // It had ended before that was set.
  DieAt(deadline_monotonic_ns + kGraceNs);
  ::setpgid(0, 0);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // To 3, and all others closed: a daemon's listener must not live on in here.
  if (pipe != 3 && ::dup2(pipe, 3) != 3) ::_exit(1);
  ::close_range(4, ~0U, 0);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3 && nothing >= 0; ++fd) ::dup2(nothing, fd);
  ::fcntl(3, F_SETFD, FD_CLOEXEC);
  try {
    work(WorkerPipe(3));
  } catch (...) {
    ::_exit(2);
  }
  ::_exit(0);
}

/// Splits what was read into messages (4 bytes of length, then the message); what is not whole stays.
void TakeMessages(std::string* read, std::vector<std::string>* messages) {
  size_t at = 0;
  while (read->size() - at >= sizeof(uint32_t)) {
    uint32_t size = 0;
    std::memcpy(&size, read->data() + at, sizeof(size));
    if (read->size() - at - sizeof(size) < size) break;
    messages->push_back(read->substr(at + sizeof(size), size));
    at += sizeof(size) + size;
  }
  read->erase(0, at);
}

/// Its wait status, if it ends within `wait_ns`. One that the kernel does not let go of is left to init.
std::optional<int> Reap(pid_t child, int64_t wait_ns) {
  const int64_t until_ns = MonotonicNs() + wait_ns;
  while (true) {
    int status = 0;
    const pid_t got = ::waitpid(child, &status, WNOHANG);
    if (got == child) return status;
    if (got < 0 && errno != EINTR) return std::nullopt;
    if (MonotonicNs() >= until_ns) return std::nullopt;
    const timespec pause = Timespec(kMillisecondNs);
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

bool WorkerPipe::Send(std::string_view message) const {
  const auto size = static_cast<uint32_t>(message.size());
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes += message;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t wrote = ::write(fd_, bytes.data() + sent, bytes.size() - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    sent += static_cast<size_t>(wrote);
  }
  return true;
}

WorkerOutcome RunWorker(const std::function<void(const WorkerPipe&)>& work, int64_t deadline_monotonic_ns,
                        size_t limit_bytes) {
  WorkerOutcome outcome;
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    outcome.error = fmt::format("no pipe: {}", std::strerror(errno));
    return outcome;
  }
  const UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) RunChild(work, to_parent.get(), parent, deadline_monotonic_ns);
  if (child < 0) {
    outcome.error = fmt::format("no process: {}", std::strerror(errno));
    return outcome;
  }
  to_parent = UniqueFd();

  std::string read;
  size_t total = 0;
  std::array<char, 65536> chunk;
  while (true) {
    const int64_t left_ns = deadline_monotonic_ns - MonotonicNs();
    if (left_ns <= 0 || total > limit_bytes) {
      outcome.out_of_time = left_ns <= 0;
      break;
    }
    pollfd waited = {.fd = from_child.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min<int64_t>(left_ns / kMillisecondNs + 1, 1000)));
    if (ready <= 0) continue;
    const ssize_t size = ::read(from_child.get(), chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    total += static_cast<size_t>(size);
    read.append(chunk.data(), static_cast<size_t>(size));
    TakeMessages(&read, &outcome.messages);
  }
  std::optional<int> status;
  if (!outcome.out_of_time && total <= limit_bytes) status = Reap(child, kReapNs);
  if (!status) {
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);
    status = Reap(child, kReapNs);
  }
  if (status && WIFSIGNALED(*status)) outcome.signal = WTERMSIG(*status);
  outcome.finished = status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
  return outcome;
}

}  // namespace lockstep::inspect
