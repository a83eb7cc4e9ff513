#include "node/control/discovery/pbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/subprocess.h"
#include "node/control/discovery/command_json.h"
#include "node/control/discovery/command_words.h"

namespace lockstep::control {

namespace {

// job_state's letters, by PBS's manual.
std::string StateName(const std::string& letter) {
  if (letter == "Q") return "queued";
  if (letter == "R") return "running";
  if (letter == "E") return "exiting";
  if (letter == "H") return "held";
  if (letter == "F" || letter == "X") return "finished";
  if (letter == "S" || letter == "U") return "suspended";
  if (letter == "T") return "in transit";
  if (letter == "W") return "waiting";
  if (letter == "M") return "moved to another server";
  if (letter == "B") return "begun";
  return letter.empty() ? "unknown" : letter;
}

// "13[4]" of "13[4].head".
std::string_view WithoutServer(std::string_view id) { return id.substr(0, id.find('.')); }

}  // namespace

Status CheckPbsId(const std::string& id) {
  const bool good = !id.empty() && id.size() <= 200 && IsDigit(id[0]) && std::all_of(id.begin(), id.end(), [](char c) {
    return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_' || c == '[' || c == ']' || c == '@';
  });
  if (good) return {};
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("\"{}\" is not a PBS job's id (as 12, 12.server or 13[4])", Shortened(id))};
}

std::vector<std::string> ParseExecHost(std::string_view exec_host) {
  std::vector<std::string> hosts;
  while (!exec_host.empty()) {
    const size_t plus = exec_host.find('+');
    std::string_view host = exec_host.substr(0, plus);
    host = host.substr(0, host.find('/'));
    host = host.substr(0, host.find(':'));
    if (!host.empty() && std::find(hosts.begin(), hosts.end(), host) == hosts.end()) {
      if (hosts.size() == kMostNodes) break;
      hosts.emplace_back(host);
    }
    exec_host.remove_prefix(plus == std::string_view::npos ? exec_host.size() : plus + 1);
  }
  return hosts;
}

Result<JobNodes> SelectPbsJob(const std::string& id, std::string_view json) {
  RETURN_IF_ERROR(CheckPbsId(id));
  ASSIGN_OR_RETURN(const JsonTree tree, ParseCommandJson(json, "qstat's answer"));
  const JsonValue jobs = tree.root()["Jobs"];
  if (!jobs.IsObject()) return JobNotFound(fmt::format("PBS has no job {}", id));

  const bool whole_array = WithoutServer(id).ends_with("[]");
  const bool names_server = id.find('.') != std::string::npos;
  JobNodes found;
  std::vector<std::string> running;
  std::string other_state;
  for (const auto& [member_name, job] : jobs.members()) {
    const std::string name(member_name);
    const std::string_view shortened = WithoutServer(name);
    bool meant = name == id || (!names_server && shortened == id);
    if (whole_array) {  // Its elements: "13[4].head" of "13[].head".
      const std::string_view front = std::string_view(id).substr(0, id.find('[') + 1);
      meant = shortened.starts_with(front) && !shortened.ends_with("[]");
    }
    if (!meant) continue;
    const std::string state = job["job_state"].TextOrEmpty();
    std::vector<std::string> hosts = ParseExecHost(job["exec_host"].TextOrEmpty());
    if (hosts.empty() || state == "F" || state == "X" || state == "M") {
      const std::string comment = job["comment"].TextOrEmpty();
      other_state = StateName(state) + (comment.empty() ? "" : ": " + Shortened(comment));
      continue;
    }
    running.push_back(name);
    found = {.kind = JobKind::kPbs, .job_id = name, .state = StateName(state), .nodes = {}};
    for (std::string& host : hosts) found.nodes.push_back({.host = std::move(host)});
  }
  if (running.size() == 1) return found;
  if (running.size() > 1) {
    running.resize(std::min<size_t>(running.size(), 8));
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("PBS job {} is an array of which several elements run: name one of {}", id,
                                        fmt::join(running, ", "))};
  }
  if (other_state.empty()) return JobNotFound(fmt::format("PBS has no job {}", id));
  return JobNotFound(fmt::format("PBS job {} has no nodes: it is {}", id, other_state));
}

Result<JobNodes> FindPbsJob(const std::string& id) {
  RETURN_IF_ERROR(CheckPbsId(id));
  std::vector<std::string> command = {"qstat", "-f", "-F", "json"};
  if (WithoutServer(id).ends_with("[]")) command.push_back("-t");  // Elements too.
  command.push_back(id);
  ASSIGN_OR_RETURN(const CommandOutput asked, RunCommand(command));
  if (asked.exit_status != 0) {
    // 153 unknown, 35 finished (then its words say so), 170 no job's id.
    const bool unknown = asked.error.find("Unknown Job Id") != std::string::npos ||
                         asked.error.find("Unknown queue") != std::string::npos;
    if (unknown) return JobNotFound(fmt::format("PBS has no job {}", id));
    if (asked.error.find("has finished") != std::string::npos) {
      return JobNotFound(fmt::format("PBS job {} has ended", id));
    }
    return CommandFailed("qstat", asked);
  }
  return SelectPbsJob(id, asked.output);
}

}  // namespace lockstep::control
