#include "programs/cli/live_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/nanoseconds.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {
namespace {

Result<std::vector<int32_t>> ParsePids(const std::string& text) {
  std::vector<int32_t> pids;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int32_t pid = 0;
    const auto [stopped, error] = std::from_chars(text.data() + at, text.data() + end, pid);
    if (error != std::errc() || stopped != text.data() + end || pid < 1) {
      return Misuse(fmt::format("--pid: '{}' is not a process id, nor several with commas", text));
    }
    pids.push_back(pid);
    at = end + 1;
  }
  return pids;
}

}  // namespace

void LiveFlags::Declare(CLI::App& app) {
  nodes_.Declare(app);
  app.option_defaults()->group("Processes");
  app.add_option("--pid", pids_text_, "Only these processes, or a launcher's ranks, such as 4711,4712; repeatable")
      ->type_name("PID,...");
  app.add_option("--rank", ranks_text_, "Only these ranks, such as 0-3,7")->type_name("RANGES");
  app.add_option(
         "--timeout", timeout_,
         "Time limit for all nodes together; ranks that have not answered by then are reported as missing (30s)")
      ->type_name("TIME");
}

bool LiveFlags::is_given() const { return nodes_.is_given() || !pids_text_.empty() || !ranks_text_.empty(); }

Status LiveFlags::Read() {
  ASSIGN_OR_RETURN(timeout_ns_, ParseTime(timeout_, "--timeout"));
  if (timeout_ns_ < kSecondNs / 2) return Misuse("--timeout: half a second at least");
  for (const std::string& text : pids_text_) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> pids, ParsePids(text));
    selection_.pids.insert(selection_.pids.end(), pids.begin(), pids.end());
  }
  if (!ranks_text_.empty()) {
    ASSIGN_OR_RETURN(const auto ranges, ParseRanges(ranks_text_, "--rank"));
    for (const auto& [first, last] : ranges) {
      if (last > INT32_MAX) return Misuse("--rank: no job has so many ranks");
      selection_.ranks.emplace_back(static_cast<int32_t>(first), static_cast<int32_t>(last));
    }
  }
  return {};
}

Result<jobs::LiveJob> LiveFlags::Find() const {
  jobs::Nodes nodes;
  if (nodes_.names_socket()) {
    ASSIGN_OR_RETURN(nodes, nodes_.Find());
    nodes.is_local = false;
  } else {
    ASSIGN_OR_RETURN(nodes, nodes_.FindWithoutDaemon());
  }
  control::InspectionSpec selection = selection_;
  selection.job_id = nodes.job_id;
  return jobs::LiveJob(std::move(nodes), std::move(selection));
}

}  // namespace lockstep::cli
