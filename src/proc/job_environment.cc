#include "proc/job_environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <unordered_map>

#include "base/utf8.h"

namespace lockstep::proc {
namespace {

using control::JobKind;

constexpr int32_t kMaxRank = 100'000'000;
constexpr size_t kMaxIdBytes = 128;

/// The variables that are looked at; all others are passed over unread.
constexpr auto kNames = std::to_array<std::string_view>({
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",  //
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMIX_NAMESPACE",  //
    "MV2_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_SIZE",  //
    "PALS_RANKID",
    "PALS_LOCAL_RANKID",
    "PALS_APID",  //
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "PMIX_RANK",  //
    "FLUX_TASK_RANK",
    "FLUX_TASK_LOCAL_ID",
    "FLUX_JOB_SIZE",
    "FLUX_JOB_ID",  //
    "JSM_NAMESPACE_RANK",
    "JSM_NAMESPACE_LOCAL_RANK",
    "JSM_NAMESPACE_SIZE",
    "LSB_JOBID",  //
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_ID",
    "SLURM_JOB_ID",  //
    "PBS_JOBID",
    "KUBERNETES_SERVICE_HOST",
    "HOSTNAME",
    "KINETO_USE_DAEMON",
    "KINETO_ONDEMAND_TRACE_DIR",  //
    "LOCKSTEP_RUN_CAPTURES",
});

using Variables = std::unordered_map<std::string_view, std::string_view>;

Variables Select(std::string_view environment) {
  Variables variables;
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    // As getenv: the first one counts.
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end())
      variables.emplace(name, entry.substr(equals + 1));
  }
  return variables;
}

std::string_view Get(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string_view() : found->second;
}

std::optional<int32_t> GetNumber(const Variables& variables, std::string_view name) {
  if (name.empty()) return std::nullopt;
  const std::string_view text = Get(variables, name);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0 || number > kMaxRank)
    return std::nullopt;
  return number;
}

/// An id that somebody's environment claims, as far as it can be shown and compared.
std::string Id(std::string_view text) {
  std::string id;
  for (const char c : text.substr(0, kMaxIdBytes)) {
    if (c <= ' ' || c == 0x7f) continue;  // Also bytes over 0x7f, where char has a sign.
    id += c;
  }
  return id;
}

/// Where a rank may come from, the innermost launcher first.
struct RankNames {
  RankSource source;
  std::string_view rank;
  std::string_view local_rank;
  std::string_view size;
  std::string_view also;  ///< Must be there too: without it the rank is of something else.
};
constexpr auto kRankNames = std::to_array<RankNames>({
    {RankSource::kTorch, "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {RankSource::kTorch, "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {RankSource::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", ""},
    {RankSource::kMvapich, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", ""},
    {RankSource::kPals, "PALS_RANKID", "PALS_LOCAL_RANKID", "PMI_SIZE", ""},
    {RankSource::kPmi, "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", ""},
    {RankSource::kPmi, "PMIX_RANK", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", ""},
    {RankSource::kFlux, "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", ""},
    {RankSource::kLsf, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE", ""},
    // A batch script has SLURM_PROCID=0 and is not a rank; a step has the size of the step too.
    {RankSource::kSlurm, "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
});

void ReadRank(const Variables& variables, ProcessDetails* details) {
  for (const RankNames& names : kRankNames) {
    const auto rank = GetNumber(variables, names.rank);
    if (!rank || (!names.also.empty() && Get(variables, names.also).empty())) continue;
    details->rank_source = names.source;
    details->rank = rank;
    details->local_rank = GetNumber(variables, names.local_rank);
    details->world_size = GetNumber(variables, names.size);
    // mpiexec and srun set PMI variables both; only srun has the rest under its own names.
    if (names.source == RankSource::kPmi && !details->local_rank) {
      details->local_rank = GetNumber(variables, "SLURM_LOCALID");
      if (GetNumber(variables, "SLURM_PROCID") != rank) details->local_rank = std::nullopt;
    }
    return;
  }
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
  struct JobName {
    JobKind kind;
    std::string_view name;
  };
  constexpr auto kJobNames = std::to_array<JobName>({
      {JobKind::kSlurm, "SLURM_JOB_ID"},
      {JobKind::kPbs, "PBS_JOBID"},
      {JobKind::kLsf, "LSB_JOBID"},
      {JobKind::kFlux, "FLUX_JOB_ID"},
  });
  for (const JobName& job : kJobNames) {
    std::string id = Id(Get(variables, job.name));
    if (id.empty()) continue;
    details->job_kind = job.kind;
    details->job_id = std::move(id);
    if (job.kind == JobKind::kSlurm) details->job_step = Id(Get(variables, "SLURM_STEP_ID"));
    return;
  }
  if (!Get(variables, "KUBERNETES_SERVICE_HOST").empty() || details->job_kind == JobKind::kKubernetes) {
    details->job_kind = JobKind::kKubernetes;
    const std::string pod = Id(Get(variables, "HOSTNAME"));
    if (!pod.empty()) details->job_id = JobOfPod(pod);
    return;
  }
  if (const std::string id = Id(Get(variables, "TORCHELASTIC_RUN_ID")); !id.empty()) {
    details->job_kind = JobKind::kTorchelastic;
    details->job_id = id;
    return;
  }
  if (details->rank_source == RankSource::kOpenMpi || details->rank_source == RankSource::kPmi ||
      details->rank_source == RankSource::kMvapich || details->rank_source == RankSource::kPals) {
    details->job_kind = JobKind::kMpi;
    details->job_id = Id(Get(variables, "PMIX_NAMESPACE"));
    if (details->job_id.empty()) details->job_id = Id(Get(variables, "PALS_APID"));
  }
}

}  // namespace

void ReadJobEnvironment(std::string_view environment, ProcessDetails* details) {
  const Variables variables = Select(environment);
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
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
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
