#include "control/client/tunnel_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

namespace lockstep::control {
namespace {

constexpr size_t kErrorBytes = 4096;
constexpr size_t kErrorLines = 3;
constexpr auto kStep = std::chrono::milliseconds(5);
constexpr auto kGrace = std::chrono::milliseconds(500);

/// The same file under a number above the standard ones, so that the child's dup2 calls do not step on each other.
Result<UniqueFd> AboveStandard(UniqueFd fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!moved.valid()) return Error{ErrorCode::kIo, fmt::format("no file descriptor: {}", std::strerror(errno))};
  return moved;
}

/// posix_spawn's two structures, freed however we leave.
struct SpawnPlan {
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  posix_spawn_file_actions_t actions = {};
  posix_spawnattr_t attributes = {};
};

/// The last lines that say something.
std::string LastLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < kErrorLines) {
    const size_t end = text.find_last_not_of(" \r\n\t");
    if (end == std::string_view::npos) break;
    text = text.substr(0, end + 1);
    const size_t begin = text.find_last_of("\r\n");
    const size_t first = begin == std::string_view::npos ? 0 : begin + 1;
    lines.push_back(text.substr(first));
    text = text.substr(0, first);
  }
  std::reverse(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace

Result<std::unique_ptr<TunnelProcess>> TunnelProcess::Spawn(const std::vector<std::string>& command) {
  if (command.empty() || command.front().empty()) {
    return Error{ErrorCode::kInvalidArgument, "a tunnel needs a command"};
  }
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{ErrorCode::kIo, fmt::format("no socket for a tunnel: {}", std::strerror(errno))};
  }
  UniqueFd ours(ends[0]);
  ASSIGN_OR_RETURN(const UniqueFd theirs, AboveStandard(UniqueFd(ends[1])));
  std::array<int, 2> pipe = {-1, -1};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kIo, fmt::format("no pipe for a tunnel: {}", std::strerror(errno))};
  }
  UniqueFd errors(pipe[0]);
  ASSIGN_OR_RETURN(const UniqueFd errors_in, AboveStandard(UniqueFd(pipe[1])));
  // Our end only: the file's flags belong to the open pipe's end, and the child's stays blocking.
  ::fcntl(errors.get(), F_SETFL, O_NONBLOCK);

  SpawnPlan plan;
  ::posix_spawn_file_actions_adddup2(&plan.actions, theirs.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, theirs.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, errors_in.get(), STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, STDERR_FILENO + 1);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&plan.attributes, &all);
  ::posix_spawnattr_setsigmask(&plan.attributes, &none);
  ::posix_spawnattr_setpgroup(&plan.attributes, 0);
  ::posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int failure =
      ::posix_spawnp(&pid, command.front().c_str(), &plan.actions, &plan.attributes, arguments.data(), environ);
  if (failure != 0) {
    const ErrorCode code = failure == ENOENT                       ? ErrorCode::kNotFound
                           : failure == EACCES || failure == EPERM ? ErrorCode::kPermissionDenied
                                                                   : ErrorCode::kIo;
    return Error{
        code, fmt::format("the tunnel's command '{}' cannot be started: {}", command.front(), std::strerror(failure))};
  }
  return std::unique_ptr<TunnelProcess>(
      new TunnelProcess(fmt::format("{}", fmt::join(command, " ")), pid, std::move(ours), std::move(errors)));
}

TunnelProcess::~TunnelProcess() {
  socket_ = UniqueFd();
  if (!HasEnded()) {
    ::kill(-pid_, SIGTERM);
    const auto end = std::chrono::steady_clock::now() + kGrace;
    while (!HasEnded() && std::chrono::steady_clock::now() < end) {
      DrainErrors();  // One that blocks on its last words would not end.
      std::this_thread::sleep_for(kStep);
    }
  }
  // The leader is not reaped yet, so the group's number is still its own: what it left behind goes too.
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int TunnelProcess::TakeSocket() {
  const int fd = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0);
  socket_ = UniqueFd();
  return fd;
}

void TunnelProcess::DrainErrors() {
  std::array<char, 4096> window;
  // Bounded: a command that writes without end must not hold us here.
  for (int i = 0; i < 64 && error_pipe_.valid(); ++i) {
    const ssize_t got = ::read(error_pipe_.get(), window.data(), window.size());
    if (got > 0) {
      errors_.append(window.data(), static_cast<size_t>(got));
      if (errors_.size() > kErrorBytes) errors_.erase(0, errors_.size() - kErrorBytes);
    } else if (got == 0) {
      error_pipe_ = UniqueFd();
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool TunnelProcess::HasEnded() {
  if (!ending_.empty()) return true;
  siginfo_t info = {};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return false;
  }
  ending_ =
      fmt::format("{} {}", info.si_code == CLD_EXITED ? "ended with status" : "was ended by signal", info.si_status);
  return true;
}

std::string TunnelProcess::Describe(int64_t wait_ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait_ns);
  while (!HasEnded() && std::chrono::steady_clock::now() < end) {
    DrainErrors();
    std::this_thread::sleep_for(kStep);
  }
  DrainErrors();
  std::string text = fmt::format("the tunnel '{}' {}", command_, ending_.empty() ? "is still there" : ending_);
  const std::string words = LastLines(errors_);
  if (!words.empty()) text += ": " + words;
  return text;
}

}  // namespace lockstep::control
