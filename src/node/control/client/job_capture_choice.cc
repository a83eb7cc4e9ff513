#include "node/control/client/job_capture_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace lockstep::control {
namespace {

constexpr size_t kMostShown = 8;
// A world size is what a process's environment says; a senseless one must not make millions of missing ranks.
constexpr int32_t kMostRanks = 1 << 20;

constexpr const char* kHowToRegister =
    "a process registers when it was started with KINETO_USE_DAEMON=1 (lockstep run sets it) and imports torch; one in "
    "a container needs the daemon's socket folder there";

bool InRanges(const std::vector<std::pair<int32_t, int32_t>>& ranges, int32_t rank) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return range.first <= rank && rank <= range.second; });
}

// "123" finds PBS's "123.server" too.
bool IsJob(const std::string& asked, const Process& process) {
  if (asked == process.job_id) return true;
  return process.job_kind == JobKind::kPbs && process.job_id.starts_with(asked + '.');
}

// What tells one job from another. Jobs without an id, as torchrun's without --rdzv-id, differ by their launcher.
using JobKey = std::tuple<JobKind, std::string, uint32_t, std::string>;
JobKey KeyOf(const Process& process, const std::string& host, bool by_launcher) {
  std::string launcher;
  if (by_launcher && process.client_pids.size() > 1) launcher = fmt::format("{} {}", host, process.client_pids[1]);
  return {process.job_kind, process.job_id, process.uid, launcher};
}

struct Group {
  const Process* first = nullptr;
  std::vector<int32_t> ranks;
  std::vector<int32_t> pids;
  std::set<std::string> hosts;
};

std::string Described(const Group& group) {
  const Process& process = *group.first;
  std::string text;
  if (!process.job_id.empty()) {
    text = fmt::format("job {}", process.job_id);
  } else {
    text = group.ranks.empty() ? "processes without a job" : "a job without an id";
  }
  if (!group.ranks.empty()) {
    text += fmt::format(" (rank{} {})", group.ranks.size() == 1 ? "" : "s", RankList(group.ranks));
  } else {
    text += fmt::format(
        " (pid {})", fmt::join(group.pids.begin(), group.pids.begin() + std::min(group.pids.size(), kMostShown), ", "));
  }
  if (!process.user.empty()) text += fmt::format(" of {}", process.user);
  if (group.hosts.size() == 1) return text + fmt::format(" on {}", *group.hosts.begin());
  return text + fmt::format(" on {} nodes", group.hosts.size());
}

std::map<JobKey, Group> Grouped(const std::vector<std::pair<const Process*, std::string>>& processes,
                                bool by_launcher) {
  std::map<JobKey, Group> groups;
  for (const auto& [process, host] : processes) {
    Group& group = groups[KeyOf(*process, host, by_launcher)];
    if (group.first == nullptr) group.first = process;
    if (process->rank) group.ranks.push_back(*process->rank);
    group.pids.push_back(process->pid);
    group.hosts.insert(host);
  }
  return groups;
}

