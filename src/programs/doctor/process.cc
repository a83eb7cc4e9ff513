// Why a process with PyTorch is not registered, as far as can be told from outside.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "node/control/api/capture_risk.h"
#include "node/local/kineto_config.h"
#include "node/local/kineto_sockets.h"
#include "programs/doctor/check.h"

namespace lockstep::doctor {
namespace {

constexpr double kStartingS = 30;  // `import torch` takes seconds, on a cold file system many.

const std::string* ProcessVariable(const local::TorchProcess& process, const char* name) {
  const auto found = process.kineto.find(name);
  return found == process.kineto.end() ? nullptr : &found->second;
}

bool IsRegistered(const NodeFacts& facts, const local::TorchProcess& process) {
  return std::ranges::any_of(facts.registered, [&process](const control::Process& known) {
    return known.pid == process.pid && (known.start_ticks == 0 || known.start_ticks == process.start_ticks);
  });
}

// A forked DataLoader worker has its parent's library without the threads in it: it cannot register, and need not.
bool IsForkedHelper(const NodeFacts& facts, const local::TorchProcess& process) {
  return std::ranges::any_of(facts.processes, [&process](const local::TorchProcess& other) {
    return other.pid == process.parent && other.command == process.command;
  });
}

struct Reason {
  std::string finding;
  std::string advice;
};

// A fault of the PyTorch that it runs; empty: none is known.
Reason FaultOfVersion(const local::TorchProcess& process) {
  const local::TorchVersion& torch = process.torch;
  if (torch.major == 1) {
    return {fmt::format("PyTorch {} does not register with a daemon reliably", torch.text), "use PyTorch 2.3 or newer"};
  }
  if (torch.IsBetween(0, 2) && !process.has_device_build) {
    return {fmt::format("CPU builds of PyTorch 2.0 to 2.2 never register (this is {})", torch.text),
            "use PyTorch 2.3 or newer, or torch.profiler in the job (lockstep.profiler)"};
  }
  if (torch.IsBetween(3, 4) && ProcessVariable(process, "KINETO_DAEMON_INIT_DELAY_S") != nullptr) {
    return {fmt::format("KINETO_DAEMON_INIT_DELAY_S keeps PyTorch {} from registering", torch.text),
            "start it without that variable"};
  }
  if (torch.IsBetween(4, 4)) {
    return {"PyTorch 2.4 begins with its profiler in a static initialiser, which can fail", "use PyTorch 2.5 or newer"};
  }
  if (torch.IsBetween(3, 6) && process.has_device_build) {
    return {fmt::format("CUDA builds of PyTorch 2.3 to 2.6 may not register (this is {})", torch.text),
            "use PyTorch 2.7 or newer"};
  }
  return {};
}

Reason FaultOfSocketFolder(const local::TorchProcess& process, const std::string& folder) {
  if (folder.size() > local::kMaxSocketFolderBytes) {
    return {fmt::format("its KINETO_IPC_SOCKET_DIR has {} characters, more than {}", folder.size(),
                        local::kMaxSocketFolderBytes),
            "start it with a shorter one"};
  }
  struct stat info = {};
  if (::stat((process.root + folder).c_str(), &info) != 0) {
    return {fmt::format("the folder of its KINETO_IPC_SOCKET_DIR, {}, is not there", folder),
            "make it (mode 1777) and restart the process: Kineto looks once"};
  }
  if (!process.has_endpoint) {
    return {fmt::format("it has no socket in {}: the folder was not there, or closed to it, when it started", folder),
            "restart it: Kineto looks once"};
  }
  return {};
}

Reason WhyUnregistered(const NodeFacts& facts, const local::TorchProcess& process) {
  if (!process.environment_is_readable) {
    return {"its environment cannot be read, so the reason is unknown", "run 'lockstep doctor' as its user or as root"};
  }
  if (ProcessVariable(process, "KINETO_USE_DAEMON") == nullptr) {
    return {"was started without KINETO_USE_DAEMON=1", "start it with 'lockstep run -- CMD'; it cannot be added later"};
  }
  if (Reason fault = FaultOfVersion(process); !fault.finding.empty()) return fault;
  const std::string* folder = ProcessVariable(process, "KINETO_IPC_SOCKET_DIR");
  const bool has_folder = folder != nullptr && !folder->empty();
  if (has_folder) {
    if (Reason fault = FaultOfSocketFolder(process, *folder); !fault.finding.empty()) return fault;
  } else if (!process.same_network) {
    return {
        "is in another network namespace (a container?) and cannot reach a daemon of this one",
        "start it with 'lockstep run --socket-dir DIR' and DIR mounted at the same path, or share the host's network"};
  }
  if (process.age_s < kStartingS) return {"seems to be still starting", "look again in half a minute"};
  if (!process.has_endpoint) {
    return {"its profiler library has not started",
            "a PyTorch built without Kineto cannot be captured, nor used with lockstep.profiler and torch.profiler"};
  }
  if (!facts.daemon) return {"would register, but no daemon answers", "see 'daemon' above"};
  return {has_folder
              ? fmt::format("uses {}, which the daemon that answers does not serve, or it has just started", *folder)
              : "asks, but the daemon that answers does not know it (yet)",
          "look again in ten seconds; then see 'kineto_socket' and 'socket_folder' above"};
}

// What is wrong with a process's base configuration; only versions that need it are named.
Reason FaultOfConfig(const local::TorchProcess& process) {
  const std::string* own = ProcessVariable(process, "KINETO_CONFIG");
  const std::string path = own != nullptr && !own->empty() ? *own : local::kSystemBaseConfig;
  const local::BaseConfig config = local::ReadBaseConfig(process.root + path);
  if ((config.readable && !config.empty) || !process.torch.IsBetween(3, 9)) return {};
  return {fmt::format("PyTorch {} can crash at its start without a base configuration, and {} {}", process.torch.text,
                      path, config.readable ? "is empty" : "is not there"),
          "start such jobs with 'lockstep run', or install that file on the node"};
}

}  // namespace

void CheckProcesses(const NodeFacts& facts, std::vector<Check>* checks) {
  size_t looked_at = 0;
  for (const local::TorchProcess& process : facts.processes) {
    if (IsForkedHelper(facts, process)) continue;
    ++looked_at;
    const std::string subject = fmt::format("{}", process.pid);
    const std::string what =
        fmt::format("{}, PyTorch {}", process.command, process.torch.major ? process.torch.text : "?");
    if (!IsRegistered(facts, process)) {
      const Reason reason = WhyUnregistered(facts, process);
      checks->push_back({"process", subject, CheckStatus::kProblem,
                         fmt::format("not registered ({}): {}", what, reason.finding), reason.advice});
      continue;
    }
    const std::string* use = ProcessVariable(process, "KINETO_USE_DAEMON");
    const Reason fault = FaultOfConfig(process);
    if (!fault.finding.empty()) {
      checks->push_back({"process", subject, CheckStatus::kWarning,
                         fmt::format("registered ({}): {}", what, fault.finding), fault.advice});
    } else if (use != nullptr && use->empty()) {
      checks->push_back({"process", subject, CheckStatus::kWarning,
                         fmt::format("registered ({}), but KINETO_USE_DAEMON is empty: it counts no iterations", what),
                         "capture it by --duration; start it with KINETO_USE_DAEMON=1"});
    } else {
      checks->push_back({"process", subject, CheckStatus::kOk, fmt::format("registered ({})", what), ""});
    }
  }
  if (looked_at == 0) checks->push_back({"process", "", CheckStatus::kOk, "no process with PyTorch runs here", ""});
}

void CheckCaptures(const NodeFacts& facts, std::vector<Check>* checks) {
  size_t trainers = 0;
  size_t at_risk = 0;
  std::string risk;
  for (const control::Process& process : facts.registered) {
    if (process.role != control::ProcessRole::kTrainer) continue;
    ++trainers;
    const std::string its = control::CaptureRisk(process);
    if (its.empty()) continue;
    ++at_risk;
    if (risk.empty()) risk = its;
  }
  if (at_risk > 0) {
    checks->push_back({"captures", "", CheckStatus::kWarning,
                       fmt::format("of {} of {} processes: {}", at_risk, trainers, risk), control::kCaptureRiskRemedy});
  } else if (trainers > 0) {
    checks->push_back(
        {"captures", "", CheckStatus::kOk, "a capture is safe for all registered processes, as far as is known", ""});
  }
}

std::vector<Check> CheckNode(const NodeFacts& facts) {
  std::vector<Check> checks;
  CheckDaemon(facts, &checks);
  CheckKinetoSocket(facts, &checks);
  CheckSocketFolders(facts, &checks);
  CheckBaseConfig(facts, &checks);
  CheckProcesses(facts, &checks);
  CheckCaptures(facts, &checks);
  CheckClock(&checks);
  CheckSpace(facts, &checks);
  CheckAccess(facts, &checks);
  return checks;
}

const char* CheckStatusName(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk: return "ok";
    case CheckStatus::kWarning: return "warning";
    case CheckStatus::kProblem: return "problem";
    case CheckStatus::kSkipped: return "skipped";
  }
  return "";
}

}  // namespace lockstep::doctor
