// What `lockstep doctor` looks at on the node as a whole.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/parent_folder.h"
#include "node/local/kineto_config.h"
#include "node/local/kineto_sockets.h"
#include "programs/doctor/check.h"

namespace lockstep::doctor {
namespace {

constexpr uint64_t kLittleBytes = uint64_t{1} << 30;  // A trace of a busy rank is tens to hundreds of MB.
constexpr uint64_t kNothingBytes = uint64_t{50} << 20;
constexpr int64_t kPoorClockUs = 50'000;  // What a common start on several nodes is held to.

const char* const kStartAdvice =
    "start lockstepd as a service (systemctl start lockstepd), or the job with 'lockstep run --with-daemon -- CMD'";

// Folders in which Kineto's sockets are, or are looked for: the daemon's, ours, and the processes'.
std::set<std::string> SocketFolders(const NodeFacts& facts) {
  std::set<std::string> folders;
  if (facts.daemon) {
    for (const std::string& socket : facts.daemon->kineto_sockets) {
      if (socket.starts_with('/')) folders.insert(ParentFolder(socket));
    }
  }
  if (const char* own = std::getenv("KINETO_IPC_SOCKET_DIR"); own != nullptr && *own != '\0') folders.insert(own);
  for (const local::TorchProcess& process : facts.processes) {
    const auto folder = process.kineto.find("KINETO_IPC_SOCKET_DIR");
    if (folder != process.kineto.end() && !folder->second.empty()) folders.insert(folder->second);
  }
  return folders;
}

Check CheckSocketFolder(const NodeFacts& facts, const std::string& folder) {
  Check check{.id = "socket_folder", .subject = folder, .status = CheckStatus::kProblem, .finding = {}, .advice = {}};
  const std::string fault = local::SocketFolderFault(folder);
  struct stat info = {};
  if (!fault.empty()) {
    check.finding = fault;
    check.advice = "give KINETO_IPC_SOCKET_DIR the plain path of a folder, at most 54 characters";
  } else if (::stat(folder.c_str(), &info) != 0) {
    check.finding = fmt::format("cannot be looked at: {}", std::strerror(errno));
    check.advice = "make it (mode 1777) before the jobs start: a process that starts without it never registers";
  } else if (!S_ISDIR(info.st_mode)) {
    check.finding = "is not a folder";
  } else if ((info.st_mode & 0777) != 0777 && info.st_uid != ::geteuid()) {
    check.finding = fmt::format("has mode {:04o}: processes of users other than {} cannot make their sockets in it",
                                info.st_mode & 07777, local::UserName(info.st_uid));
    check.advice = fmt::format("chmod 1777 {}", folder);
  } else if ((info.st_mode & 0002) != 0 && (info.st_mode & S_ISVTX) == 0) {
    check.status = CheckStatus::kWarning;
    check.finding = fmt::format("has mode {:04o}: any user can replace the daemon's socket", info.st_mode & 07777);
    check.advice = fmt::format("chmod 1777 {}", folder);
  } else if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    check.status = CheckStatus::kWarning;
    check.finding =
        fmt::format("belongs to user {}, who can replace the daemon's socket", local::UserName(info.st_uid));
    check.advice = "let it belong to root or to the daemon's user";
  } else {
    const std::string socket = folder + "/" + local::kKinetoName;
    const local::SocketOwner owner = local::OwnerOfSocket(socket);
    const bool ours =
        facts.daemon && std::ranges::find(facts.daemon->kineto_sockets, socket) != facts.daemon->kineto_sockets.end();
    if (ours) {
      check.status = CheckStatus::kOk;
      check.finding = "is served by the daemon";
    } else if (owner.bound) {
      check.finding = fmt::format("{} serves it, not a lockstepd that answers", local::OwnerText(owner));
      check.advice = "stop that one, or use it: 'lockstep capture --dynolog HOST' where it is Dynolog";
    } else {
      check.finding = "no daemon serves it";
      check.advice =
          "add it to [kineto] directories in lockstepd's configuration, or 'lockstep run --with-daemon "
          "--socket-dir " +
          folder + "'";
    }
  }
  return check;
}

void CheckFreeSpace(const std::string& folder, const char* what, std::vector<Check>* checks) {
  Check check{.id = "space", .subject = folder, .status = CheckStatus::kOk, .finding = {}, .advice = {}};
  struct statvfs info = {};
  if (::statvfs(folder.c_str(), &info) != 0) {
    check.status = CheckStatus::kProblem;
    check.finding = fmt::format("{}: {}", what, std::strerror(errno));
    check.advice = "make the folder, or choose another one with -o";
  } else {
    const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    check.finding = fmt::format("{}: {:.1f} GB free", what, static_cast<double>(free_bytes) / 1e9);
    if (free_bytes < kNothingBytes || info.f_favail == 0) {
      check.status = CheckStatus::kProblem;
    } else if (free_bytes < kLittleBytes) {
      check.status = CheckStatus::kWarning;
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      check.status = CheckStatus::kProblem;
      check.finding += fmt::format(", and you cannot write there: {}", std::strerror(errno));
    }
    if (check.status != CheckStatus::kOk) check.advice = "make room: a rank's trace is tens to hundreds of MB";
  }
  checks->push_back(std::move(check));
}

// The options of /proc's mount that hide processes of others: "hidepid=2", "hidepid=invisible".
std::string HidePid() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string found;
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" /proc ") == std::string::npos) continue;
    const size_t at = line.find("hidepid=");
    if (at != std::string::npos) found = line.substr(at, line.find_first_of(", \n", at) - at);
  }
  return found == "hidepid=0" || found == "hidepid=off" ? "" : found;
}

}  // namespace

