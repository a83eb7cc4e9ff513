#include "programs/cli/run/foreground.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/command_name.h"
#include "base/unique_fd.h"

namespace lockstep::cli {
namespace {

// SIGKILL and SIGSTOP cannot be passed on; job control (SIGTSTP, SIGCONT) goes to the whole process group anyway.
constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

bool IsIgnored(int signal_number) {
  struct sigaction action = {};
  return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// These signal every process that they started, not only the first: passing on would be a second time.
bool SignalsWholeTree(pid_t sender) {
  const std::string name = CommandName(sender);
  return name == "slurmstepd" || name == "orted" || name == "prted";
}

bool ReachedTheCommandToo(const siginfo_t& info) {
  // The kernel itself sends for the terminal (Ctrl-C, hang-up, a new size), to the foreground process group.
  return info.si_code == SI_KERNEL || SignalsWholeTree(info.si_pid);
}

// In the new process: only what is safe after fork. Does not return.
[[noreturn]] void BecomeCommand(const ForegroundCommand& command, char* const* arguments, const sigset_t& mask,
                                pid_t parent, int report_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCommandNotFound);
  ::signal(SIGPIPE, SIG_DFL);  // We ignore it, the command should not.
  ::signal(SIGCHLD, SIG_DFL);
  if (command.output >= 0) ::dup2(command.output, STDOUT_FILENO);
  if (command.error >= 0) ::dup2(command.error, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(report_fd, &error, sizeof error);
  ::_exit(error == ENOENT ? kCommandNotFound : kCommandNotExecutable);
}

Error CannotStart(const std::string& program, int error) {
  if (error == ENOENT) {
    const char* where = program.find('/') == std::string::npos ? " in PATH" : "";
    return Error{ErrorCode::kNotFound, fmt::format("{}: there is no such program{}", program, where)};
  }
  return Error{error == EACCES ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               fmt::format("{}: cannot be run: {}", program, std::strerror(error))};
}

int ShellStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// Reaps processes that have ended, up to the command; true once the command is reaped. A process that ended after it is
// left: it may be the command's successor, whose status counts.
bool Reap(pid_t command, int* status) {
  int wait_status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    if (pid != command) continue;
    *status = ShellStatus(wait_status);
    return true;
  }
  return false;
}

// Its words for exec, and its variables set in our own environment: execvp looks PATH up there, and nothing of ours
// reads these. The words lie in `command`.
std::vector<char*> Prepare(const ForegroundCommand& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  for (const auto& [name, value] : command.environment) ::setenv(name.c_str(), value.c_str(), 1);
  return arguments;
}

std::vector<pid_t> ChildrenOf(pid_t process) {
  std::vector<pid_t> children;
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

// A child of ours by that name that we have not reaped; nullopt: there is none.
std::optional<pid_t> FindChild(const std::string& wanted) {
  for (const pid_t child : ChildrenOf(::getpid())) {
    if (CommandName(child) == wanted) return child;
  }
  return std::nullopt;
}

// Passes signals on to the command until it ends. `targets`: whom a signal is for.
template <typename Targets>
int WaitFor(pid_t pid, const sigset_t& awaited, const Targets& targets) {
  int status = 0;
  while (!Reap(pid, &status)) {
    siginfo_t info = {};
    const int signal_number = ::sigwaitinfo(&awaited, &info);
    if (signal_number <= 0 || signal_number == SIGCHLD) continue;
    for (const pid_t target : targets(info))
      ::kill(target, signal_number);  // Not reaped yet: the pid is still its own.
  }
  return status;
}

}  // namespace

Error ReplaceByCommand(const ForegroundCommand& command) {
  const std::vector<char*> arguments = Prepare(command);
  ::signal(SIGPIPE, SIG_DFL);  // We ignore it, the command should not; what we handle exec resets by itself.
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  ::signal(SIGPIPE, SIG_IGN);
  return CannotStart(command.arguments[0], error);
}

Result<int> RunInForeground(const ForegroundCommand& command) {
  const std::vector<char*> arguments = Prepare(command);

  sigset_t awaited;
  sigset_t before;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int signal_number : kPassedOn) {
    if (!IsIgnored(signal_number)) sigaddset(&awaited, signal_number);
  }
  ::signal(SIGCHLD, SIG_DFL);  // Inherited as ignored, nobody's end could be waited for.
  ::sigprocmask(SIG_BLOCK, &awaited, &before);

  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return CannotStart(command.arguments[0], errno);
  UniqueFd reader(report[0]);
  UniqueFd writer(report[1]);
  if (!command.successor.empty()) ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // Else what it leaves goes to process 1.
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return CannotStart(command.arguments[0], errno);
  if (pid == 0) BecomeCommand(command, arguments.data(), before, parent, writer.get());
  writer = UniqueFd();

  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(reader.get(), &error, sizeof error)) < 0 && errno == EINTR) continue;
  if (got == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return CannotStart(command.arguments[0], error);
  }

  int status = WaitFor(pid, awaited, [pid](const siginfo_t& info) {
    return ReachedTheCommandToo(info) ? std::vector<pid_t>() : std::vector<pid_t>{pid};
  });
  if (!command.successor.empty()) {
    // What runs below it has a session of its own, and no signal but ours.
    if (const auto left = FindChild(command.successor)) {
      status = WaitFor(*left, awaited, [&](const siginfo_t&) { return ChildrenOf(*left); });
    }
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace lockstep::cli
