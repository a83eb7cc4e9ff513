#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/unique_fd.h"

extern char** environ;

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;

// What posix_spawn takes, freed with it.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Error SystemError(const std::string& what, int number) {
  return Error{.code = number == EACCES || number == EPERM ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               .message = fmt::format("{}: {}", what, std::strerror(number))};
}

int ShellStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int MillisecondsUntil(Clock::time_point deadline, int most) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, most));
}

// Readable once the process has ended; -1 before Linux 5.3. (glibc 2.36 declares pidfd_open without extern "C".)
int OpenPidFd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

// What a pipe holds now is appended to `text`, up to `limit` bytes in all; false when the limit would be exceeded.
// Closes the pipe at its end.
bool Drain(UniqueFd& pipe, std::string& text, size_t limit) {
  std::array<char, 65536> piece;
  while (pipe.valid()) {
    const ssize_t got = ::read(pipe.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      pipe = UniqueFd();
      return true;
    }
    if (text.size() + static_cast<size_t>(got) > limit) return false;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  return true;
}

Result<std::pair<UniqueFd, UniqueFd>> MakePipe() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("no pipe", errno);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Descriptors above 2 for a child's 0, 1 and 2: dup2 onto them in turn could overwrite one still to be used.
Result<std::array<UniqueFd, 3>> KeepStreams(const ChildProcess::Streams& streams) {
  std::array<UniqueFd, 3> kept;
  const std::array<int, 3> wanted = {streams.input, streams.output, streams.error};
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int fd = wanted[i] >= 0 ? ::fcntl(wanted[i], F_DUPFD_CLOEXEC, 3)
                                  : ::open("/dev/null", (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    if (fd < 0) return SystemError("no descriptor for a child", errno);
    kept[i] = UniqueFd(fd);
    if (fd < 3) {  // /dev/null where one of this process's own streams is closed.
      kept[i] = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
      if (!kept[i].valid()) return SystemError("no descriptor for a child", errno);
    }
  }
  return kept;
}

Error NotStarted(const std::string& program, int failure) {
  if (failure == ENOENT) {
    return Error{.code = ErrorCode::kNotFound, .message = fmt::format("there is no program \"{}\"", program)};
  }
  return SystemError(fmt::format("\"{}\" does not start", program), failure);
}

// In the new process: only what is safe after fork. Does not return.
[[noreturn]] void BecomeTied(char* const* arguments, const std::array<UniqueFd, 3>& streams, pid_t parent,
                             int report_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setpgid(0, 0);
  for (int i = 0; i < 3; ++i) ::dup2(streams[static_cast<size_t>(i)].get(), i);
  ::dup3(report_fd, 3, O_CLOEXEC);
  ::close_range(4, ~0U, 0);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(arguments[0], arguments);
  const int failure = errno;
  [[maybe_unused]] const ssize_t written = ::write(3, &failure, sizeof failure);
  ::_exit(127);
}

}  // namespace

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    End(0);
    pid_ = std::exchange(other.pid_, -1);
  }
  return *this;
}

Result<ChildProcess> ChildProcess::Start(const std::vector<std::string>& arguments, const Streams& streams,
                                         const std::optional<std::vector<std::string>>& environment) {
  if (arguments.empty() || arguments[0].empty()) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "no command to start"};
  }
  SpawnSettings settings;
  ASSIGN_OR_RETURN(const auto kept, KeepStreams(streams));
  for (size_t i = 0; i < kept.size(); ++i) {
    posix_spawn_file_actions_adddup2(&settings.actions, kept[i].get(), static_cast<int>(i));
  }
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, 3);

  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&settings.attributes, &signals);
  sigfillset(&signals);
  sigdelset(&signals, SIGKILL);
  sigdelset(&signals, SIGSTOP);
  posix_spawnattr_setsigdefault(&settings.attributes, &signals);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers =
      environment.has_value() ? Pointers(*environment) : std::vector<char*>();
  pid_t pid = -1;
  const int failure =
      ::posix_spawnp(&pid, arguments[0].c_str(), &settings.actions, &settings.attributes, argument_pointers.data(),
                     environment.has_value() ? environment_pointers.data() : environ);
  if (failure != 0) return NotStarted(arguments[0], failure);
  return ChildProcess(pid);
}