std::string Listed(const std::map<JobKey, Group>& groups) {
  std::vector<std::string> parts;
  for (const auto& [key, group] : groups) {
    if (parts.size() == kMostShown) {
      parts.push_back(fmt::format("and {} more", groups.size() - kMostShown));
      break;
    }
    parts.push_back(Described(group));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Error NothingMatches(const CaptureSelector& selector, const std::vector<NodeProcesses>& nodes) {
  std::vector<std::pair<const Process*, std::string>> trainers;
  size_t launchers = 0;
  bool job_known = false;
  for (const NodeProcesses& node : nodes) {
    for (const Process& process : node.processes) {
      if (process.role != ProcessRole::kTrainer) {
        ++launchers;
        continue;
      }
      trainers.emplace_back(&process, node.host);
      job_known = job_known || IsJob(selector.job_id, process);
    }
  }
  const std::string where = nodes.size() == 1 ? nodes[0].host : fmt::format("{} nodes", nodes.size());
  if (trainers.empty()) {
    const std::string only = launchers == 0 ? ""
                                            : fmt::format(" ({} launcher{} or helper{} only)", launchers,
                                                          launchers == 1 ? "" : "s", launchers == 1 ? "" : "s");
    return Error{ErrorCode::kNotFound,
                 fmt::format("no PyTorch process is registered on {}{}: {}", where, only, kHowToRegister)};
  }
  std::string why = "nothing matches";
  if (!selector.job_id.empty() && !job_known) {
    why = fmt::format("no process of job {} is registered on {}: {}", selector.job_id, where, kHowToRegister);
  } else if (!selector.pids.empty()) {
    why = fmt::format("no registered process on {} is, or descends from, pid {}: {}", where,
                      fmt::join(selector.pids, ", "), kHowToRegister);
  } else if (!selector.ranks.empty()) {
    why = "no registered process has one of these ranks";
  }
  return Error{ErrorCode::kNotFound, fmt::format("{}. Registered: {}", why, Listed(Grouped(trainers, false)))};
}

// Several jobs in one capture would be analysed as one, with each rank twice.
Status CheckOneJob(const std::vector<JobTarget>& targets, const std::vector<NodeProcesses>& nodes) {
  std::map<size_t, std::string> hosts;
  for (const NodeProcesses& node : nodes) hosts[node.node_idx] = node.host;
  std::vector<std::pair<const Process*, std::string>> processes;
  std::set<int32_t> ranks;
  bool rank_twice = false;
  for (const JobTarget& target : targets) {
    processes.emplace_back(&target.process, hosts[target.node_idx]);
    if (target.process.rank && !ranks.insert(*target.process.rank).second) rank_twice = true;
  }
  auto groups = Grouped(processes, false);
  if (groups.size() == 1 && !rank_twice) return {};
  if (ranks.empty() && groups.size() == 1) return {};  // Lone processes of one user.
  const char* advice = "choose one with --job ID";
  if (groups.size() == 1) {
    groups = Grouped(processes, true);
    advice = "choose one by its launcher's or its processes' ids with --pid";
  }
  return Error{ErrorCode::kFailedPrecondition,
               fmt::format("several jobs match; {}, or --pid: {}", advice, Listed(groups))};
}

}  // namespace

std::string RankList(std::vector<int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

bool Matches(const CaptureSelector& selector, const Process& process) {
  if (!selector.include_launchers && process.role != ProcessRole::kTrainer) return false;
  if (!selector.job_id.empty() && !IsJob(selector.job_id, process)) return false;
  if (selector.uid && *selector.uid != process.uid) return false;
  if (!selector.ranks.empty() && !(process.rank && InRanges(selector.ranks, *process.rank))) return false;
  const auto is_named = [&](int32_t pid) {
    return pid == process.pid ||
           std::find(process.client_pids.begin(), process.client_pids.end(), pid) != process.client_pids.end();
  };
  if (!selector.pids.empty() && std::none_of(selector.pids.begin(), selector.pids.end(), is_named)) return false;
  const auto& ids = selector.process_ids;
  return ids.empty() || std::find(ids.begin(), ids.end(), process.id) != ids.end();
}

Result<JobChoice> ChooseTargets(const CaptureSelector& selector, const std::vector<NodeProcesses>& nodes,
                                std::optional<uint32_t> caller_uid) {
  JobChoice choice;
  bool own = false;
  for (const NodeProcesses& node : nodes) {
    for (const Process& process : node.processes) {
      if (!Matches(selector, process)) continue;
      own = own || (caller_uid && process.uid == *caller_uid);
      JobTarget target;
      target.node_idx = node.node_idx;
      target.process = process;
      choice.targets.push_back(std::move(target));
    }
  }
  if (own) {
    choice.other_user_count =
        std::erase_if(choice.targets, [&](const JobTarget& target) { return target.process.uid != *caller_uid; });
  }
  if (choice.targets.empty()) return NothingMatches(selector, nodes);
  if (selector.pids.empty() && selector.process_ids.empty()) RETURN_IF_ERROR(CheckOneJob(choice.targets, nodes));
  std::stable_sort(choice.targets.begin(), choice.targets.end(), [](const JobTarget& a, const JobTarget& b) {
    const auto key = [](const JobTarget& t) {
      return std::tuple(t.process.rank.value_or(INT32_MAX), t.node_idx, t.process.pid);
    };
    return key(a) < key(b);
  });
  std::set<int32_t> present;
  for (const JobTarget& target : choice.targets) {
    if (target.process.rank) present.insert(*target.process.rank);
    if (target.process.world_size)
      choice.world_size = std::max(choice.world_size.value_or(0), *target.process.world_size);
  }
  if (!selector.pids.empty() || !selector.process_ids.empty()) return choice;
  const int32_t world = std::min(choice.world_size.value_or(0), kMostRanks);
  for (const auto& [first, last] : selector.ranks) {
    if (world > 0 && first >= world) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the job has no rank {}: its ranks are 0-{}", first, world - 1)};
    }
    for (int32_t rank = first; world == 0 && rank <= last && rank - first < kMostRanks; ++rank) {
      if (!present.contains(rank)) choice.missing_ranks.push_back(rank);
    }
  }
  for (int32_t rank = 0; rank < world; ++rank) {
    if (!selector.ranks.empty() && !InRanges(selector.ranks, rank)) continue;
    if (!present.contains(rank)) choice.missing_ranks.push_back(rank);
  }
  return choice;
}

}  // namespace lockstep::control
