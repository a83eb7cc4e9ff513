#include "node/agent/capture/capture_select.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "node/agent/capture/process_view.h"

namespace lockstep::agent {
namespace {

using control::CaptureSelector;
using control::Process;
using control::ProcessRole;

template <typename T>
bool Holds(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool MatchesPids(const Process& process, const std::vector<int32_t>& pids) {
  if (process.pid > 0) {
    if (Holds(pids, process.pid)) return true;
    for (const int32_t ancestor : AncestorsOf(process.pid)) {
      if (Holds(pids, ancestor)) return true;
    }
  }
  // In a pid namespace of its own, its user knows it by other numbers.
  const bool other_pids = !process.client_pids.empty() && process.client_pids.front() != process.pid;
  return other_pids && std::any_of(process.client_pids.begin(), process.client_pids.end(),
                                   [&](int32_t pid) { return Holds(pids, pid); });
}

bool Matches(const Process& process, const CaptureSelector& selector) {
  if (!selector.job_id.empty() && !control::MatchesJob(process.job_id, selector.job_id)) return false;
  if (selector.uid && *selector.uid != process.uid) return false;
  if (!selector.process_ids.empty() && !Holds(selector.process_ids, process.id)) return false;
  if (!selector.ranks.empty()) {
    const bool in_range = process.rank && std::any_of(selector.ranks.begin(), selector.ranks.end(), [&](auto range) {
                            return *process.rank >= range.first && *process.rank <= range.second;
                          });
    if (!in_range) return false;
  }
  return selector.pids.empty() || MatchesPids(process, selector.pids);
}

std::string RangesOf(const std::vector<std::pair<int32_t, int32_t>>& ranges) {
  std::string text;
  for (const auto& [first, last] : ranges) {
    if (text.size() > 80) return text + ",...";
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last != first) text += fmt::format("-{}", last);
  }
  return text;
}

std::string ListOf(const std::vector<int32_t>& numbers) {
  std::string text;
  for (const int32_t number : numbers) {
    if (text.size() > 80) return text + ",...";
    text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  }
  return text;
}

}  // namespace

Selection Select(const std::vector<Process>& processes, const control::CaptureSpec& spec, const Caller& caller) {
  Selection selection;
  for (const Process& process : processes) {
    if (!Matches(process, spec.selector)) continue;
    const bool named = Holds(spec.selector.process_ids, process.id);
    if (process.role != ProcessRole::kTrainer && !spec.selector.include_launchers && !named) {
      if (caller.MayTrace(process)) ++selection.launcher_count;
    } else if (!caller.MayTrace(process)) {
      ++selection.forbidden_count;
    } else {
      selection.chosen.push_back(process);
    }
  }
  std::stable_sort(selection.chosen.begin(), selection.chosen.end(), [](const Process& a, const Process& b) {
    const auto key = [](const Process& p) { return std::tuple(!p.rank, p.rank.value_or(0), p.pid); };
    return key(a) < key(b);
  });
  if (spec.process_limit > 0 && selection.chosen.size() > spec.process_limit) {
    selection.chosen.resize(spec.process_limit);
  }
  return selection;
}

bool IsWholeWorld(const std::vector<Process>& chosen) {
  std::map<std::pair<std::string, int32_t>, std::set<int32_t>> ranks_by_world;
  for (const Process& process : chosen) {
    if (!process.rank || !process.world_size || *process.world_size <= 0) return false;
    ranks_by_world[{process.job_id, *process.world_size}].insert(*process.rank);
  }
  return !ranks_by_world.empty() && std::all_of(ranks_by_world.begin(), ranks_by_world.end(), [](const auto& world) {
    return world.second.size() == static_cast<size_t>(world.first.second);
  });
}

std::string DescribeNoMatch(const std::vector<Process>& processes, const control::CaptureSpec& spec,
                            const Caller& caller, const Selection& selection) {
  const CaptureSelector& selector = spec.selector;
  std::string asked;
  const auto add = [&](const std::string& text) { asked += (asked.empty() ? "" : ", ") + text; };
  if (!selector.job_id.empty()) add("job " + selector.job_id);
  if (!selector.pids.empty()) add("pid " + ListOf(selector.pids));
  if (!selector.process_ids.empty()) add(fmt::format("{} process ids", selector.process_ids.size()));
  if (!selector.ranks.empty()) add("ranks " + RangesOf(selector.ranks));
  if (selector.uid) add(fmt::format("uid {}", *selector.uid));

  std::map<std::string, std::vector<int32_t>> ranks_by_job;
  std::map<std::string, uint32_t> count_by_job;
  uint32_t own_count = 0;
  for (const Process& process : processes) {
    if (!caller.MayTrace(process)) continue;
    ++own_count;
    ++count_by_job[process.job_id];
    if (process.rank) ranks_by_job[process.job_id].push_back(*process.rank);
  }
  if (selection.launcher_count > 0) {
    return fmt::format("only launchers and helpers match{}: {} of them; --include-launchers takes them too",
                       asked.empty() ? "" : " (" + asked + ")", selection.launcher_count);
  }
  for (const int32_t pid : selector.pids) {
    // Of one that the caller may look at anyway: it runs, and has never asked for work.
    Process unknown;
    unknown.pid = pid;
    struct stat entry;
    if (stat(fmt::format("/proc/{}", pid).c_str(), &entry) != 0) continue;
    unknown.uid = entry.st_uid;
    const bool registered = std::any_of(processes.begin(), processes.end(), [&](const Process& p) {
      return p.pid == pid || Holds(AncestorsOf(p.pid), pid);
    });
    if (registered || !caller.MayTrace(unknown)) continue;
    const bool has_variable = EnvironmentOf(pid, "KINETO_USE_DAEMON").has_value();
    return fmt::format("pid {} runs and has not registered: {}", pid,
                       has_variable ? "it has not imported PyTorch yet, its PyTorch is older than 2.0 (2.3 for a CPU "
                                      "build), or it runs in another network namespace (a container) than the daemon"
                                    : "it was started without KINETO_USE_DAEMON=1 in its environment, which PyTorch "
                                      "reads once, when it is imported");
  }
  std::string text = asked.empty() ? "no process has registered" : fmt::format("no process matches {}", asked);
  if (own_count == 0) {
    text += fmt::format(
        "{} on this node: start the job with KINETO_USE_DAEMON=1 in its environment, in this node's "
        "network namespace, with PyTorch 2.0 or newer (2.3 for CPU builds)",
        asked.empty() ? "" : ", and none of yours has registered");
    return text;
  }
  text += "; registered are ";
  size_t shown = 0;
  for (const auto& [job, count] : count_by_job) {
    if (shown == 4) {
      text += ", ...";
      break;
    }
    text += shown++ == 0 ? "" : ", ";
    text += fmt::format("{} of {}", count, job.empty() ? "no job" : "job " + job);
    if (const auto ranks = ranks_by_job.find(job); ranks != ranks_by_job.end()) {
      std::sort(ranks->second.begin(), ranks->second.end());
      text += " (ranks " + ListOf(ranks->second) + ")";
    }
  }
  return text;
}

}  // namespace lockstep::agent
