#include "node/control/discovery/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/subprocess.h"
#include "base/text_scan.h"
#include "node/control/discovery/command_json.h"
#include "node/control/discovery/command_words.h"

namespace lockstep::control {

namespace {

constexpr size_t kMostPods = 65536;
constexpr size_t kOutputBytesLimit = size_t{512} << 20;  // About 10 KB a pod.
constexpr std::string_view kSidecar = "lockstepd";

// A count or index; nullopt for another text, such as "auto".
std::optional<int32_t> Number(const std::string& text) {
  const auto number = WholeNumber<int32_t>(text);
  return number && *number >= 0 && *number <= 1'000'000 ? number : std::nullopt;
}

// The value of a variable that a container of the pod is given literally.
std::string Variable(JsonValue pod, std::string_view name) {
  for (const JsonValue container : pod.At({"spec", "containers"}).elements()) {
    for (const JsonValue variable : container["env"].elements()) {
      if (variable["name"].Text().value_or("") == name) return variable["value"].TextOrEmpty();
    }
  }
  return "";
}

bool HasSidecar(JsonValue pod) {
  // A sidecar may be an init container that goes on running (Kubernetes 1.29).
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const JsonValue container : pod.At({"spec", list}).elements()) {
      if (container["name"].Text() == kSidecar) return true;
    }
  }
  return false;
}

std::string Label(JsonValue pod, std::string_view name) { return pod.At({"metadata", "labels", name}).TextOrEmpty(); }

// The pod's index among the job's pods. PyTorchJob: the master is 0 and workers follow, where there is a master;
// without one (elastic), the rendezvous gives ranks out and only the processes know. Indexed jobs: their index.
std::optional<int32_t> PodIndex(JsonValue pod, bool has_master) {
  for (const std::string_view prefix : {"training.kubeflow.org/", "pytorch-"}) {
    const std::string type = Label(pod, fmt::format("{}replica-type", prefix));
    if (type.empty()) continue;
    if (type == "master") return 0;
    const auto index = Number(Label(pod, fmt::format("{}replica-index", prefix)));
    if (type != "worker" || !index || !has_master) return std::nullopt;
    return *index + 1;
  }
  return Number(Label(pod, "batch.kubernetes.io/job-completion-index"));
}

bool IsMaster(JsonValue pod) {
  return Label(pod, "training.kubeflow.org/replica-type") == "master" || Label(pod, "pytorch-replica-type") == "master";
}

// What a pod's processes take for their job: the pod's own host name without what the operators put behind the job's
// (the daemon reads it from their environment in the same way).
std::string JobOfProcesses(JsonValue pod) {
  std::string name = pod.At({"spec", "hostname"}).TextOrEmpty();
  if (name.empty()) name = pod.At({"metadata", "name"}).TextOrEmpty();
  for (const std::string_view part : {"-master-", "-worker-", "-launcher-", "-node-"}) {
    const size_t at = name.rfind(part);
    if (at != std::string::npos && at > 0) return name.substr(0, at);
  }
  return name;
}

void AddRanks(JsonValue pod, bool has_master, std::vector<int32_t>& ranks) {
  const auto index = PodIndex(pod, has_master);
  const auto processes = Number(Variable(pod, "PET_NPROC_PER_NODE"));
  if (!index || !processes || *processes > 1024) return;
  for (int32_t i = 0; i < *processes; ++i) ranks.push_back(*index * *processes + i);
}

struct PodsName {
  std::string name_space;  // Empty: kubectl's present one.
  std::string job;
};

// A selector has slashes of its own ("ray.io/cluster=a"): only one in front of any "=" and "." ends a namespace.
PodsName SplitName(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || name.find_first_of("=.") < slash) return {.name_space = "", .job = name};
  return {.name_space = name.substr(0, slash), .job = name.substr(slash + 1)};
}

}  // namespace

std::vector<std::string> JobSelectors(const std::string& name) {
  std::vector<std::string> selectors;
  for (const char* label : {
           "training.kubeflow.org/job-name",    // Training operator: PyTorchJob, MPIJob.
           "jobset.sigs.k8s.io/jobset-name",    // JobSet, Trainer v2's TrainJob.
           "batch.kubernetes.io/job-name",      // Job, since 1.27.
           "job-name",                          // Job before.
           "pytorch-job-name",                  // The archived PyTorch operator.
           "volcano.sh/job-name",               // Volcano.
           "ray.io/cluster",                    // RayCluster,
           "ray.io/originated-from-cr-name",    // RayJob.
           "leaderworkerset.sigs.k8s.io/name",  // LeaderWorkerSet.
       }) {
    selectors.push_back(fmt::format("{}={}", label, name));
  }
  return selectors;
}

