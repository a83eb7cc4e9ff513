#include "node/control/discovery/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "base/split.h"
#include "base/subprocess.h"
#include "base/text_scan.h"
#include "node/control/discovery/command_words.h"

namespace lockstep::control {

namespace {

constexpr std::string_view kRowFormat = "%i|%A|%T|%N|%r";
constexpr int32_t kMostTasks = 10'000'000;  // A layout that claims more is nonsense.

// States in which a job has given its nodes back, by SLURM's manual.
bool HasEnded(std::string_view state) {
  constexpr std::array kEnded = {"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
                                 "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::find(kEnded.begin(), kEnded.end(), state) != kEnded.end();
}

bool Runs(const SqueueRow& row) { return !row.nodes.empty() && row.state != "PENDING" && !HasEnded(row.state); }

// "12_3" of "12_3.0"; an error where it is no job's id.
Result<std::string> WithoutStep(const std::string& id) {
  const std::string job = id.substr(0, id.find('.'));
  const size_t sign = job.find_first_of("_+");
  const bool good = sign == std::string::npos ? IsNumber(job)
                                              : IsNumber(std::string_view(job).substr(0, sign)) &&
                                                    IsNumber(std::string_view(job).substr(sign + 1));
  if (!good || job.size() > 40) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("\"{}\" is not a SLURM job's id (as 12, 12_3 or 13+1)", id.substr(0, 80))};
  }
  return job;
}

// The part of a heterogeneous job that a row is of: 1 for "13+1".
std::optional<int32_t> HetGroup(const std::string& id) {
  const size_t plus = id.find('+');
  if (plus == std::string::npos) return std::nullopt;
  const auto group = WholeNumber<int32_t>(std::string_view(id).substr(plus + 1));
  return group && *group >= 0 ? group : std::nullopt;
}

Error NoneRuns(const std::string& id, const std::vector<const SqueueRow*>& rows) {
  if (rows.empty()) {
    return JobNotFound(
        fmt::format("SLURM has no job {}: it never existed, or ended a while ago (squeue lists running jobs)", id));
  }
  const SqueueRow& row = *rows[0];
  if (HasEnded(row.state)) return JobNotFound(fmt::format("SLURM job {} has ended ({})", id, row.state));
  return JobNotFound(fmt::format("SLURM job {} has no nodes yet: it is {} ({})", id, row.state, row.reason));
}

}  // namespace

Status CheckSlurmId(const std::string& id) {
  RETURN_IF_ERROR(WithoutStep(id));
  return {};
}

Result<std::vector<SqueueRow>> ParseSqueue(std::string_view output) {
  std::vector<SqueueRow> rows;
  for (const std::string_view line : SplitLines(output)) {
    if (line.empty()) continue;
    std::array<std::string_view, 5> fields;
    std::string_view rest = line;
    size_t count = 0;
    while (count < fields.size()) {
      const size_t bar = count + 1 < fields.size() ? rest.find('|') : std::string_view::npos;
      fields[count++] = rest.substr(0, bar);
      if (bar == std::string_view::npos) break;
      rest.remove_prefix(bar + 1);
    }
    if (count != fields.size() || fields[0].empty() || !IsNumber(fields[1])) {
      return Error{.code = ErrorCode::kCorruptData,
                   .message = fmt::format("squeue's output is not understood: \"{}\"", Shortened(line))};
    }
    rows.push_back({.id = std::string(fields[0]),
                    .real_id = std::string(fields[1]),
                    .state = std::string(fields[2]),
                    .nodes = std::string(fields[3]),
                    .reason = std::string(fields[4])});
  }
  return rows;
}

