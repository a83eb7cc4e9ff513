#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "present/report/format.h"
#include "present/report/nccl/nccl_report.h"
#include "present/report/section_writer.h"
#include "present/report/style.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using evidence::NcclCommunicator;
using evidence::NcclEvidence;
using evidence::NcclJob;
using evidence::NcclMember;
using evidence::NcclProcess;

/// What everybody says, or that they differ.
std::string Agreed(const std::set<std::string>& values) {
  if (values.empty()) return "";
  if (values.size() == 1) return *values.begin();
  std::string text;
  for (const std::string& value : values) {
    if (text.size() > 100) return text + " or others";
    text += (text.empty() ? "" : " or ") + value;
  }
  return text;
}

class TextReport : private SectionWriter {
 public:
  TextReport(const NcclEvidence& evidence, const NcclTextOptions& options, std::ostream& out)
      : SectionWriter(out, {.colour = options.colour, .unicode = options.unicode}, options.columns, options.all),
        evidence_(evidence),
        job_(evidence.job),
        options_(options) {}

  void Write() {
    Headline();
    Findings();
    Communicators();
    Processes();
    Settings();
    if (!job_.communicators.empty()) {
      Transports(job_.communicators.front());
      Rings(job_.communicators.front());
      Trees(job_.communicators.front());
    }
    Graphs();
    if (options_.topology) Topologies();
    Ras();
    Unread();
    out_.flush();
  }

 private:
  void Headline() {
    std::set<std::string> hosts, versions, networks, drivers;
    for (const NcclProcess& process : job_.processes) {
      hosts.insert(process.host);
      if (!process.version.empty()) versions.insert(process.version);
      if (!process.network.empty()) networks.insert(process.network);
      if (!process.driver_version.empty()) drivers.insert(process.driver_version);
    }
    if (!job_.processes.empty()) {
      std::string text =
          fmt::format("NCCL logs of {} process{} on {} host{}", job_.processes.size(),
                      job_.processes.size() == 1 ? "" : "es", hosts.size(), hosts.size() == 1 ? "" : "s");
      if (!versions.empty()) text += "; version " + Agreed(versions);
      if (!drivers.empty()) text += "; driver's CUDA " + Agreed(drivers);
      if (!networks.empty()) text += "; network " + Agreed(networks);
      Paragraph(text, Paint::kStrong);
      Paragraph(fmt::format("lines: {} of NCCL, {} of its of unknown kind, {} of others", FormatCount(job_.lines.nccl),
                            FormatCount(job_.lines.unknown), FormatCount(job_.lines.other)),
                Paint::kFaint);
    }
    if (!evidence_.topologies.empty() || !evidence_.graphs.empty() || !evidence_.ras.empty()) {
      Paragraph(fmt::format("files: {} of topologies, {} of graphs, {} answers of RAS", evidence_.topologies.size(),
                            evidence_.graphs.size(), evidence_.ras.size()),
                Paint::kFaint);
    }
  }

  void Findings() {
    Section("Findings");
    if (evidence_.findings.empty()) out_ << "  none\n";
    const size_t shown = Rows(evidence_.findings.size(), 20);
    for (size_t i = 0; i < shown; ++i) {
      const evidence::NcclLogFinding& finding = evidence_.findings[i];
      const bool is_error = finding.severity == "error", is_warning = finding.severity == "warning";
      const Paint paint = is_error ? Paint::kBad : is_warning ? Paint::kWarn : Paint::kPlain;
      const std::string head = fmt::format("  {:<7}  ", finding.severity);
      WriteWrapped(Printable(finding.text + (finding.first ? " It was the first error." : "")), head, "           ",
                   options_.columns, out_, paint, style_);
      std::string where = finding.kind;
      if (!finding.file.empty())
        where += "  " + finding.file + (finding.line > 0 ? fmt::format(":{}", finding.line) : "");
      WriteWrapped(Printable(where), "           ", "           ", options_.columns, out_, Paint::kFaint, style_);
      if (!finding.remedy.empty()) {
        WriteWrapped(Printable(finding.remedy), fmt::format("           {} ", style_.Arrow()), "             ",
                     options_.columns, out_, Paint::kPlain, style_);
      }
    }
    More(evidence_.findings.size(), shown, "findings");
  }

