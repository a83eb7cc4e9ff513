#include "node/proc/job_environment.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <unordered_map>

#include "base/split.h"
#include "base/utf8.h"

namespace lockstep::proc {
namespace {

using control::JobKind;
using launchers::Launcher;

constexpr size_t kMostIdBytes = 128;

using Variables = std::unordered_map<std::string_view, std::string_view>;

Variables Split(std::string_view environment) {
  Variables variables;
  while (!environment.empty()) {
    const std::string_view entry = TakePart(&environment, '\0');
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));  // As getenv: the first one counts.
  }
  return variables;
}

std::string_view Get(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string_view() : found->second;
}

/// A job id from a process's environment, cut to what can be shown and compared.
std::string Id(std::string_view text) {
  std::string id;
  for (const char c : text.substr(0, kMostIdBytes)) {
    if (c <= ' ' || c == 0x7f) continue;  // Also bytes over 0x7f, where char has a sign.
    id += c;
  }
  return id;
}

void ReadRank(const Variables& variables, ProcessDetails* details) {
  const launchers::FoundRank found =
      launchers::FindRank([&](const char* name) { return Get(variables, name); }, launchers::Viewpoint::kOfAnyProcess);
  details->rank_source = found.launcher;
  details->rank = found.rank;
  details->local_rank = found.local_rank;
  details->world_size = found.world_size;
}

/// "llama-worker-3" -> "llama": the operators name a job's pods so.
std::string_view JobOfPod(std::string_view pod) {
  for (const std::string_view part : {"-master-", "-worker-", "-launcher-", "-node-"}) {
    const size_t at = pod.rfind(part);
    if (at != std::string_view::npos && at > 0) return pod.substr(0, at);
  }
  return pod;
}

void ReadJob(const Variables& variables, ProcessDetails* details) {
  constexpr JobKind kKinds[] = {JobKind::kSlurm, JobKind::kPbs, JobKind::kLsf, JobKind::kFlux};
  const std::span<const char* const> names = launchers::JobVariables();  // In the same order.
  for (size_t i = 0; i < std::min(std::size(kKinds), names.size()); ++i) {
    std::string id = Id(Get(variables, names[i]));
    if (id.empty()) continue;
    details->job_kind = kKinds[i];
    details->job_id = std::move(id);
    if (details->job_kind == JobKind::kSlurm) details->job_step = Id(Get(variables, "SLURM_STEP_ID"));
    return;
  }
  if (!Get(variables, "KUBERNETES_SERVICE_HOST").empty() || details->job_kind == JobKind::kKubernetes) {
    details->job_kind = JobKind::kKubernetes;
    const std::string pod = Id(Get(variables, "HOSTNAME"));
    if (!pod.empty()) details->job_id = JobOfPod(pod);
    return;
  }
  if (const std::string id = Id(Get(variables, launchers::RowOf(Launcher::kTorchrun).job)); !id.empty()) {
    details->job_kind = JobKind::kTorchelastic;
    details->job_id = id;
    return;
  }
  const launchers::LauncherRow& row = launchers::RowOf(details->rank_source);
  if (*row.mpi_command == '\0') return;
  details->job_kind = JobKind::kMpi;
  details->job_id = Id(Get(variables, row.job));
}

}  // namespace

void ReadJobEnvironment(std::string_view environment, ProcessDetails* details) {
  const Variables variables = Split(environment);
  ReadRank(variables, details);
  ReadJob(variables, details);
  // Any value lets the process register; its Python side, which counts iterations, wants one that is not empty.
  const auto use = variables.find("KINETO_USE_DAEMON");
  details->counts_iterations = use == variables.end() || !use->second.empty();
  details->has_step_tracer = !Get(variables, "LOCKSTEP_RUN_CAPTURES").empty();
  const std::string_view folder = Get(variables, "KINETO_ONDEMAND_TRACE_DIR");
  if (folder.size() <= 256) details->trace_folder = folder;
}

std::vector<std::string> ReadSettings(std::string_view environment) {
  constexpr size_t kMostSettings = 128;
  constexpr size_t kMostBytes = 256;
  constexpr auto kFamilies =
      std::to_array<std::string_view>({"NCCL_", "RCCL_", "GLOO_", "UCX_", "UCC_", "FI_", "TORCH_", "PYTORCH_",
                                       "CUDA_LAUNCH_", "CUDA_DEVICE_MAX_", "OMP_NUM_THREADS", "TP_SOCKET_IFNAME"});
  constexpr auto kSecrets = std::to_array<std::string_view>({"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"});
  std::vector<std::string> settings;
  while (!environment.empty() && settings.size() < kMostSettings) {
    const std::string_view entry = TakePart(&environment, '\0');
    const std::string_view name = entry.substr(0, entry.find('='));
    const auto begins = [name](std::string_view family) { return name.starts_with(family); };
    const auto holds = [name](std::string_view word) { return name.find(word) != std::string_view::npos; };
    if (name.size() == entry.size() || std::none_of(kFamilies.begin(), kFamilies.end(), begins) ||
        std::any_of(kSecrets.begin(), kSecrets.end(), holds)) {
      continue;
    }
    settings.emplace_back(Printable(entry.substr(0, kMostBytes)));
  }
  std::sort(settings.begin(), settings.end());
  return settings;
}

std::string_view EnvironmentValue(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = TakePart(&environment, '\0');
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

std::string_view FindPodUid(std::string_view cgroup_text) {
  // cgroupfs: /kubepods/burstable/pod0a1b-...; systemd: kubepods-burstable-pod0a1b_....slice.
  if (cgroup_text.find("kubepods") == std::string_view::npos) return {};
  for (const std::string_view before : {"/pod", "-pod"}) {
    const size_t at = cgroup_text.find(before);
    if (at == std::string_view::npos) continue;
    const std::string_view uid = cgroup_text.substr(at + before.size(), 36);
    if (uid.size() == 36 && uid.find_first_not_of("0123456789abcdef-_") == std::string_view::npos) return uid;
  }
  return {};
}

}  // namespace lockstep::proc
