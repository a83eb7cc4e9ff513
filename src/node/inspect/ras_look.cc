#include "node/inspect/ras_look.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text_scan.h"
#include "base/unique_fd.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/ras_client.h"
#include "node/inspect/tcp_sockets.h"

namespace lockstep::inspect {
namespace {

constexpr std::string_view kDefaultAddress = "localhost:28028";  // NCCL's.
constexpr size_t kMostThreads = 4096;                            // Of one process.
constexpr int64_t kLongestQuestionNs = 5'000'000'000;

/// Its value in the first process that has it.
std::string SettingOf(const std::vector<proc::JobProcess>& processes, std::string_view name) {
  for (const proc::JobProcess& process : processes) {
    for (const std::string& setting : process.details.settings) {
      if (setting.size() > name.size() && setting.starts_with(name) && setting[name.size()] == '=') {
        return setting.substr(name.size() + 1);
      }
    }
  }
  return {};
}

std::optional<uint16_t> PortOf(std::string_view address) {
  const auto port = WholeNumber<uint16_t>(address.substr(address.rfind(':') + 1));
  return port && *port != 0 ? port : std::nullopt;
}

/// A process uses NCCL if it has NCCL's threads or those of PyTorch's NCCL process group, by their names; a mapped
/// library does not mean that it is used.
bool UsesNccl(int32_t pid) {
  for (const int64_t tid : ListNumbers(fmt::format("/proc/{}/task", pid), kMostThreads)) {
    const std::string name = ReadProcFile(pid, fmt::format("task/{}/comm", tid), 64).value_or("");
    if (name.starts_with("NCCL ") || name.starts_with("ncclRas") || name.starts_with("pt_nccl_")) return true;
  }
  return false;
}

/// Takes this thread to the network in which `pid` listens. Errors: kPermissionDenied.
Status EnterNetworkOf(int32_t pid) {
  const UniqueFd space(::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat its = {};
  struct stat own = {};
  if (!space.valid() || ::fstat(space.get(), &its) != 0 || ::stat("/proc/self/ns/net", &own) != 0) {
    return {};  // It cannot be told: a connection will show.
  }
  if (its.st_ino == own.st_ino && its.st_dev == own.st_dev) return {};
  if (::setns(space.get(), CLONE_NEWNET) == 0) return {};
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("process {} listens in a network namespace of its own, which only root may enter", pid)};
}

const char* RemedyFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kPermissionDenied: return "let lockstepd run as root, or run lockstep in the job's container";
    case ErrorCode::kInvalidArgument: return "set NCCL_RAS_ADDR=localhost:PORT";
    case ErrorCode::kCorruptData: return "set NCCL_RAS_ADDR to a port that no other process uses";
    default: return "run ncclras -v -f json yourself, twice";
  }
}

}  // namespace

std::string RasAddressOf(const std::vector<proc::JobProcess>& processes) {
  std::string address = SettingOf(processes, "NCCL_RAS_ADDR");
  if (address.empty()) return std::string(kDefaultAddress);
  return address;
}

RasLook LookAtRas(const std::vector<proc::JobProcess>& processes, const std::string& host,
                  const RasLookOptions& options) {
  RasLook look;
  const auto miss = [&](std::string reason, std::string remedy) {
    look.missing.push_back(
        {.rank = {}, .host = host, .what = "ras", .reason = std::move(reason), .remedy = std::move(remedy)});
  };
  const std::string address = RasAddressOf(processes);
  const std::optional<uint16_t> port = PortOf(address);
  const auto listens = [&](const proc::JobProcess& process) {
    const std::vector<uint16_t> ports = ReadListeningPorts(process.pid);
    return port && std::find(ports.begin(), ports.end(), *port) != ports.end();
  };
  const auto holder = std::find_if(processes.begin(), processes.end(), listens);
  if (holder == processes.end()) {
    const auto uses = [](const proc::JobProcess& process) { return UsesNccl(process.pid); };
    if (std::none_of(processes.begin(), processes.end(), uses)) return look;
    if (SettingOf(processes, "NCCL_RAS_ENABLE") == "0") {
      miss("NCCL's RAS is switched off (NCCL_RAS_ENABLE=0)", "start the job without NCCL_RAS_ENABLE=0");
    } else {
      miss(fmt::format("no process of the job here listens for NCCL's RAS at {}: NCCL is older than 2.24, or another "
                       "job of this node has the port",
                       address),
           "use NCCL 2.24 or newer, and for each job of a node another port: NCCL_RAS_ADDR=localhost:28029");
    }
    return look;
  }
  RasOptions question;
  question.address = address;
  question.max_bytes = options.max_bytes;
  const int64_t left_ns = options.deadline_monotonic_ns - MonotonicNs();
  const int64_t interval_ns = std::clamp<int64_t>(left_ns / 3, 0, options.interval_ns);
  question.timeout_ns = std::clamp<int64_t>((left_ns - interval_ns) / 2, 100'000'000, kLongestQuestionNs);
  std::optional<Error> error;
  // A thread of its own: where it goes to another network, nothing else of this process goes along.
  std::jthread([&] {
    if (Status entered = EnterNetworkOf(holder->pid); !entered) {
      error = entered.error();
      return;
    }
    Result<std::vector<RasAnswer>> answers = AskRasTwice(question, interval_ns);
    if (!answers) {
      error = answers.error();
      return;
    }
    for (RasAnswer& answer : *answers) {
      look.replies.push_back({.address = address,
                              .text = std::move(answer.text),
                              .is_json = answer.is_json,
                              .asked_unix_ns = answer.asked_unix_ns});
    }
  }).join();
  if (error) {
    miss(error->message, RemedyFor(error->code));
  } else if (look.replies.size() < 2) {
    miss(fmt::format("RAS at {} answered once and not a second time, so it is not known whether its counts change",
                     address),
         "ask it again: lockstep hang, or ncclras -v -f json");
  }
  return look;
}

}  // namespace lockstep::inspect
