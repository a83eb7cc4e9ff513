#include "programs/cli/capture/status_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "node/control/api/capture_risk.h"
#include "node/control/api/json.h"
#include "node/control/client/job_capture_choice.h"
#include "node/control/client/place.h"
#include "present/report/format.h"
#include "present/report/json_stream.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::cli {
namespace {

using control::Process;
using control::ProcessState;
using report::Align;
using report::FormatDuration;
using report::Paint;
using report::Printable;
using report::Style;
using report::TableCell;
using report::TextTable;

constexpr size_t kMostStatusLines = 32;
constexpr size_t kMostFinished = 5;
constexpr size_t kMostProblems = 20;
// Clocks further apart than this make a common start worth a look.
constexpr int64_t kClockWorryNs = 100'000'000;

std::string Plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", report::FormatCount(count), what, count == 1 ? "" : "s");
}

std::string ProcessCount(size_t count) {
  return fmt::format("{} process{}", report::FormatCount(count), count == 1 ? "" : "es");
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

template <typename T>
std::string OrDash(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

/// How long ago by the node's own clock.
std::string Ago(const jobs::NodeView& node, int64_t unix_ns) {
  if (unix_ns <= 0 || !node.status) return "-";
  return FormatDuration(std::max<int64_t>(node.status->now_unix_ns - unix_ns, 0)) + " ago";
}

Paint PaintOf(ProcessState state) {
  switch (state) {
    case ProcessState::kIdle: return Paint::kPlain;
    case ProcessState::kRequested: return Paint::kWarn;
    case ProcessState::kTracing: return Paint::kGood;
    case ProcessState::kSilent: return Paint::kBad;
  }
  return Paint::kPlain;
}

std::string HostsText(const std::vector<std::string>& hosts) {
  return hosts.size() == 1 ? "on " + Printable(hosts.front()) : "on " + Plural(hosts.size(), "node");
}

std::string JobTitle(const jobs::JobView& job, const Style& style) {
  std::string title;
  if (!job.id.empty()) {
    title = fmt::format("Job {} ({})", Printable(job.id), control::JobKindName(job.kind));
  } else if (!job.ranks.empty() && job.ranks.front().process->rank) {
    title = "Job without an id";
  } else {
    title = "Processes without a job";
  }
  title = style(Paint::kStrong, title);
  title += std::string(style.Dot()) + (job.user.empty() ? fmt::format("uid {}", job.uid) : Printable(job.user));
  title += style.Dot();
  const size_t count = job.ranks.size();
  if (job.world_size && job.missing_ranks.empty()) {
    title += fmt::format("{} of {} ranks", count, *job.world_size);
  } else if (job.world_size) {
    title += style(Paint::kWarn, fmt::format("{} of {} ranks", count, *job.world_size));
  } else {
    title += ProcessCount(count);
  }
  title += " " + HostsText(job.hosts);
  if (!job.helpers.empty()) {
    title += fmt::format("{}{} (launchers, helpers)", style.Dot(), Plural(job.helpers.size(), "other"));
  }
  return title;
}

void WriteProcesses(const std::vector<jobs::PlacedProcess>& processes, bool with_role, const Style& style, int width,
                    std::ostream& out) {
  TextTable table({{.header = "host", .align = Align::kLeft},
                   {.header = "rank"},
                   {.header = "local", .drop = 6},
                   {.header = with_role ? "role" : "state", .align = Align::kLeft},
                   {.header = "pid"},
                   {.header = "user", .align = Align::kLeft, .drop = 5},
                   {.header = "device", .align = Align::kLeft, .drop = 3},
                   {.header = "torch", .align = Align::kLeft, .drop = 4},
                   {.header = "last poll", .drop = 1},
                   {.header = "command", .align = Align::kLeft, .flexible = true, .drop = 7}});
  const std::string* host = nullptr;
  for (const jobs::PlacedProcess& placed : processes) {
    const Process& process = *placed.process;
    const bool is_same = host != nullptr && *host == placed.node->host;
    host = &placed.node->host;
    table.AddRow({is_same ? "" : Printable(*host), OrDash(process.rank), OrDash(process.local_rank),
                  with_role ? TableCell(control::ProcessRoleName(process.role))
                            : TableCell(control::ProcessStateName(process.state), PaintOf(process.state)),
                  process.pid == 0 ? "-" : std::to_string(process.pid),
                  process.user.empty() ? std::to_string(process.uid) : Printable(process.user), OrDash(process.device),
                  OrDash(process.torch_version), Ago(*placed.node, process.last_poll_unix_ns),
                  TableCell(Printable(process.command), Paint::kFaint)});
  }
  table.Write(style, width, out);
}

/// Large jobs: a line a host.
void WriteHosts(const jobs::JobView& job, const Style& style, int width, std::ostream& out) {
  std::map<std::string, std::vector<jobs::PlacedProcess>> by_host;
  for (const jobs::PlacedProcess& placed : job.ranks) by_host[placed.node->host].push_back(placed);
  TextTable table({{.header = "host", .align = Align::kLeft},
                   {.header = "ranks", .align = Align::kLeft, .flexible = true},
                   {.header = "state", .align = Align::kLeft},
                   {.header = "device", .align = Align::kLeft, .drop = 2},
                   {.header = "torch", .align = Align::kLeft, .drop = 3},
                   {.header = "oldest poll", .drop = 1}});
  size_t lines = 0;
  for (const auto& [host, processes] : by_host) {
    if (++lines > kMostStatusLines) continue;
    std::vector<int32_t> ranks;
    std::map<ProcessState, size_t> states;
    std::set<std::string> devices;
    std::set<std::string> versions;
    int64_t oldest = processes.front().process->last_poll_unix_ns;
    for (const jobs::PlacedProcess& placed : processes) {
      if (placed.process->rank) ranks.push_back(*placed.process->rank);
      ++states[placed.process->state];
      devices.insert(OrDash(placed.process->device));
      versions.insert(OrDash(placed.process->torch_version));
      oldest = std::min(oldest, placed.process->last_poll_unix_ns);
    }
    std::string state;
    for (const auto& [which, count] : states) {
      state += fmt::format("{}{}", state.empty() ? "" : ", ",
                           style(PaintOf(which), fmt::format("{} {}", count, control::ProcessStateName(which))));
    }
    table.AddRow({Printable(host), ranks.empty() ? ProcessCount(processes.size()) : control::RankList(ranks), state,
                  fmt::format("{}", fmt::join(devices, ", ")), fmt::format("{}", fmt::join(versions, ", ")),
                  Ago(*processes.front().node, oldest)});
  }
  if (lines > kMostStatusLines) table.AddNote(fmt::format("{} more nodes; --all shows them", lines - kMostStatusLines));
  table.Write(style, width, out);
}

void WriteJob(const jobs::JobView& job, const Style& style, int width, bool all, std::ostream& out) {
  out << '\n';
  report::WriteWrapped(JobTitle(job, style), "", "  ", width, out);
  if (!job.ranks.empty()) {
    if (all || job.ranks.size() <= kMostStatusLines) {
      WriteProcesses(job.ranks, false, style, width, out);
    } else {
      WriteHosts(job, style, width, out);
    }
  }
  if (all && !job.helpers.empty()) WriteProcesses(job.helpers, true, style, width, out);
  if (!job.missing_ranks.empty()) {
    report::WriteWrapped(fmt::format("not registered: rank{} {}", job.missing_ranks.size() == 1 ? "" : "s",
                                     control::RankList(job.missing_ranks)),
                         "  ", "  ", width, out, Paint::kWarn, style);
  }
  const auto is_at_risk = [](const jobs::PlacedProcess& placed) {
    return !control::CaptureRisk(*placed.process).empty();
  };
  const auto first_at_risk = std::find_if(job.ranks.begin(), job.ranks.end(), is_at_risk);
  if (first_at_risk != job.ranks.end()) {
    const std::string& version = first_at_risk->process->torch_version;
    report::WriteWrapped(fmt::format("a capture could end {} of them (Kineto of PyTorch {}), so it needs "
                                     "--allow-unsafe; under 'lockstep run' it could not",
                                     std::count_if(first_at_risk, job.ranks.end(), is_at_risk),
                                     version.empty() ? "of an unknown version" : Printable(version)),
                         "  ", "  ", width, out, Paint::kWarn, style);
  }
  const auto uncounted = std::count_if(job.ranks.begin(), job.ranks.end(), [](const jobs::PlacedProcess& placed) {
    return !placed.process->counts_iterations;
  });
  if (uncounted > 0) {
    report::WriteWrapped(fmt::format("{} of them cannot count iterations: capture by --duration", uncounted), "  ",
                         "  ", width, out, Paint::kFaint, style);
  }
}

std::string WindowText(const control::CaptureWindow& window) {
  if (window.mode == control::CaptureWindow::Mode::kDuration) return FormatDuration(window.duration_ns);
  return Plural(static_cast<size_t>(std::max(window.iterations, 0)), "iteration");
}

TableCell GroupState(const jobs::GroupView& group) {
  std::set<std::string> states;
  for (const auto& [node, capture] : group.captures) states.insert(control::CaptureStateName(capture->state));
  if (group.is_running) return {"running", Paint::kGood};
  if (states.size() == 1 && *states.begin() == "done") return {"done"};
  if (states.size() == 1) return {*states.begin(), *states.begin() == "failed" ? Paint::kBad : Paint::kWarn};
  return {"partial", Paint::kWarn};
}

void WriteCaptures(const std::vector<jobs::GroupView>& groups, const Style& style, int width, bool all,
                   std::ostream& out) {
  if (groups.empty()) return;
  out << '\n' << style(Paint::kStrong, "Captures") << '\n';
  TextTable table({{.header = "capture", .align = Align::kLeft, .drop = 4},
                   {.header = "state", .align = Align::kLeft},
                   {.header = "traces"},
                   {.header = "nodes", .drop = 3},
                   {.header = "window", .align = Align::kLeft},
                   {.header = "began", .drop = 1},
                   {.header = "asked for by", .align = Align::kLeft, .flexible = true, .drop = 5}});
  size_t finished = 0;
  for (const jobs::GroupView& group : groups) {
    if (!group.is_running && ++finished > kMostFinished && !all) continue;
    const auto& [node, capture] = group.captures.front();
    table.AddRow({Printable(group.group), GroupState(group), fmt::format("{}/{}", group.done_count, group.target_count),
                  std::to_string(group.captures.size()), WindowText(capture->spec.window),
                  Ago(*node, capture->created_unix_ns), TableCell(Printable(capture->requested_by), Paint::kFaint)});
  }
  if (finished > kMostFinished && !all) {
    table.AddNote(fmt::format("{} more are over; --all shows them", finished - kMostFinished));
  }
  table.Write(style, width, out);
}

std::string ClockText(const jobs::NodeView& node, const Style& style) {
  if (!node.clock) return "-";
  const int64_t correction = node.clock->Correction();
  if (correction == 0) return "under " + FormatDuration(node.clock->uncertainty_ns);
  return fmt::format("{}{} {} {}", correction > 0 ? "+" : "", FormatDuration(correction),
                     style.unicode ? "\u00b1" : "+-", FormatDuration(node.clock->uncertainty_ns));
}

void WriteNodes(const jobs::StatusView& view, const Style& style, int width, bool all, std::ostream& out) {
  if (view.answered_count() == 0) return;
  out << '\n' << style(Paint::kStrong, "Nodes") << '\n';
  if (!all && view.answered_count() > kMostStatusLines) {
    int64_t furthest = 0;
    for (const jobs::NodeView& node : view.nodes) {
      if (node.clock) furthest = std::max(furthest, std::abs(node.clock->offset_ns) + node.clock->uncertainty_ns);
    }
    report::WriteWrapped(fmt::format("{} answered; clocks are within {} of this machine's; --all shows them",
                                     view.answered_count(), FormatDuration(furthest)),
                         "  ", "  ", width, out);
    return;
  }
  TextTable table({{.header = "node", .align = Align::kLeft},
                   {.header = "lockstepd", .align = Align::kLeft, .drop = 2},
                   {.header = "up for", .drop = 3},
                   {.header = "processes"},
                   {.header = "clock off by", .align = Align::kLeft, .drop = 1}});
  for (const jobs::NodeView& node : view.nodes) {
    if (!node.status) continue;
    const bool is_off = node.clock && std::abs(node.clock->Correction()) > kClockWorryNs;
    table.AddRow({Printable(node.host), OrDash(node.status->version),
                  FormatDuration(std::max<int64_t>(node.status->now_unix_ns - node.status->started_unix_ns, 0)),
                  report::FormatCount(node.status->process_count),
                  TableCell(ClockText(node, style), is_off ? Paint::kWarn : Paint::kPlain)});
  }
  table.Write(style, width, out);
}

/// Processes that died while they were traced, or so shortly after it that it may have been the cause.
void AddDeaths(const jobs::NodeView& node, const control::Capture& capture, std::set<std::string>* told,
               std::vector<std::string>* problems) {
  for (const control::CaptureTarget& target : capture.targets) {
    if (!target.end || !target.end->IsDeath()) continue;
    const Process& process = target.process;
    if (!told->insert(process.id).second) continue;  // By the newest capture of it.
    const std::string who = process.rank ? fmt::format("rank {}, ", *process.rank) : std::string();
    const int64_t after_ns = target.end->unix_ns - target.finished_unix_ns.value_or(0);
    problems->push_back(fmt::format("{}: {}pid {}, {} {}, {} (capture {})", Printable(node.host), who, process.pid,
                                    EndWords(*target.end), Ago(node, target.end->unix_ns),
                                    target.state == control::TargetState::kDied
                                        ? "while it was being traced"
                                        : FormatDuration(std::max<int64_t>(after_ns, 0)) + " after its trace",
                                    Printable(capture.spec.group.empty() ? capture.id : capture.spec.group)));
  }
}

void WriteProblems(const jobs::StatusView& view, const Style& style, int width, bool all, std::ostream& out) {
  std::vector<std::string> problems;
  for (const jobs::NodeView& node : view.nodes) {
    const std::string host = Printable(node.host);
    if (node.error) problems.push_back(fmt::format("{}: {}", host, Printable(node.error->ToString())));
    if (!node.status) continue;
    for (const std::string& problem : node.status->problems) {
      problems.push_back(fmt::format("{}: {}", host, Printable(problem)));
    }
    std::set<std::string> told;
    for (const control::Capture& capture : node.captures) AddDeaths(node, capture, &told, &problems);
    if (node.clock && std::abs(node.clock->Correction()) > kClockWorryNs) {
      problems.push_back(fmt::format("{}: its clock is {} {} this machine's: does it keep time by NTP?", host,
                                     FormatDuration(std::abs(node.clock->offset_ns)),
                                     node.clock->offset_ns > 0 ? "ahead of" : "behind"));
    }
  }
  if (problems.empty()) return;
  out << '\n' << style(Paint::kStrong, "Problems") << '\n';
  for (size_t i = 0; i < problems.size(); ++i) {
    if (i == kMostProblems && !all) {
      report::WriteWrapped(fmt::format("{} more; --all shows them", problems.size() - i), "  ", "  ", width, out);
      break;
    }
    report::WriteWrapped(problems[i], fmt::format("  {} ", style.Bullet()), "    ", width, out, Paint::kWarn, style);
  }
}

std::string Summary(const jobs::StatusView& view, const std::vector<jobs::JobView>& jobs,
                    const std::vector<jobs::GroupView>& groups, const Style& style) {
  const size_t answered = view.answered_count();
  std::string text = Plural(answered, "node") + (answered < view.nodes.size() ? " answered" : "");
  if (answered < view.nodes.size()) {
    text += ", " + style(Paint::kBad, fmt::format("{} did not", view.nodes.size() - answered));
  }
  size_t job_count = 0;
  size_t rank_count = 0;
  for (const jobs::JobView& job : jobs) {
    job_count += !job.id.empty() || (!job.ranks.empty() && job.ranks.front().process->rank) ? 1 : 0;
    rank_count += job.ranks.size();
  }
  const auto running =
      std::count_if(groups.begin(), groups.end(), [](const jobs::GroupView& g) { return g.is_running; });
  text += fmt::format("{0}{1}{0}{2}{0}{3} running", style.Dot(), Plural(job_count, "job"), ProcessCount(rank_count),
                      Plural(static_cast<size_t>(running), "capture"));
  return text;
}

}  // namespace

void WriteStatusText(const jobs::StatusView& view, const report::TextOptions& options, bool all, std::ostream& out) {
  const Style style{options.colour, options.unicode};
  const std::vector<jobs::JobView> jobs = jobs::JobsOf(view);
  const std::vector<jobs::GroupView> groups = jobs::GroupsOf(view);
  report::WriteWrapped(Summary(view, jobs, groups, style), "", "  ", options.width, out);
  if (jobs.empty() && view.answered_count() > 0) {
    out << '\n';
    report::WriteWrapped(
        fmt::format("No process{} has registered: start the job with KINETO_USE_DAEMON=1, as 'lockstep run' does.",
                    view.job_id.empty() ? "" : " of job " + Printable(view.job_id)),
        "", "", options.width, out);
  }
  for (const jobs::JobView& job : jobs) WriteJob(job, style, options.width, all, out);
  WriteCaptures(groups, style, options.width, all, out);
  WriteNodes(view, style, options.width, all, out);
  WriteProblems(view, style, options.width, all, out);
}

void WriteStatusJson(const jobs::StatusView& view, std::ostream& out) {
  report::WriteDocument(
      out, "lockstep.status/1",
      std::any_of(view.nodes.begin(), view.nodes.end(), [](const jobs::NodeView& node) { return node.error; }),
      [&](JsonDocument& json) {
        report::JsonRow row;
        row.Key("asked_unix_ns").Int(view.asked_unix_ns);
        row.Key("nodes").Each(view.nodes, [&](const jobs::NodeView& node) {
          row.Key("host").Text(node.host).Key("place").Text(control::PlaceOf(node.endpoint));
          row.Key("problem").TextOrNull(node.error ? node.error->ToString() : "");
          row.Key("clock_offset_ns");
          if (node.clock) {
            row.Int(node.clock->offset_ns).Key("clock_uncertainty_ns").Int(node.clock->uncertainty_ns);
          } else {
            row.Null().Key("clock_uncertainty_ns").Null();
          }
          row.Key("status");
          node.status ? row.Raw(control::ToJson(*node.status)) : row.Null();
          row.Key("processes").StartArray();
          for (const Process& process : node.processes) row.Raw(control::ToJson(process));
          row.EndArray().Key("captures").StartArray();
          for (const control::Capture& capture : node.captures) row.Raw(control::ToJson(capture));
          row.EndArray();
        });
        row.Key("jobs").Each(jobs::JobsOf(view), [&](const jobs::JobView& job) {
          row.Key("job_kind").Text(control::JobKindName(job.kind)).Key("job_id").TextOrNull(job.id);
          row.Key("uid").Uint(job.uid).Key("user").TextOrNull(job.user).Key("world_size").Optional(job.world_size);
          row.Key("hosts").List(job.hosts).Key("process_count").Uint(job.ranks.size());
          row.Key("helper_count").Uint(job.helpers.size());
          row.Key("ranks").StartArray();
          for (const jobs::PlacedProcess& placed : job.ranks) {
            if (placed.process->rank) row.Int(*placed.process->rank);
          }
          row.EndArray().Key("missing_ranks").List(job.missing_ranks);
        });
        report::WriteRow(json, row);
      });
}

}  // namespace lockstep::cli
