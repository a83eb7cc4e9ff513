#include "node/proc/job_processes.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/proc_stat.h"
#include "base/small_file.h"
#include "base/text_scan.h"
#include "node/proc/job_environment.h"
#include "node/proc/proc_reader.h"

namespace lockstep::proc {
namespace {

using control::ProcessRole;

constexpr size_t kMaxProcesses = 65536;
constexpr size_t kEnvironmentBytes = size_t{1} << 20;

std::optional<uint32_t> OwnerOf(const std::string& root, int32_t pid) {
  struct stat info = {};
  if (::stat(fmt::format("{}/{}", root, pid).c_str(), &info) != 0) return std::nullopt;
  return info.st_uid;
}

bool Holds(const std::vector<int32_t>& values, int32_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool MatchesRanks(const ProcessDetails& details, const std::vector<std::pair<int32_t, int32_t>>& ranks) {
  return ranks.empty() || (details.rank && std::any_of(ranks.begin(), ranks.end(), [&](const auto& range) {
                             return *details.rank >= range.first && *details.rank <= range.second;
                           }));
}

/// A rank's wrapper, its shell and its children have its environment too: where one of them has PyTorch, it is the
/// rank; where none has (yet), the outermost is.
void KeepRanks(std::vector<JobProcess>* processes) {
  const auto key = [](const JobProcess& process) {
    const ProcessDetails& details = process.details;
    return std::tuple(process.uid, details.job_kind, details.job_id, details.rank_source, details.rank);
  };
  std::set<decltype(key(processes->front()))> with_torch;
  for (const JobProcess& process : *processes) {
    if (process.details.rank && !process.details.torch_version.empty()) with_torch.insert(key(process));
  }
  std::erase_if(*processes, [&](const JobProcess& process) {
    if (!process.details.torch_version.empty()) return false;
    return !process.details.rank || with_torch.contains(key(process));
  });
}

void SetRoles(std::vector<JobProcess>* processes) {
  std::vector<RoleInput> roles;
  for (const JobProcess& process : *processes) roles.push_back({process.pid, &process.details});
  AssignRoles(&roles);
  for (size_t i = 0; i < roles.size(); ++i) (*processes)[i].role = roles[i].role;
}

std::string Contents(const std::string& path, size_t limit_bytes = 8192) {
  return ReadSmallFile(path, limit_bytes).value_or("");
}

int64_t Number(std::string_view text) { return LeadingNumber(text).value_or(0); }

int64_t NumberAfter(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  const size_t begin = std::min(text.find_first_of("0123456789\n", at + name.size()), text.size());
  return Number(text.substr(begin));
}

// By job, rank, then pid.
void Sort(std::vector<JobProcess>* processes) {
  std::stable_sort(processes->begin(), processes->end(), [](const JobProcess& a, const JobProcess& b) {
    const auto key = [](const JobProcess& p) {
      return std::tuple(p.details.job_id, !p.details.rank, p.details.rank.value_or(0), p.pid);
    };
    return key(a) < key(b);
  });
}

constexpr int64_t kTickNs = 10'000'000;  // USER_HZ is 100 wherever Linux runs PyTorch.

}  // namespace

std::vector<int32_t> ListProcesses(const std::string& root) {
  std::vector<int32_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(root.c_str()), ::closedir);
  if (folder == nullptr) return pids;
  while (const dirent* entry = ::readdir(folder.get())) {
    const auto pid = WholeNumber<int32_t>(entry->d_name);
    if (!pid || *pid <= 0) continue;
    pids.push_back(*pid);
    if (pids.size() >= kMaxProcesses) break;
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::optional<JobProcess> ReadJobProcess(int32_t pid, const std::function<bool(uint32_t uid)>& allowed,
                                         const std::string& root) {
  const std::optional<uint32_t> uid = OwnerOf(root, pid);
  if (!uid || !allowed(*uid)) return std::nullopt;
  std::optional<ProcessDetails> details = ProcReader(root).Read(pid, 0);
  if (!details) return std::nullopt;
  return JobProcess{pid, *uid, std::move(*details)};
}

std::vector<JobProcess> ChooseRanks(std::vector<JobProcess> processes) {
  KeepRanks(&processes);
  SetRoles(&processes);
  std::erase_if(processes, [](const JobProcess& process) { return process.role != ProcessRole::kTrainer; });
  Sort(&processes);
  return processes;
}

JobProcesses FindJobProcesses(const JobProcessSelector& selector, const std::function<bool(uint32_t uid)>& allowed,
                              const std::string& root) {
  JobProcesses found;
  const ProcReader reader(root);
  std::vector<JobProcess> processes;
  std::map<int32_t, JobProcess> named;  // What was asked for by its own pid.
  std::set<int32_t> forbidden;
  for (const int32_t pid : ListProcesses(root)) {
    const std::optional<uint32_t> uid = OwnerOf(root, pid);
    if (!uid) continue;
    if (!allowed(*uid)) {
      if (Holds(selector.pids, pid)) forbidden.insert(pid);
      continue;
    }
    if (!selector.pids.empty()) {
      const auto brief = reader.ReadBriefly(pid, 0);
      if (!brief) continue;
      const bool below = std::any_of(brief->ancestors.begin(), brief->ancestors.end(),
                                     [&](int32_t ancestor) { return Holds(selector.pids, ancestor); });
      if (!below && !Holds(selector.pids, pid)) continue;
    }
    // Most processes of a node are of no job, or of another: one read tells, where all the rest would be dear.
    if (!selector.job_id.empty() && !Holds(selector.pids, pid)) {
      ProcessDetails job;
      const std::string folder = fmt::format("{}/{}", root, pid);
      if (!FindPodUid(Contents(folder + "/cgroup")).empty()) job.job_kind = control::JobKind::kKubernetes;
      ReadJobEnvironment(Contents(folder + "/environ", kEnvironmentBytes), &job);
      if (!control::MatchesJob(job.job_id, selector.job_id)) continue;
    }
    std::optional<ProcessDetails> details = reader.Read(pid, 0);
    if (!details) continue;
    JobProcess process{pid, *uid, std::move(*details)};
    if (Holds(selector.pids, pid)) named.emplace(pid, process);
    if (!control::MatchesJob(process.details.job_id, selector.job_id)) continue;
    processes.push_back(std::move(process));
  }
  KeepRanks(&processes);
  SetRoles(&processes);
  for (JobProcess& process : processes) {
    if (process.role != ProcessRole::kTrainer || !MatchesRanks(process.details, selector.ranks)) continue;
    for (const int32_t ancestor : process.details.ancestors) named.erase(ancestor);
    named.erase(process.pid);
    found.chosen.push_back(std::move(process));
  }
  const bool only_pids = selector.job_id.empty() && selector.ranks.empty();
  for (auto& [pid, process] : named) {
    if (only_pids) found.chosen.push_back(std::move(process));
  }
  for (const int32_t pid : selector.pids) {
    if (!forbidden.contains(pid) && !OwnerOf(root, pid)) found.absent_pids.push_back(pid);
  }
  found.forbidden_count = static_cast<uint32_t>(forbidden.size());
  Sort(&found.chosen);
  return found;
}

namespace {

/// What burns processor time whether the job moves or not: NCCL's proxies spin while operations are open, PyTorch's
/// watchdog of NCCL polls.
bool PollsForNccl(std::string_view name) { return name.starts_with("NCCL ") || name.starts_with("pt_nccl_"); }

/// Exact to the ns where the kernel keeps it. In ticks, two threads that hardly run would seem to have used twenty
/// milliseconds whenever both complete a tick between two looks.
int64_t ThreadCpuNs(const std::string& task) {
  const std::string schedule = Contents(task + "/schedstat");
  if (!schedule.empty()) return Number(schedule);
  const auto stat = ParseProcStat(Contents(task + "/stat"));
  return stat ? static_cast<int64_t>(stat->cpu_ticks) * kTickNs : 0;
}

int64_t ThreadsCpuNs(int32_t pid, const std::string& folder) {
  constexpr int kMostThreads = 4096;
  int64_t sum_ns = 0;
  std::error_code error;
  std::filesystem::directory_iterator task(folder + "/task", error);
  for (int i = 0; !error && task != std::filesystem::directory_iterator() && i < kMostThreads;
       task.increment(error), ++i) {
    if (task->path().filename() == std::to_string(pid)) continue;
    const std::string text = Contents(task->path().string() + "/stat");
    const size_t open = text.find('(');
    if (open == std::string::npos || PollsForNccl(std::string_view(text).substr(open + 1))) continue;
    sum_ns += ThreadCpuNs(task->path().string());
  }
  return sum_ns;
}

}  // namespace

std::optional<Glance> ReadGlance(int32_t pid, uint64_t start_ticks, const std::string& root) {
  const std::string folder = fmt::format("{}/{}", root, pid);
  const auto stat = ParseProcStat(Contents(folder + "/stat"));
  if (!stat || stat->start_ticks != start_ticks) return std::nullopt;
  Glance glance;
  glance.state = stat->state;
  glance.cpu_ns = static_cast<int64_t>(stat->cpu_ticks) * kTickNs;
  glance.threads_cpu_ns = ThreadsCpuNs(pid, folder);
  const std::string task = fmt::format("{}/task/{}", folder, pid);
  glance.main_cpu_ns = ThreadCpuNs(task);
  const std::string status = Contents(task + "/status");
  glance.main_switches =
      NumberAfter(status, "\nvoluntary_ctxt_switches:") + NumberAfter(status, "\nnonvoluntary_ctxt_switches:");
  glance.wait_channel = Contents(task + "/wchan");
  if (glance.wait_channel == "0") glance.wait_channel.clear();
  return glance;
}

}  // namespace lockstep::proc
