#include "programs/cli/capture/capture_display.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/now.h"
#include "present/report/format.h"
#include "present/report/utf8.h"
#include "programs/cli/terminal/console.h"

namespace lockstep::cli {
namespace {

constexpr size_t kMostTargetLines = 16;
constexpr auto kPlainPeriod = std::chrono::seconds(1);

using control::JobNodeState;
using control::JobProgress;
using control::JobTarget;
using control::TargetState;

// A word for the states that are counted together.
std::string StateWord(const JobTarget& target) {
  if (target.kept()) return "here";
  switch (target.state) {
    case TargetState::kQueued: return "waiting";
    case TargetState::kDelivered: return "asked";
    case TargetState::kWarming: return "warming up";
    case TargetState::kCollecting: return "collecting";
    case TargetState::kWriting: return "writing";
    case TargetState::kDone: return target.fetch_error.empty() ? "coming" : "not fetched";
    case TargetState::kRefused: return "refused";
    case TargetState::kDied: return "died";
    case TargetState::kTimedOut: return "timed out";
    case TargetState::kCancelled: return "cancelled";
  }
  return "waiting";
}

}  // namespace

std::string TargetName(const JobTarget& target, const std::vector<JobNodeState>& nodes) {
  const std::string host = target.node_idx < nodes.size() ? nodes[target.node_idx].host : "";
  const std::string name = target.process.rank
                               ? fmt::format("rank {} ({}, pid {})", *target.process.rank, host, target.process.pid)
                               : fmt::format("pid {} ({})", target.process.pid, host);
  return report::Printable(name);
}

std::string WhoText(const std::vector<JobTarget>& targets, const std::vector<JobNodeState>& nodes) {
  std::set<size_t> on;
  bool ranks = !targets.empty();
  for (const JobTarget& target : targets) {
    on.insert(target.node_idx);
    ranks = ranks && target.process.rank.has_value();
  }
  const char* plural = targets.size() == 1 ? "" : ranks ? "s" : "es";
  std::string text = fmt::format("{} {}{}", targets.size(), ranks ? "rank" : "process", plural);
  if (on.size() > 1) return text + fmt::format(" on {} nodes", on.size());
  if (!on.empty() && *on.begin() < nodes.size()) text += " on " + report::Printable(nodes[*on.begin()].host);
  if (targets.size() == 1) text += fmt::format(" (pid {})", targets[0].process.pid);
  return text;
}

std::string StateText(const JobTarget& target) {
  const std::string reason = report::Printable(target.reason);
  if (target.kept()) {
    const std::string text = fmt::format("here, {}", report::FormatBytes(static_cast<int64_t>(target.file_bytes)));
    return reason.empty() ? text : text + ": " + reason;
  }
  // Until it ends, the reason is what it waits for.
  switch (target.state) {
    case TargetState::kQueued: return reason.empty() ? "waits until it asks for work" : reason;
    case TargetState::kDelivered: return reason.empty() ? "has the request" : "has the request, " + reason;
    case TargetState::kWarming: return "warming up";
    case TargetState::kCollecting: return "collecting";
    case TargetState::kWriting: return "writing its trace";
    case TargetState::kDone:
      if (target.fetch_error.empty()) {
        return fmt::format("its trace of {} is coming", report::FormatBytes(static_cast<int64_t>(target.trace_bytes)));
      }
      return reason.empty() ? "could not be fetched: " + report::Printable(target.fetch_error) : reason;
    default: break;
  }
  const std::string word = StateWord(target);
  return reason.empty() || reason == word ? word : word + ": " + reason;
}

std::string SummaryLine(const JobProgress& progress, int64_t now_unix_ns) {
  if (progress.phase == JobProgress::Phase::kAsking) {
    return progress.nodes.size() == 1 ? fmt::format("asking {}", report::Printable(progress.nodes[0].host))
                                      : fmt::format("asking {} nodes", progress.nodes.size());
  }
  std::vector<std::pair<std::string, size_t>> counts;
  for (const char* word : {"here", "coming", "writing", "collecting", "warming up", "asked", "waiting", "refused",
                           "died", "timed out", "not fetched", "cancelled"}) {
    const auto count =
        static_cast<size_t>(std::count_if(progress.targets.begin(), progress.targets.end(),
                                          [&](const auto& target) { return StateWord(target) == word; }));
    if (count > 0) counts.emplace_back(word, count);
  }
  std::string text;
  for (const auto& [word, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  text = WhoText(progress.targets, progress.nodes) + ": " + text;
  if (progress.start_unix_ns && *progress.start_unix_ns > now_unix_ns) {
    text += fmt::format("; starts in {:.1f} s", static_cast<double>(*progress.start_unix_ns - now_unix_ns) / 1e9);
  }
  return text;
}

std::vector<std::string> ProgressLines(const JobProgress& progress, int64_t now_unix_ns) {
  std::vector<std::string> lines = {SummaryLine(progress, now_unix_ns)};
  if (progress.phase == JobProgress::Phase::kAsking || progress.targets.size() > kMostTargetLines) return lines;
  size_t width = 0;
  for (const JobTarget& target : progress.targets) width = std::max(width, TargetName(target, progress.nodes).size());
  for (const JobTarget& target : progress.targets) {
    lines.push_back(fmt::format("  {:<{}}  {}", TargetName(target, progress.nodes), width, StateText(target)));
  }
  return lines;
}

CaptureDisplay::CaptureDisplay(std::ostream& err, bool is_terminal, int width, bool quiet)
    : err_(err), is_terminal_(is_terminal), width_(std::max(width, 20)), quiet_(quiet) {}

CaptureDisplay::~CaptureDisplay() { Finish(); }

void CaptureDisplay::Finish() {
  if (standing_lines_ > 0) err_ << fmt::format("\r\x1b[{}A\x1b[J", standing_lines_) << std::flush;
  standing_lines_ = 0;
}

void CaptureDisplay::Line(const std::string& text) {
  Finish();
  err_ << text << std::endl;
}

void CaptureDisplay::Update(const JobProgress& progress) {
  if (quiet_) return;
  switch (progress.phase) {
    case JobProgress::Phase::kAsking: return;
    case JobProgress::Phase::kChosen:
      told_.assign(progress.targets.size(), "");
      Line("capturing " + WhoText(progress.targets, progress.nodes));
      for (const JobNodeState& node : progress.nodes) {
        if (!node.problem.empty())
          Line(fmt::format("{} is left out: {}", report::Printable(node.host), report::Printable(node.problem)));
      }
      return;
    case JobProgress::Phase::kRepeating:
      told_.assign(progress.targets.size(), "");
      Line(progress.message);
      return;
    case JobProgress::Phase::kDone: Finish(); return;
    case JobProgress::Phase::kStarted:
    case JobProgress::Phase::kFollowing: break;
  }
  if (is_terminal_) {
    Redraw(progress);
  } else {
    PlainChanges(progress);
  }
}

void CaptureDisplay::Redraw(const JobProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kTerminalPeriod;
  std::string text;
  const std::vector<std::string> lines = ProgressLines(progress, UnixNow());
  for (const std::string& line : lines) {
    // A line that wraps would not be wiped. Names and reasons are printable; a cut sequence is the terminal's to show.
    text += line.substr(0, static_cast<size_t>(width_ - 1)) + "\x1b[K\n";
  }
  Finish();
  err_ << text << std::flush;
  standing_lines_ = lines.size();
}

void CaptureDisplay::PlainChanges(const JobProgress& progress) {
  if (progress.start_unix_ns && progress.start_unix_ns != told_start_) {
    told_start_ = progress.start_unix_ns;
    Line(fmt::format("common start in {:.1f} s", static_cast<double>(*told_start_ - UnixNow()) / 1e9));
  }
  if (progress.targets.size() > kMostTargetLines) {
    const auto now = std::chrono::steady_clock::now();
    const std::string text = SummaryLine(progress, INT64_MAX);
    if (now < next_ || text == told_summary_) return;
    next_ = now + kPlainPeriod;
    told_summary_ = text;
    Line(text);
    return;
  }
  told_.resize(progress.targets.size());
  for (size_t i = 0; i < progress.targets.size(); ++i) {
    const bool is_coming = progress.targets[i].state == TargetState::kDone && !progress.targets[i].kept() &&
                           progress.targets[i].fetch_error.empty();
    const std::string text = StateText(progress.targets[i]);
    if (text == told_[i] || is_coming) continue;
    told_[i] = text;
    Line(fmt::format("{}: {}", TargetName(progress.targets[i], progress.nodes), text));
  }
}

}  // namespace lockstep::cli
