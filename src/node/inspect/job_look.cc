#include "node/inspect/job_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "node/inspect/inspect.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/ras_look.h"
#include "node/inspect/rings.h"
#include "node/proc/job_processes.h"

namespace lockstep::inspect {
namespace {

using control::Inspection;
using control::InspectionDepth;
using control::InspectionSpec;

constexpr size_t kMostProcesses = 4096;

/// Why nothing was found, as far as the caller may know.
Error NothingFound(const InspectionSpec& spec, const proc::JobProcesses& found, const std::string& host) {
  if (found.forbidden_count > 0) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("{} of the processes on {} belong to other users: only their user, root and the capture "
                             "group may look at them",
                             found.forbidden_count, host)};
  }
  std::string asked = "rank of yours";
  if (!spec.pids.empty()) asked = fmt::format("process {}", fmt::join(spec.pids, ", "));
  if (!spec.job_id.empty()) asked += fmt::format(" of job {}", spec.job_id);
  return Error{ErrorCode::kNotFound, fmt::format("no {} runs on {}: a rank is known by its environment (RANK, "
                                                 "SLURM_PROCID, ...) or by the PyTorch that it has loaded",
                                                 asked, host)};
}

control::ProcessGlance GlanceAt(const proc::JobProcess& process) {
  control::ProcessGlance glance;
  glance.pid = process.pid;
  glance.start_ticks = process.details.start_ticks;
  if (!process.details.ancestors.empty()) glance.launcher_pid = process.details.ancestors.front();
  glance.uid = process.uid;
  glance.rank = process.details.rank;
  glance.world_size = process.details.world_size;
  glance.job_kind = process.details.job_kind;
  glance.job_id = process.details.job_id;
  glance.command = process.details.command;
  if (const auto seen = proc::ReadGlance(process.pid, process.details.start_ticks)) {
    if (seen->state != '?') glance.state = std::string(1, seen->state);
    glance.main_switches = seen->main_switches;
    glance.main_cpu_ns = seen->main_cpu_ns;
    glance.cpu_ns = seen->cpu_ns;
    glance.threads_cpu_ns = seen->threads_cpu_ns;
    glance.wait_channel = seen->wait_channel;
  } else {
    glance.state = "X";
  }
  return glance;
}

/// What the kernel's environment of the process tells, where the inspection itself had no better.
void Complete(const proc::ProcessDetails& details, evidence::InspectedProcess* process) {
  if (!process->rank) process->rank = details.rank;
  if (!process->local_rank) process->local_rank = details.local_rank;
  if (!process->world_size) process->world_size = details.world_size;
  if (process->job_id.empty()) process->job_id = details.job_id;
  if (process->command.empty()) process->command = details.command;
  if (process->torch_version.empty()) process->torch_version = details.torch_version;
  for (evidence::MissingEvidence& missing : process->missing) {
    if (!missing.rank) missing.rank = process->rank;
  }
}

void LookClosely(const InspectionSpec& spec, const std::vector<proc::JobProcess>& chosen, Inspection* inspection) {
  inspect::InspectOptions options;
  options.python_stacks = spec.python_stacks;
  options.native_stacks = spec.native_stacks;
  options.flight_record = spec.flight_record;
  options.devices = spec.devices;
  options.state_window_ns = spec.state_window_ns;
  options.deadline_ns = spec.deadline_ns;
  std::vector<pid_t> pids;
  for (const proc::JobProcess& process : chosen) pids.push_back(process.pid);
  inspection->processes = inspect::InspectProcesses(pids, options);
  for (size_t i = 0; i < inspection->processes.size() && i < chosen.size(); ++i) {
    Complete(chosen[i].details, &inspection->processes[i]);
  }
  if (!spec.flight_record) return;
  const auto wanted = [&](int32_t rank) {
    return spec.ranks.empty() || std::any_of(spec.ranks.begin(), spec.ranks.end(), [&](const auto& range) {
             return range.first <= rank && rank <= range.second;
           });
  };
  std::vector<evidence::InspectedProcess> ended = FindEndedRanks(chosen, inspection->processes, wanted);
  std::move(ended.begin(), ended.end(), std::back_inserter(inspection->processes));
}