Result<JobNodes> SelectPods(const std::string& job, std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree tree, ParseCommandJson(json, "kubectl's answer"));
  const JsonValue document = tree.root();
  std::vector<JsonValue> pods;
  if (const JsonValue items = document["items"]; items.IsArray()) {
    for (const JsonValue item : items.elements()) pods.push_back(item);
  } else if (document["kind"].Text() == "Pod") {
    pods.push_back(document);
  }
  if (pods.size() > kMostPods) {
    return Error{.code = ErrorCode::kLimitExceeded, .message = fmt::format("over {} pods", kMostPods)};
  }
  const bool has_master = std::any_of(pods.begin(), pods.end(), IsMaster);

  JobNodes found = {.kind = JobKind::kKubernetes, .job_id = "", .state = pods.empty() ? "" : "Running", .nodes = {}};
  std::set<std::string> process_jobs;
  std::string other_phase;
  for (const JsonValue pod : pods) {
    const std::string phase = pod.At({"status", "phase"}).TextOrEmpty();
    const bool sidecar = HasSidecar(pod);
    JobNode node = {.host = (sidecar ? pod.At({"metadata", "name"}) : pod.At({"spec", "nodeName"})).TextOrEmpty(),
                    .address = pod.At({"status", sidecar ? "podIP" : "hostIP"}).TextOrEmpty()};
    if (phase != "Running" || node.host.empty() || node.address.empty()) {
      other_phase = phase.empty() ? "Unknown" : phase;
      continue;
    }
    process_jobs.insert(JobOfProcesses(pod));
    const auto there = std::find_if(found.nodes.begin(), found.nodes.end(),
                                    [&](const JobNode& other) { return other.address == node.address; });
    JobNode& kept = there != found.nodes.end() ? *there : found.nodes.emplace_back(std::move(node));
    AddRanks(pod, has_master, kept.ranks);
  }
  for (JobNode& node : found.nodes) std::sort(node.ranks.begin(), node.ranks.end());
  if (process_jobs.size() == 1) found.job_id = *process_jobs.begin();
  if (!found.nodes.empty() || pods.empty()) return found;
  return JobNotFound(fmt::format("no pod of \"{}\" runs: {} pods, the last one {}", job, pods.size(), other_phase));
}

Status CheckPodsName(const std::string& name) {
  const PodsName parts = SplitName(name);
  const bool good = !parts.job.empty() && parts.job[0] != '-' && name.size() <= 500 && name[0] != '-' &&
                    name[0] != '/' && std::all_of(name.begin(), name.end(), [](char c) {
                      return IsAlphanumeric(c) || std::string_view("./_-=,").find(c) != std::string_view::npos;
                    });
  if (good) return {};
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("\"{}\" is not a job's name (as [NAMESPACE/]NAME or [NAMESPACE/]LABEL=VALUE)",
                                      Shortened(name))};
}

Result<JobNodes> FindPods(const std::string& name) {
  RETURN_IF_ERROR(CheckPodsName(name));
  const auto [name_space, job] = SplitName(name);
  std::vector<std::string> command = {"kubectl", "get", "pods", "-o", "json", "--request-timeout=8s"};
  if (!name_space.empty()) command.insert(command.end(), {"-n", name_space});
  const CommandOptions options = {.output_bytes_limit = kOutputBytesLimit};
  const bool is_selector = job.find('=') != std::string::npos;
  for (const std::string& selector : is_selector ? std::vector<std::string>{job} : JobSelectors(job)) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"-l", selector});
    ASSIGN_OR_RETURN(const CommandOutput asked, RunCommand(words, options));
    if (asked.exit_status != 0) return CommandFailed("kubectl", asked);
    ASSIGN_OR_RETURN(JobNodes found, SelectPods(job, asked.output));
    if (!found.nodes.empty()) return found;
  }
  if (!is_selector) {  // A pod of that name.
    command.push_back(job);
    ASSIGN_OR_RETURN(const CommandOutput asked, RunCommand(command, options));
    if (asked.exit_status == 0) return SelectPods(job, asked.output);
    if (asked.error.find("NotFound") == std::string::npos) return CommandFailed("kubectl", asked);
  }
  return JobNotFound(fmt::format("Kubernetes has no {} \"{}\"{}", is_selector ? "pods of" : "job and no pod", job,
                                 name_space.empty() ? " in the present namespace (another: NAMESPACE/NAME)"
                                                    : fmt::format(" in namespace \"{}\"", name_space)));
}

}  // namespace lockstep::control