  void Communicators() {
    if (job_.communicators.empty()) return;
    Section("Communicators");
    TextTable table({{.header = "ranks"},
                     {.header = "seen"},
                     {.header = "complete"},
                     {.header = "hosts"},
                     {.header = "creation"},
                     {.header = "collectives", .drop = 1},
                     {.header = "id", .align = Align::kLeft, .flexible = true}});
    const size_t shown = Rows(job_.communicators.size(), 10);
    for (size_t i = 0; i < shown; ++i) {
      const NcclCommunicator& communicator = job_.communicators[i];
      std::set<std::string> hosts;
      std::set<int32_t> ranks;
      size_t complete = 0;
      std::optional<int64_t> slowest;
      uint64_t operations = 0;
      for (const uint32_t idx : communicator.members) {
        const NcclMember& member = job_.members[idx];
        hosts.insert(job_.processes[member.process].host);
        if (member.rank >= 0) ranks.insert(member.rank);
        complete += member.completed.seen();
        if (member.init_ns) slowest = std::max(slowest.value_or(0), *member.init_ns);
        operations = std::max(operations, member.operations.size() + member.dropped_operation_count);
      }
      table.AddRow({std::to_string(communicator.rank_count), std::to_string(ranks.size()), std::to_string(complete),
                    std::to_string(hosts.size()), FormatDuration(slowest),
                    operations == 0 ? std::string("-") : FormatCount(operations),
                    communicator.id.empty() ? std::string("-") : Printable(communicator.id)});
    }
    table.Write(style_, options_.columns, out_);
    More(job_.communicators.size(), shown, "communicators");
  }

  void Processes() {
    if (job_.processes.empty()) return;
    Section("Processes");
    TextTable table({{.header = "rank"},
                     {.header = "pid"},
                     {.header = "host", .align = Align::kLeft, .flexible = true, .minimum = 28},
                     {.header = "version", .align = Align::kLeft, .drop = 1},
                     {.header = "network", .align = Align::kLeft},
                     {.header = "meets by", .align = Align::kLeft, .drop = 2},
                     {.header = "GPUDirect", .align = Align::kLeft, .drop = 3}});
    std::vector<const NcclProcess*> processes;
    for (const NcclProcess& process : job_.processes) processes.push_back(&process);
    std::stable_sort(processes.begin(), processes.end(), [](const NcclProcess* a, const NcclProcess* b) {
      return std::tuple(a->rank.value_or(INT32_MAX), a->host, a->pid) <
             std::tuple(b->rank.value_or(INT32_MAX), b->host, b->pid);
    });
    const size_t shown = Rows(processes.size(), 16);
    const auto dash = [](const std::string& text) { return text.empty() ? std::string("-") : Printable(text); };
    for (size_t i = 0; i < shown; ++i) {
      const NcclProcess& process = *processes[i];
      table.AddRow(
          {process.rank ? std::to_string(*process.rank) : "-", std::to_string(process.pid), dash(process.host),
           dash(process.version), dash(process.network),
           dash(process.bootstrap.name + (process.bootstrap.address.empty() ? "" : " " + process.bootstrap.address)),
           !process.gpu_direct   ? "-"
           : *process.gpu_direct ? "yes"
                                 : "no"});
    }
    table.Write(style_, options_.columns, out_);
    More(processes.size(), shown, "processes");
  }