Result<ChildProcess> ChildProcess::StartTied(const std::vector<std::string>& arguments, const Streams& streams) {
  if (arguments.empty() || arguments[0].empty()) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "no command to start"};
  }
  ASSIGN_OR_RETURN(const auto kept, KeepStreams(streams));
  ASSIGN_OR_RETURN(auto report, MakePipe());
  ::fcntl(report.first.get(), F_SETFL, 0);
  const std::vector<char*> words = Pointers(arguments);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError("no new process", errno);
  if (pid == 0) BecomeTied(words.data(), kept, parent, report.second.get());
  ChildProcess child(pid);
  report.second = UniqueFd();
  int failure = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.first.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof failure) return NotStarted(arguments[0], failure);
  return child;
}

std::optional<int> ChildProcess::Poll() {
  if (pid_ <= 0) return std::nullopt;
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(pid_, &status, WNOHANG);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return std::nullopt;
  pid_ = -1;
  // Reaped by someone else (SIGCHLD ignored): how it ended is not known; 0 would say that all is well.
  return got < 0 ? 255 << 8 : status;
}

std::optional<int> ChildProcess::End(int64_t grace_ns) {
  if (pid_ <= 0) return std::nullopt;
  const auto deadline = Clock::now() + std::chrono::nanoseconds(grace_ns);
  const UniqueFd watch(OpenPidFd(pid_));
  while (true) {
    if (auto status = Poll()) return status;
    // Without a pidfd (an old kernel) the child is asked after instead.
    const int wait_ms = MillisecondsUntil(deadline, watch.valid() ? 1000 : 10);
    if (Clock::now() >= deadline) break;
    pollfd waited = {.fd = watch.get(), .events = POLLIN, .revents = 0};
    ::poll(&waited, 1, wait_ms);
  }
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  pid_ = -1;
  return got < 0 ? 255 << 8 : status;
}

Result<CommandOutput> RunCommand(const std::vector<std::string>& arguments, const CommandOptions& options) {
  const auto deadline = Clock::now() + std::chrono::nanoseconds(options.timeout_ns);
  ASSIGN_OR_RETURN(auto output_ends, MakePipe());
  ASSIGN_OR_RETURN(auto error_ends, MakePipe());
  ASSIGN_OR_RETURN(
      ChildProcess child,
      ChildProcess::Start(arguments, {.output = output_ends.second.get(), .error = error_ends.second.get()},
                          options.environment));
  output_ends.second = UniqueFd();
  error_ends.second = UniqueFd();
  UniqueFd& output = output_ends.first;
  UniqueFd& error = error_ends.first;

  const UniqueFd watch(OpenPidFd(child.pid()));
  CommandOutput result;
  std::optional<int> status;
  while (!status) {
    std::array<pollfd, 3> waited = {pollfd{.fd = output.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = error.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = watch.get(), .events = POLLIN, .revents = 0}};
    ::poll(waited.data(), waited.size(), MillisecondsUntil(deadline, watch.valid() ? 1000 : 10));
    // First whether it has ended, then what it wrote: its last words are in the pipe by then. The pipe's end is not
    // waited for, a grandchild may hold it.
    status = child.Poll();
    if (!Drain(output, result.output, options.output_bytes_limit) ||
        !Drain(error, result.error, options.output_bytes_limit)) {
      return Error{.code = ErrorCode::kLimitExceeded,
                   .message = fmt::format("\"{}\" printed over {} bytes", arguments[0], options.output_bytes_limit)};
    }
    if (!status && Clock::now() >= deadline) {
      if (options.grace_ns > 0) {
        ::kill(child.pid(), SIGTERM);
        child.End(options.grace_ns);
      }
      return Error{.code = ErrorCode::kCancelled,
                   .message = fmt::format("\"{}\" had not ended after {:.1f} s", fmt::join(arguments, " "),
                                          static_cast<double>(options.timeout_ns) / 1e9)};
    }
  }
  result.exit_status = ShellStatus(*status);
  return result;
}

std::vector<std::string> EnvironmentWithout(const std::vector<std::string>& prefixes) {
  std::vector<std::string> kept;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool dropped =
        std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return text.starts_with(p); });
    if (!dropped) kept.emplace_back(text);
  }
  return kept;
}

}  // namespace lockstep