/// All ranks here of the jobs that were chosen, asked for or not: any of them may be the one that answers for RAS.
std::vector<proc::JobProcess> WithSiblings(const InspectionSpec& spec, std::vector<proc::JobProcess> chosen,
                                           const std::function<bool(uint32_t uid)>& allowed) {
  if (spec.pids.empty() && spec.ranks.empty()) return chosen;
  const auto launcher = [](const proc::JobProcess& process) {
    return process.details.ancestors.empty() ? 0 : process.details.ancestors.front();
  };
  std::vector<proc::JobProcess> all = proc::FindJobProcesses({}, allowed).chosen;
  std::erase_if(all, [&](const proc::JobProcess& other) {
    return std::none_of(chosen.begin(), chosen.end(), [&](const proc::JobProcess& process) {
      return process.pid == other.pid ||
             (process.uid == other.uid && process.details.job_kind == other.details.job_kind &&
              process.details.job_id == other.details.job_id && launcher(process) == launcher(other) &&
              other.details.rank.has_value());
    });
  });
  return all;
}

void LookAtRasToo(const InspectionSpec& spec, const std::vector<proc::JobProcess>& chosen,
                  const std::function<bool(uint32_t uid)>& allowed, Inspection* inspection) {
  const int64_t deadline_ns = inspect::MonotonicNs() + spec.deadline_ns;
  inspect::RasLook look =
      inspect::LookAtRas(WithSiblings(spec, chosen, allowed), inspection->host, {.deadline_monotonic_ns = deadline_ns});
  inspection->ras = std::move(look.replies);
  std::move(look.missing.begin(), look.missing.end(), std::back_inserter(inspection->missing));
}

}  // namespace

Result<Inspection> LookAtJob(const InspectionSpec& spec, const std::function<bool(uint32_t uid)>& allowed,
                             const std::string& host) {
  proc::JobProcessSelector selector;
  selector.job_id = spec.job_id;
  selector.pids = spec.pids;
  selector.ranks = spec.ranks;
  proc::JobProcesses found = proc::FindJobProcesses(selector, allowed);
  if (found.chosen.empty()) return NothingFound(spec, found, host);
  // Beside a job's ranks, a notebook or a tool with PyTorch is not part of what was meant.
  const auto has_rank = [](const proc::JobProcess& process) { return process.details.rank.has_value(); };
  if (spec.pids.empty() && std::any_of(found.chosen.begin(), found.chosen.end(), has_rank)) {
    std::erase_if(found.chosen, [&](const proc::JobProcess& process) { return !has_rank(process); });
  }
  Inspection inspection;
  inspection.host = host;
  if (found.chosen.size() > kMostProcesses) {
    inspection.missing.push_back({.rank = {},
                                  .host = host,
                                  .what = "process",
                                  .reason = fmt::format("{} processes match; only {} are looked at at a time",
                                                        found.chosen.size(), kMostProcesses),
                                  .remedy = "name a job or ranks"});
    found.chosen.resize(kMostProcesses);
  }
  for (const proc::JobProcess& process : found.chosen) inspection.glances.push_back(GlanceAt(process));
  for (const int32_t pid : found.absent_pids) {
    inspection.missing.push_back({.rank = {},
                                  .host = host,
                                  .what = "process",
                                  .reason = fmt::format("there is no process {}", pid),
                                  .remedy = ""});
  }
  if (spec.depth != InspectionDepth::kFull) return inspection;
  std::jthread ras;  // At the same time; it fills other members.
  if (spec.ras) ras = std::jthread([&] { LookAtRasToo(spec, found.chosen, allowed, &inspection); });
  LookClosely(spec, found.chosen, &inspection);
  if (ras.joinable()) ras.join();
  return inspection;
}

}  // namespace lockstep::inspect