  void Settings() {
    std::map<std::pair<std::string, std::string>, size_t> settings;
    for (const NcclProcess& process : job_.processes) {
      for (const evidence::NcclSetting& setting : process.settings) {
        ++settings[{setting.name + (setting.by_plugin ? " (by a plugin)" : ""), setting.value}];
      }
    }
    if (settings.empty()) return;
    Section("Settings");
    TextTable table({{.header = "processes"},
                     {.header = "name", .align = Align::kLeft},
                     {.header = "value", .align = Align::kLeft, .flexible = true}});
    for (const auto& [setting, count] : settings) {
      table.AddRow({std::to_string(count), Printable(setting.first), Printable(setting.second)});
    }
    table.Write(style_, options_.columns, out_);
  }

  void Transports(const NcclCommunicator& communicator) {
    const auto transports = TransportsOf(job_, communicator);
    if (transports.empty()) return;
    Section(fmt::format("Transports of the communicator of {} ranks", communicator.rank_count));
    TextTable table({{.header = "connections"}, {.header = "by", .align = Align::kLeft, .flexible = true}});
    for (const auto& [name, count] : transports) table.AddRow({FormatCount(count), Printable(name)});
    table.Write(style_, options_.columns, out_);
  }

  void Rings(const NcclCommunicator& communicator) {
    const std::vector<NcclRing> rings = RingsOf(job_, communicator);
    if (rings.empty()) return;
    Section(fmt::format("Rings of the communicator of {} ranks", communicator.rank_count));
    const size_t shown = Rows(rings.size(), 8);
    for (size_t i = 0; i < shown; ++i) {
      std::string text;
      const size_t stops = Rows(rings[i].order.size(), 64);
      for (size_t k = 0; k < stops; ++k) text += fmt::format("{} {} ", rings[i].order[k], style_.Arrow());
      text += stops < rings[i].order.size() ? std::string(style_.Ellipsis()) : std::to_string(rings[i].order[0]);
      WriteWrapped(text, fmt::format("  channel {}: ", NumberRanges(rings[i].channels)), "    ", options_.columns, out_,
                   Paint::kPlain, style_);
    }
    More(rings.size(), shown, "rings");
  }

  void TreeLine(const NcclTree& tree, int32_t rank, const std::string& head, const std::string& indent,
                std::set<int32_t>& drawn) {
    // A chain is drawn in one line, as trees of NCCL within a node are chains.
    std::string line = head + std::to_string(rank);
    int32_t at = rank;
    const auto below = [&](int32_t of) -> const std::vector<int32_t>& {
      static const std::vector<int32_t> kNone;
      const auto found = tree.down.find(of);
      return found == tree.down.end() ? kNone : found->second;
    };
    drawn.insert(rank);
    while (below(at).size() == 1 && drawn.insert(below(at)[0]).second) {
      at = below(at)[0];
      line += fmt::format(" {} {}", style_.unicode ? "─" : "-", at);
    }
    out_ << Truncate(line, options_.columns, style_.Ellipsis()) << '\n';
    const std::vector<int32_t>& next = below(at);
    constexpr size_t kDepthLimit = 400;
    if (next.size() < 2 || indent.size() > kDepthLimit) return;
    for (size_t i = 0; i < next.size(); ++i) {
      if (drawn.count(next[i]) != 0) continue;
      const bool last = i + 1 == next.size();
      const std::string branch = style_.unicode ? (last ? "└─ " : "├─ ") : (last ? "`- " : "|- ");
      const std::string pass = last ? "   " : style_.unicode ? "│  " : "|  ";
      TreeLine(tree, next[i], indent + branch, indent + pass, drawn);
    }
  }

  void Trees(const NcclCommunicator& communicator) {
    const std::vector<NcclTree> trees = TreesOf(job_, communicator);
    if (trees.empty()) return;
    Section(fmt::format("Trees of the communicator of {} ranks", communicator.rank_count));
    const size_t shown = Rows(trees.size(), 4);
    for (size_t i = 0; i < shown; ++i) {
      out_ << fmt::format("  channel {}:\n", NumberRanges(trees[i].channels));
      std::set<int32_t> drawn;
      for (const int32_t root : trees[i].roots) TreeLine(trees[i], root, "    ", "    ", drawn);
    }
    More(trees.size(), shown, "trees");
  }