void CheckDaemon(const NodeFacts& facts, std::vector<Check>* checks) {
  if (!facts.daemon) {
    checks->push_back({"daemon", "", CheckStatus::kProblem, facts.daemon_error, kStartAdvice});
    return;
  }
  const control::NodeStatus& daemon = *facts.daemon;
  checks->push_back(
      {"daemon", facts.daemon_socket, CheckStatus::kOk,
       fmt::format("lockstepd {} answers (process {} of user {}, {} processes registered)", daemon.version,
                   daemon.daemon_pid, local::UserName(daemon.daemon_uid), daemon.process_count),
       ""});
  for (const std::string& problem : daemon.problems) {
    checks->push_back({"daemon", facts.daemon_socket, CheckStatus::kWarning, "it says: " + problem, ""});
  }
}

void CheckKinetoSocket(const NodeFacts& facts, std::vector<Check>* checks) {
  const local::SocketOwner owner = local::OwnerOfAbstractSocket(local::kKinetoName);
  Check check{.id = "kineto_socket",
              .subject = std::string("@") + local::kKinetoName,
              .status = CheckStatus::kProblem,
              .finding = {},
              .advice = {}};
  const bool ours =
      facts.daemon && std::ranges::find(facts.daemon->kineto_sockets, fmt::format("abstract:{}", local::kKinetoName)) !=
                          facts.daemon->kineto_sockets.end();
  if (!owner.bound && ours) {
    check.finding = "the daemon serves it in another network namespace, not for processes that start here";
    check.advice = "start the daemon here, or let processes use a socket folder (KINETO_IPC_SOCKET_DIR)";
  } else if (ours) {
    check.status = CheckStatus::kOk;
    check.finding = "PyTorch's processes find the daemon at it";
  } else if (owner.bound) {
    check.finding = fmt::format("{} serves it: PyTorch's processes register there, not with your lockstepd",
                                local::OwnerText(owner));
    check.advice = owner.program == "dynolog"
                       ? "stop Dynolog and start lockstepd, or use Dynolog's: lockstep capture --dynolog HOST"
                       : "'lockstep run --with-daemon' uses its own socket folder instead; or install lockstepd as a "
                         "service for all users";
  } else if (facts.daemon && !facts.daemon->kineto_sockets.empty()) {
    check.status = CheckStatus::kWarning;
    check.finding =
        fmt::format("no process serves it: only processes with KINETO_IPC_SOCKET_DIR find the daemon (it serves {})",
                    fmt::join(facts.daemon->kineto_sockets, ", "));
  } else {
    check.finding = "no process serves it, so no PyTorch process can register";
    check.advice = facts.daemon ? "set [kineto] name in lockstepd's configuration" : kStartAdvice;
  }
  checks->push_back(std::move(check));
}