Result<JobNodes> SelectSlurmJob(const std::string& id, const std::vector<SqueueRow>& rows) {
  ASSIGN_OR_RETURN(const std::string job, WithoutStep(id));
  // squeue -j 13+1 lists all parts; an id with a sign names one row.
  const bool exact = !IsNumber(job);
  std::vector<const SqueueRow*> meant;
  std::vector<const SqueueRow*> running;
  for (const SqueueRow& row : rows) {
    if (exact && row.id != job) continue;
    meant.push_back(&row);
    if (Runs(row)) running.push_back(&row);
  }
  if (running.empty()) return NoneRuns(job, meant);

  const bool het =
      std::all_of(running.begin(), running.end(), [](const SqueueRow* row) { return HetGroup(row->id).has_value(); });
  if (running.size() > 1 && !het) {
    std::string names;
    for (size_t i = 0; i < running.size() && i < 8; ++i) names += (i == 0 ? "" : ", ") + running[i]->id;
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("SLURM job {} is an array of which {} elements run: name one of {}{}", job,
                                        running.size(), names, running.size() > 8 ? ", ..." : "")};
  }
  JobNodes found = {.kind = JobKind::kSlurm, .job_id = running[0]->real_id, .state = running[0]->state, .nodes = {}};
  // Its processes know a heterogeneous job by its first part's number, which is the one in front of "+".
  if (het) found.job_id = running[0]->id.substr(0, running[0]->id.find('+'));
  for (const SqueueRow* row : running) {
    ASSIGN_OR_RETURN(std::vector<std::string> hosts, ExpandHostlist(row->nodes));
    for (std::string& host : hosts) {
      // Parts may share a node; one of them is enough to reach it.
      const bool there =
          std::any_of(found.nodes.begin(), found.nodes.end(), [&](const JobNode& node) { return node.host == host; });
      if (!there) found.nodes.push_back({.host = std::move(host), .het_group = HetGroup(row->id)});
    }
  }
  return found;
}

std::vector<std::string> ParseNumberedSteps(std::string_view output) {
  std::vector<std::string> steps;
  for (const std::string_view line : SplitLines(output)) {
    const size_t dot = line.rfind('.');
    if (dot != std::string_view::npos && IsNumber(line.substr(dot + 1))) steps.emplace_back(line);
  }
  return steps;
}

std::map<std::string, std::vector<int32_t>> ParseTaskLayout(std::string_view output) {
  // "\tNode 0 (n001), 4 task(s): 0 3 5 6 "
  std::map<std::string, std::vector<int32_t>> layout;
  for (const std::string_view line : SplitLines(output)) {
    const size_t open = line.find(" (");
    const size_t close = line.find("), ");
    const size_t colon = line.find("task(s): ");
    if (line.find("Node ") == std::string_view::npos || open == std::string_view::npos ||
        close == std::string_view::npos || colon == std::string_view::npos || open > close || close > colon) {
      continue;
    }
    std::vector<int32_t>& tasks = layout[std::string(line.substr(open + 2, close - open - 2))];
    for (const std::string_view word : SplitAt(line.substr(colon + 9))) {
      const auto task = WholeNumber<int32_t>(word);
      if (!task || *task < 0 || *task > kMostTasks) return {};
      tasks.push_back(*task);
    }
  }
  return layout;
}

Result<JobNodes> FindSlurmJob(const std::string& id) {
  ASSIGN_OR_RETURN(const std::string job, WithoutStep(id));
  // SQUEUE_STATES, SQUEUE_USERS and their like would hide the job.
  CommandOptions options = {.environment = EnvironmentWithout({"SQUEUE_"})};
  ASSIGN_OR_RETURN(const CommandOutput asked,
                   RunCommand({"squeue", "-h", "-t", "all", "-j", job, "-o", std::string(kRowFormat)}, options));
  if (asked.exit_status != 0) {
    if (asked.error.find("Invalid job id") != std::string::npos) return NoneRuns(job, {});
    return CommandFailed("squeue", asked);
  }
  ASSIGN_OR_RETURN(const std::vector<SqueueRow> rows, ParseSqueue(asked.output));
  ASSIGN_OR_RETURN(JobNodes found, SelectSlurmJob(id, rows));

  // Which node has which task is useful (it tells which ranks a node that is down has) but not needed, so errors here
  // are ignored. With several steps, which one trains is not known.
  const bool element = job.find('_') != std::string::npos;  // By its number, the first would stand for the whole array.
  const auto steps = RunCommand({"squeue", "-s", "-h", "-j", element ? job : found.job_id, "-o", "%i"}, options);
  if (!steps || steps->exit_status != 0) return found;
  std::vector<std::string> numbered = ParseNumberedSteps(steps->output);
  if (id.find('.') != std::string::npos) {
    // By its end: an element's steps are listed as "7_3.0" though it was asked for by its number, 8.
    const std::string wanted = id.substr(id.find('.'));
    std::erase_if(numbered, [&](const std::string& step) { return !step.ends_with(wanted); });
  }
  if (numbered.size() != 1 || found.nodes[0].het_group) return found;
  const auto layout = RunCommand({"sattach", "--layout", numbered[0]}, options);
  if (!layout || layout->exit_status != 0) return found;
  const auto tasks = ParseTaskLayout(layout->output);
  for (JobNode& node : found.nodes) {
    if (const auto at = tasks.find(node.host); at != tasks.end()) node.ranks = at->second;
  }
  return found;
}

}  // namespace lockstep::control