  void Graphs() {
    for (const evidence::NcclGraphs& graphs : evidence_.graphs) {
      Section("Graphs of " + Printable(graphs.file));
      TextTable table({{.header = "kind", .align = Align::kLeft},
                       {.header = "channels"},
                       {.header = "within a node"},
                       {.header = "between nodes"},
                       {.header = "first channel", .align = Align::kLeft, .flexible = true}});
      for (const evidence::NcclGraph& graph : graphs.graphs) {
        const char* kNames[] = {"ring", "tree", "collnet", "nvls"};
        std::string channel;
        if (!graph.channels.empty()) {
          for (const std::string& stop : graph.channels[0]) channel += (channel.empty() ? "" : ", ") + stop;
        }
        table.AddRow({graph.id >= 0 && graph.id < 4 ? kNames[graph.id] : std::to_string(graph.id),
                      std::to_string(graph.channel_count), Printable(graph.type_intra + " " + graph.speed_intra),
                      Printable(graph.type_inter + " " + graph.speed_inter), Printable(channel)});
      }
      table.Write(style_, options_.columns, out_);
    }
  }

  void Topologies() {
    for (const evidence::NcclTopology& topology : evidence_.topologies) {
      Section("Topology of " + Printable(topology.file));
      const std::vector<TopologyLine> lines = DrawTopology(topology);
      const size_t shown = Rows(lines.size(), 200);
      for (size_t i = 0; i < shown; ++i) {
        std::string text = "  ";
        for (const bool more : lines[i].more) text += more ? (style_.unicode ? "│  " : "|  ") : "   ";
        text += style_.unicode ? (lines[i].last ? "└─ " : "├─ ") : (lines[i].last ? "`- " : "|- ");
        const std::string facts = TopologyNodeFacts(topology, lines[i].node);
        text += Printable(TopologyNodeName(topology, lines[i].node) + (facts.empty() ? "" : "  " + facts));
        out_ << Truncate(text, options_.columns, style_.Ellipsis()) << '\n';
      }
      More(lines.size(), shown, "lines");
    }
    if (evidence_.topologies.empty()) {
      Section("Topology");
      Paragraph("  none: NCCL_TOPO_DUMP_FILE=topo.xml makes rank 0 write it");
    }
  }

  void Ras() {
    if (evidence_.ras.empty()) return;
    Section("RAS (it counts launches, not completions: its OK proves nothing)");
    TextTable table({{.header = "communicators"},
                     {.header = "missing"},
                     {.header = "dead"},
                     {.header = "errors"},
                     {.header = "warnings"},
                     {.header = "file", .align = Align::kLeft, .flexible = true}});
    for (const evidence::RasReport& report : evidence_.ras) {
      size_t missing = 0, dead = 0;
      for (const evidence::RasCommunicator& communicator : report.communicators) {
        missing += communicator.missing_ranks.size();
        dead += communicator.dead_ranks.size();
      }
      table.AddRow({std::to_string(report.communicators.size()), std::to_string(missing), std::to_string(dead),
                    std::to_string(report.errors.size()), std::to_string(report.warnings.size()),
                    Printable(report.source)});
    }
    table.Write(style_, options_.columns, out_);
  }

  void Unread() {
    if (evidence_.problems.empty()) return;
    Section("Not read, or not whole");
    for (const evidence::EvidenceProblem& problem : evidence_.problems) {
      WriteWrapped(Printable(problem.file + ": " + problem.message), "  ", "    ", options_.columns, out_, Paint::kWarn,
                   style_);
    }
  }

  const NcclEvidence& evidence_;
  const NcclJob& job_;
  const NcclTextOptions& options_;
};

}  // namespace

void WriteNcclText(const NcclEvidence& evidence, const NcclTextOptions& options, std::ostream& out) {
  TextReport(evidence, options, out).Write();
}

}  // namespace lockstep::report
