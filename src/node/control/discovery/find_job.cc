#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/control/discovery/command_words.h"
#include "node/control/discovery/hosts.h"
#include "node/control/discovery/kubernetes.h"
#include "node/control/discovery/pbs.h"
#include "node/control/discovery/slurm.h"

namespace lockstep::control {

namespace {

struct Scheduler {
  const char* prefix;
  const char* command;
  const char* name;
  JobKind kind;
  Status (*check_id)(const std::string& id);  // Whether it can be one of its jobs' ids.
  Result<JobNodes> (*find)(const std::string& id);
};

constexpr Scheduler kSchedulers[] = {
    {"slurm:", "squeue", "SLURM", JobKind::kSlurm, CheckSlurmId, FindSlurmJob},
    {"pbs:", "qstat", "PBS", JobKind::kPbs, CheckPbsId, FindPbsJob},
    {"k8s:", "kubectl", "Kubernetes", JobKind::kKubernetes, CheckPodsName, FindPods},
};

Error NoScheduler(const std::vector<std::string>& looked_for) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .message = fmt::format(
                   "no scheduler's command found: looked for {} in PATH; name the nodes with --host or --hostfile",
                   fmt::join(looked_for, ", "))};
}

}  // namespace

Result<JobNodes> FindJob(const std::string& job, JobKind kind) {
  std::string id = job;
  for (const Scheduler& scheduler : kSchedulers) {
    if (!job.starts_with(scheduler.prefix)) continue;
    if (kind != JobKind::kNone && kind != scheduler.kind) {
      return Error{.code = ErrorCode::kInvalidArgument,
                   .message = fmt::format("\"{}\" is not a job of that scheduler", job)};
    }
    kind = scheduler.kind;
    id = job.substr(std::string(scheduler.prefix).size());
  }
  if (id.empty()) return Error{.code = ErrorCode::kInvalidArgument, .message = "no job's id"};

  // One that knows the job wins. Otherwise those that looked for it say why not; and with none, those that would not.
  std::vector<std::string> absent;
  std::optional<Error> refused;
  std::optional<Error> failed;
  for (const Scheduler& scheduler : kSchedulers) {
    if (kind != JobKind::kNone && kind != scheduler.kind) continue;
    if (!IsInPath(scheduler.command)) {
      absent.push_back(fmt::format("{} ({})", scheduler.command, scheduler.name));
      continue;
    }
    if (Status possible = scheduler.check_id(id); !possible) {
      if (!refused) refused = std::move(possible).error();
      continue;
    }
    auto found = scheduler.find(id);
    if (found) return found;
    // It has such a job, of which more must be said.
    if (found.error().code == ErrorCode::kInvalidArgument) return found;
    // That one scheduler does not know it is an answer; that another could not be asked adds to it only when it is all.
    const bool answers = found.error().code == ErrorCode::kNotFound;
    if (!failed || (answers && failed->code != ErrorCode::kNotFound)) {
      failed = std::move(found).error();
    } else if (answers || failed->code != ErrorCode::kNotFound) {
      failed->message += "; " + found.error().message;
    }
  }
  if (failed) return *failed;
  if (refused) return *refused;
  return NoScheduler(absent);
}

}  // namespace lockstep::control
