#include "programs/cli/live/top_stacks.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "node/control/client/place.h"
#include "node/jobs/live_job.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kTimeoutNs = 30'000'000'000;
constexpr size_t kMostThreads = 64;

std::string FrameText(const evidence::StackFrame& frame) {
  std::string place = frame.file;
  if (frame.line > 0) place += fmt::format(":{}", frame.line);
  return place.empty() ? frame.function : fmt::format("{}  {}", frame.function, place);
}

void AddThread(const evidence::ThreadStack& thread, std::vector<std::string>* lines) {
  std::string title = fmt::format("thread {}", thread.tid);
  if (!thread.name.empty()) title += " " + thread.name;
  if (thread.is_main) title += ", main";
  if (thread.holds_gil) title += ", holds the GIL";
  title += fmt::format(", state {}", thread.state);
  if (!thread.syscall.empty()) title += ", in " + thread.syscall;
  if (!thread.wait_channel.empty()) title += ", sleeps in " + thread.wait_channel;
  lines->push_back(std::move(title));
  for (const evidence::StackFrame& frame : thread.python) lines->push_back("    " + FrameText(frame));
  for (const evidence::StackFrame& frame : thread.native) lines->push_back("  c " + FrameText(frame));
}

void AddMissing(const std::vector<evidence::MissingEvidence>& missing, std::vector<std::string>* lines) {
  for (const evidence::MissingEvidence& one : missing) {
    lines->push_back(fmt::format("no {}: {}{}{}", one.what, one.reason, one.remedy.empty() ? "" : "; ", one.remedy));
  }
}

}  // namespace

std::vector<std::string> LookAtStacks(const jobs::Nodes& nodes, bool names_socket, const top::RankTarget& target) {
  int32_t pid = 0;
  const char* end = target.pid.data() + target.pid.size();
  const auto [stopped, error] = std::from_chars(target.pid.data(), end, pid);
  if (error != std::errc() || stopped != end || pid < 1 || target.node_idx >= nodes.endpoints.size()) {
    return {"its process is not known: lockstepd does not report its pid"};
  }
  jobs::Nodes one = nodes;
  one.endpoints = {nodes.endpoints[target.node_idx]};
  one.is_local = nodes.is_local && !names_socket;  // As `lockstep hang` does: here it takes no daemon.
  control::InspectionSpec spec;
  spec.pids = {pid};
  spec.flight_record = false;
  spec.devices = false;
  spec.ras = false;
  jobs::LiveJob live(std::move(one), std::move(spec));
  const std::vector<jobs::NodeLook> looks = live.Look(control::InspectionDepth::kFull, kTimeoutNs);
  std::vector<std::string> lines;
  for (const jobs::NodeLook& look : looks) {
    if (look.error) lines.push_back(fmt::format("{}: {}", look.host, look.error->ToString()));
    for (const evidence::InspectedProcess& process : look.inspection.processes) {
      if (process.pid != pid) continue;  // Its children have stacks of their own.
      lines.push_back(fmt::format("pid {} on {}, held for {:.1f} ms at most: {}", process.pid, look.host,
                                  static_cast<double>(process.longest_pause_ns) / 1e6, process.command));
      for (size_t i = 0; i < process.stacks.size() && i < kMostThreads; ++i) AddThread(process.stacks[i], &lines);
      if (process.stacks.size() > kMostThreads) {
        lines.push_back(fmt::format("{} more threads", process.stacks.size() - kMostThreads));
      }
      AddMissing(process.missing, &lines);
    }
    AddMissing(look.inspection.missing, &lines);
  }
  if (lines.empty()) lines.emplace_back("its process was not found: it has ended");
  return lines;
}

}  // namespace lockstep::cli
