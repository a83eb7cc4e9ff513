#include "node/local/private_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/nanoseconds.h"
#include "base/output_file.h"
#include "base/system_error.h"
#include "node/control/client/node_client.h"
#include "node/local/kineto_config.h"
#include "node/local/kineto_sockets.h"
#include "node/local/runtime_folder.h"

namespace lockstep::local {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr int64_t kDaemonAnswerNs = kSecondNs;
// A daemon that has just ended may hold Kineto's name for a moment longer.
constexpr auto kNamePatience = std::chrono::seconds(3);

// The lock is never waited for in the kernel, because its holder may hang.
Result<UniqueFd> LockedFile(const std::string& path, int lock, Clock::time_point deadline) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return SystemError(path, "open", errno);
  while (::flock(fd.get(), lock | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return SystemError(path, "lock", errno);
    if (Clock::now() >= deadline) {
      return Error{
          .code = ErrorCode::kCancelled,
          .message = "has been locked by another process for too long; has your lockstepd stopped or does it hang?",
          .file = path};
    }
    std::this_thread::sleep_for(kPause);
  }
  return fd;
}

// Beside this program, else in PATH.
Result<std::string> DaemonProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::string beside = (self.parent_path() / "lockstepd").string();
    if (::access(beside.c_str(), X_OK) == 0) return beside;
  }
  const char* path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const std::string candidate = fmt::format("{}/lockstepd", folders.substr(0, end));
    if (end > 0 && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return Error{ErrorCode::kNotFound, "there is no lockstepd beside lockstep or in PATH"};
}

std::string TomlQuoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

struct Launch {
  std::string program;
  std::string config;
  std::string lease;
  std::string log;
};

// In the new process: a session of its own, nothing of ours open, every signal as it was born. Does not return.
[[noreturn]] void BecomeDaemon(const Launch& launch) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  const int log = ::open(launch.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log >= 0 ? log : null, STDOUT_FILENO);
  ::dup2(log >= 0 ? log : null, STDERR_FILENO);
  ::close_range(3, ~0U, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal_number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::signal(signal_number, SIG_DFL);
  [[maybe_unused]] const int moved = ::chdir("/");  // It keeps no file system of the job's busy.
  ::execl(launch.program.c_str(), "lockstepd", "--config", launch.config.c_str(), "--lease", launch.lease.c_str(),
          static_cast<char*>(nullptr));
  ::_exit(127);
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last.substr(0, 500);
}

class Starter {
 public:
  explicit Starter(const PrivateDaemonOptions& options)
      : options_(options), deadline_(Clock::now() + std::chrono::nanoseconds(options.wait_ns)) {}

  Result<NodeDaemon> Run() {
    // The lease first: a private daemon that answers while we hold it stays.
    ASSIGN_OR_RETURN(UniqueFd lease, LockedFile(File("lease"), LOCK_SH, deadline_));
    Result<NodeDaemon> daemon = AnsweringDaemon();
    if (!daemon) {
      ASSIGN_OR_RETURN(const UniqueFd turn, LockedFile(File("start.lock"), LOCK_EX, deadline_));
      // Another one may have started it meanwhile, and it may be slow to answer.
      do daemon = AnsweringDaemon();
      while (!daemon && daemon.error().code == ErrorCode::kCancelled && Clock::now() < deadline_);
      if (!daemon) daemon = Start();
    }
    if (daemon) daemon->lease = std::move(lease);
    return daemon;
  }

 private:
  std::string File(const char* name) const { return fmt::format("{}/{}", options_.runtime_folder, name); }

  Result<NodeDaemon> Start() {
    Launch launch;
    ASSIGN_OR_RETURN(launch.program, DaemonProgram());
    launch.config = File("lockstepd.toml");
    launch.lease = File("lease");
    launch.log = File("lockstepd.log");
    const bool has_name = WaitForName();
    std::string socket_folder = options_.socket_folder;
    const SocketOwner owner = has_name ? SocketOwner() : OwnerOfAbstractSocket(kKinetoName);
    if (!has_name && socket_folder.empty()) {
      socket_folder = File("kineto");
      RETURN_IF_ERROR(PrepareSocketFolder(socket_folder));
    }
    RETURN_IF_ERROR(WriteOutputFile(launch.config, [&](std::ostream& out) {
      out << "# Of a daemon that 'lockstep run --with-daemon' started; written anew each time.\n"
          << "socket = " << TomlQuoted(OwnDaemonSocket(options_.runtime_folder)) << "\nlisten = []\n"
          << "state = " << TomlQuoted(File("state"))
          << "\n\n[kineto]\nname = " << TomlQuoted(has_name ? kKinetoName : "") << "\ndirectories = ["
          << (socket_folder.empty() ? "" : TomlQuoted(socket_folder)) << "]\n";
    }));
    const pid_t pid = ::fork();
    if (pid < 0) return SystemError(launch.program, "start", errno);
    if (pid == 0) BecomeDaemon(launch);
    Result<NodeDaemon> daemon = WaitForAnswer(pid, launch);
    if (daemon && !has_name) {
      daemon->note =
          fmt::format("Kineto's socket on this node is used by {}; this job's daemon uses the folder {} instead",
                      OwnerText(owner), socket_folder);
    }
    return daemon;
  }

  bool WaitForName() const {
    const auto until = std::min(deadline_, Clock::now() + kNamePatience);
    while (OwnerOfAbstractSocket(kKinetoName).bound) {
      if (Clock::now() >= until) return false;
      std::this_thread::sleep_for(kPause);
    }
    return true;
  }

  Result<NodeDaemon> WaitForAnswer(pid_t pid, const Launch& launch) const {
    while (true) {
      Result<NodeDaemon> daemon = AnsweringDaemon();
      if (daemon) {
        daemon->started = true;
        return daemon;
      }
      if (::waitpid(pid, nullptr, WNOHANG) == pid) {
        return Error{ErrorCode::kFailedPrecondition,
                     fmt::format("{} ended at once: {}", launch.program, LastLine(launch.log))};
      }
      if (Clock::now() >= deadline_) {
        ::kill(pid, SIGTERM);
        return Error{ErrorCode::kCancelled, fmt::format("{} does not answer ({}); see {}", launch.program,
                                                        daemon.error().ToString(), launch.log)};
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  const PrivateDaemonOptions& options_;
  const Clock::time_point deadline_;
};

}  // namespace

Result<NodeDaemon> ObtainDaemon(const PrivateDaemonOptions& options) { return Starter(options).Run(); }

Result<NodeDaemon> AnsweringDaemon() {
  ASSIGN_OR_RETURN(const auto client, control::ConnectLocal(kDaemonAnswerNs));
  NodeDaemon daemon;
  ASSIGN_OR_RETURN(daemon.status, client->Status(kDaemonAnswerNs));
  daemon.socket = client->endpoint().unix_path;
  return daemon;
}

std::string SocketFolderOf(const control::NodeStatus& status) {
  std::string folder;
  for (const std::string& socket : status.kineto_sockets) {
    if (socket == fmt::format("abstract:{}", kKinetoName)) return {};
    if (folder.empty() && socket.starts_with('/')) folder = std::filesystem::path(socket).parent_path().string();
  }
  return folder;
}

}  // namespace lockstep::local