void CheckSocketFolders(const NodeFacts& facts, std::vector<Check>* checks) {
  for (const std::string& folder : SocketFolders(facts)) checks->push_back(CheckSocketFolder(facts, folder));
}

void CheckBaseConfig(const NodeFacts& /*facts*/, std::vector<Check>* checks) {
  const char* own = std::getenv("KINETO_CONFIG");
  const local::BaseConfig config =
      local::ReadBaseConfig(own != nullptr && *own != '\0' ? own : local::kSystemBaseConfig);
  Check check{.id = "base_config", .subject = config.path, .status = CheckStatus::kOk, .finding = {}, .advice = {}};
  if (!config.readable || config.empty) {
    check.status = CheckStatus::kWarning;
    check.finding = config.readable ? "is empty" : "is not there, or cannot be read";
    check.finding +=
        ": PyTorch 2.3 to 2.9 can crash at 'import torch' while a daemon answers, and processes ask every 5 s";
    check.advice = "start jobs with 'lockstep run', or install the file that comes with lockstepd";
  } else if (!config.poll_seconds) {
    check.finding = fmt::format("is there; processes ask for a capture each {} s", local::kDefaultPollSeconds);
    check.advice = "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1 in it makes captures begin sooner";
  } else {
    check.finding = fmt::format("is there; processes ask for a capture each {} s", *config.poll_seconds);
  }
  checks->push_back(std::move(check));
}

void CheckClock(std::vector<Check>* checks) {
  timex clock = {};
  const int state = ::adjtimex(&clock);
  Check check{.id = "clock", .subject = {}, .status = CheckStatus::kOk, .finding = {}, .advice = {}};
  if (state < 0) {
    check.status = CheckStatus::kWarning;
    check.finding = fmt::format("its synchronisation cannot be read: {}", std::strerror(errno));
  } else if (state == TIME_ERROR || (clock.status & STA_UNSYNC) != 0) {
    check.status = CheckStatus::kWarning;
    check.finding =
        "the kernel's clock is not synchronised: a common start on several nodes is off by the difference of the "
        "clocks";
    check.advice = "run chrony, ntpd or systemd-timesyncd on every node (inside a virtual machine the host may do it)";
  } else {
    check.finding = fmt::format("synchronised, off by at most {:.1f} ms", static_cast<double>(clock.maxerror) / 1e3);
    if (clock.maxerror > kPoorClockUs) {
      check.status = CheckStatus::kWarning;
      check.advice =
          "a common start on several nodes is no more exact than that; is its time server far away, or down?";
    }
  }
  checks->push_back(std::move(check));
}

void CheckSpace(const NodeFacts& facts, std::vector<Check>* checks) {
  CheckFreeSpace("/tmp", "where processes write their traces", checks);
  CheckFreeSpace(facts.output_folder, "where captures are brought", checks);
}

void CheckAccess(const NodeFacts& facts, std::vector<Check>* checks) {
  Check check{.id = "access", .subject = "/proc", .status = CheckStatus::kOk, .finding = {}, .advice = {}};
  const std::string hidden = HidePid();
  std::string scope;
  std::getline(std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> std::ws, scope);
  const bool daemon_is_root = facts.daemon && facts.daemon->daemon_uid == 0;
  if (!hidden.empty() && !daemon_is_root) {
    check.status = CheckStatus::kWarning;
    check.finding = fmt::format("is mounted with {}: ranks and jobs of other users' processes are not visible", hidden);
    check.advice = "run lockstepd as root, or with the group that hidepid lets through (gid=)";
  } else {
    check.finding = "shows what the daemon needs of processes (rank, job) ";
    check.finding += hidden.empty() ? "and hides none" : fmt::format("to root, despite {}", hidden);
  }
  if (!scope.empty() && scope != "0") {
    check.finding += fmt::format("; ptrace_scope is {}, which does not affect captures", scope);
  }
  checks->push_back(std::move(check));
}

}  // namespace lockstep::doctor
