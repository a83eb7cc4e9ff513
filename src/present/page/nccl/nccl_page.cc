#include "present/page/nccl/nccl_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <sstream>

#include "present/page/html.h"
#include "present/page/plain_page.h"
#include "present/report/nccl/nccl_report.h"

namespace lockstep::page {
namespace {

using evidence::NcclCommunicator;
using evidence::NcclEvidence;
using evidence::NcclJob;
using report::NcclRing;

constexpr const char* kStyle = R"(
:root { --warn: #8a5300; --accent: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --warn: #ffc069; --accent: #8ab4f8; } }
.error { color: var(--bad); font-weight: 600; } .warning { color: var(--warn); font-weight: 600; }
.rings { display: flex; flex-wrap: wrap; gap: 1.5rem; } figure { margin: 0; } figure svg { max-width: 100%; height: auto; } figcaption { color: var(--faint); }
svg .edge { stroke: var(--accent); fill: none; color: var(--accent); } svg .host { stroke: var(--faint); stroke-width: 4; fill: none; }
svg .between { stroke: var(--bad); stroke-dasharray: 5 3; } svg .node { fill: var(--fill); stroke: var(--ink); }
svg .branch { stroke: var(--faint); fill: none; } svg .facts { fill: var(--faint); }
)";

/// Hosts of a communicator's ranks.
std::map<int32_t, std::string> HostsOf(const NcclJob& job, const NcclCommunicator& communicator) {
  std::map<int32_t, std::string> hosts;
  for (const uint32_t idx : communicator.members) {
    hosts[job.members[idx].rank] = job.processes[job.members[idx].process].host;
  }
  return hosts;
}

/// A ring in its own order, so that no two of its edges cross, with the hosts that it runs through marked outside.
class RingDrawing {
 public:
  RingDrawing(const NcclRing& ring, const std::map<int32_t, std::string>& hosts) : ring_(ring), hosts_(hosts) {}

  std::string Svg() const {
    std::string svg = fmt::format(
        "<figure><svg role=\"img\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\"><title>Ring of channel {2}: "
        "{3}</title>\n",
        kWidth, kHeight, report::NumberRanges(ring_.channels), Order());
    svg += Hosts();
    for (size_t i = 0; count() > 1 && i < count(); ++i) svg += Edge(i);
    for (size_t i = 0; i < count(); ++i) svg += Node(i);
    return svg +
           fmt::format("</svg><figcaption>channel {}</figcaption></figure>\n", report::NumberRanges(ring_.channels));
  }

 private:
  static constexpr double kWidth = 640, kHeight = 330, kRadius = 118, kHostRadius = 140, kNode = 11, kSmallNode = 3;
  static constexpr size_t kMostLabels = 40, kMostHostNames = 16, kMostHostName = 26, kMostNamed = 256;

  size_t count() const { return ring_.order.size(); }
  bool has_labels() const { return count() <= kMostLabels; }
  double node_radius() const { return has_labels() ? kNode : kSmallNode; }
  double AngleOf(double place) const {
    return 2 * std::numbers::pi * place / static_cast<double>(count()) - std::numbers::pi / 2;
  }
  static std::pair<double, double> At(double angle, double radius) {
    return {kWidth / 2 + radius * std::cos(angle), kHeight / 2 + radius * std::sin(angle)};
  }
  std::string HostOf(size_t place) const {
    const auto found = hosts_.find(ring_.order[place % count()]);
    return found == hosts_.end() ? std::string() : found->second;
  }
  std::string Order() const {
    std::string order;
    for (size_t i = 0; i < count() && i < kMostNamed; ++i)
      order += (i == 0 ? "" : ", ") + std::to_string(ring_.order[i]);
    return order;
  }
  static std::string Arc(double from, double to, double radius) {
    const auto [x1, y1] = At(from, radius);
    const auto [x2, y2] = At(to, radius);
    return fmt::format("M{:.1f} {:.1f}A{} {} 0 {} 1 {:.1f} {:.1f}", x1, y1, radius, radius,
                       to - from > std::numbers::pi ? 1 : 0, x2, y2);
  }
  /// Along the circle, from the border of one rank to that of the next.
  std::string Edge(size_t place) const {
    const double room = (node_radius() + 1) / kRadius;
    const auto from = static_cast<double>(place);
    return fmt::format("<path class=\"edge{}\" marker-end=\"url(#arrow)\" d=\"{}\"/>\n",
                       HostOf(place) != HostOf(place + 1) ? " between" : "",
                       Arc(AngleOf(from) + room, AngleOf(from + 1) - room, kRadius));
  }
  std::string Node(size_t place) const {
    const auto [x, y] = At(AngleOf(static_cast<double>(place)), kRadius);
    std::string svg = fmt::format("<circle class=\"node\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", x, y, node_radius());
    if (has_labels()) {
      svg +=
          fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", x, y + 4, ring_.order[place]);
    }
    return svg + "\n";
  }
  /// An arc and a name for each stretch of the ring that stays on one host.
  std::string Hosts() const {
    std::vector<size_t> begins;
    for (size_t i = 0; i < count(); ++i) {
      if (HostOf(i) != HostOf(i + count() - 1)) begins.push_back(i);
    }
    if (begins.empty()) return HostOf(0).empty() ? "" : HostName(AngleOf(0), HostOf(0));
    std::string svg;
    for (size_t i = 0; i < begins.size(); ++i) {
      const size_t end = i + 1 < begins.size() ? begins[i + 1] : begins.front() + count();
      const double from = AngleOf(static_cast<double>(begins[i]) - 0.35);
      const double to = AngleOf(static_cast<double>(end) - 0.65);
      svg += fmt::format("<path class=\"host\" d=\"{}\"/>\n", Arc(from, to, kHostRadius));
      if (begins.size() <= kMostHostNames) svg += HostName((from + to) / 2, HostOf(begins[i]));
    }
    return svg;
  }
  static std::string HostName(double angle, const std::string& host) {
    const auto [x, y] = At(angle, kHostRadius + 8);
    const double side = std::cos(angle);
    const char* anchor = side > 0.3 ? "start" : side < -0.3 ? "end" : "middle";
    // What fits beside the ring; hosts differ at their ends.
    const std::string shown = host.size() > kMostHostName ? "\u2026" + host.substr(host.size() - kMostHostName) : host;
    return fmt::format(
        "<text class=\"facts\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}<title>{}</title></text>\n", x,
        y + 4 + 8 * std::sin(angle), anchor, EscapeHtml(shown), EscapeHtml(host));
  }

  const NcclRing& ring_;
  const std::map<int32_t, std::string>& hosts_;
};

std::string TopologySvg(const evidence::NcclTopology& topology) {
  constexpr int kRow = 24, kIndent = 28;
  constexpr size_t kLineLimit = 2000;
  std::vector<report::TopologyLine> lines = report::DrawTopology(topology);
  lines.resize(std::min(lines.size(), kLineLimit));
  std::string svg = fmt::format(
      "<div class=\"wide\"><svg role=\"img\" width=\"900\" height=\"{}\"><title>Buses and devices of {}</title>",
      kRow * (lines.size() + 1), EscapeHtml(topology.file));
  // Where the last element of each level stands, for the line down from its parent.
  std::vector<size_t> parent_row;
  for (size_t row = 0; row < lines.size(); ++row) {
    const report::TopologyLine& line = lines[row];
    const size_t level = line.more.size();
    parent_row.resize(level + 1);
    parent_row[level] = row;
    const int x = static_cast<int>(level) * kIndent + 10;
    const int y = static_cast<int>(row) * kRow + 20;
    if (level > 0) {
      const int top = static_cast<int>(parent_row[level - 1]) * kRow + 26;
      svg += fmt::format("<path class=\"branch\" d=\"M{} {}V{}H{}\"/>", x - kIndent + 6, top, y - 4, x - 3);
    }
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{} <tspan class=\"facts\" dx=\"8\">{}</tspan></text>", x, y,
                       EscapeHtml(evidence::TopologyNodeName(topology, line.node)),
                       EscapeHtml(report::TopologyNodeFacts(topology, line.node)));
  }
  return svg + "</svg></div>\n";
}

std::string FindingsTable(const NcclEvidence& evidence) {
  if (evidence.findings.empty()) return "<p>None.</p>\n";
  std::string html = OpenTable("Findings", {{"Severity", false}, {"Finding", false}, {"Where", false}});
  for (const evidence::NcclLogFinding& finding : evidence.findings) {
    html +=
        fmt::format("<tr><td class=\"{}\">{}</td><td>{}{}<br><span class=\"faint\">{}</span></td><td>{}{}</td></tr>\n",
                    EscapeHtml(finding.severity), EscapeHtml(finding.severity), EscapeHtml(finding.text),
                    finding.first ? " It was the first error." : "", EscapeHtml(finding.remedy),
                    EscapeHtml(finding.file), finding.line > 0 ? fmt::format(":{}", finding.line) : "");
  }
  return html + kCloseTable;
}

}  // namespace

std::string NcclPage(const NcclEvidence& evidence) {
  std::string html = OpenPlainPage("NCCL logs", "What NCCL's logs tell", kStyle);
  html += "<h2>Findings</h2>\n";
  html += FindingsTable(evidence);
  if (!evidence.job.communicators.empty()) {
    const NcclCommunicator& communicator = evidence.job.communicators.front();
    const std::vector<NcclRing> rings = report::RingsOf(evidence.job, communicator);
    if (!rings.empty()) {
      html += fmt::format(
          "<h2>Rings of the communicator of {} ranks</h2>\n<p class=\"faint\">Each in its own order; the outer arcs "
          "are hosts. Dashed: from host to host.</p>\n"
          "<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" "
          "refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path "
          "d=\"M0 0L8 4L0 8z\" fill=\"context-stroke\"/></marker></defs></svg>\n<div class=\"rings\">\n",
          communicator.rank_count);
      const std::map<int32_t, std::string> hosts = HostsOf(evidence.job, communicator);
      constexpr size_t kRingLimit = 12, kRankLimit = 1024;
      for (size_t i = 0; i < rings.size() && i < kRingLimit; ++i) {
        if (rings[i].order.size() <= kRankLimit) html += RingDrawing(rings[i], hosts).Svg();
      }
      html += "</div>\n";
    }
  }
  constexpr size_t kTopologyLimit = 16;
  for (size_t i = 0; i < evidence.topologies.size() && i < kTopologyLimit; ++i) {
    html += fmt::format("<h2>Topology of {}</h2>\n", EscapeHtml(evidence.topologies[i].file));
    html += TopologySvg(evidence.topologies[i]);
  }
  std::ostringstream text;
  report::WriteNcclText(evidence, {.colour = false, .columns = 120, .unicode = true, .all = true, .topology = true},
                        text);
  html += "<h2>As text</h2>\n<details><summary>The whole report</summary><pre>";
  std::istringstream lines(text.str());
  for (std::string line; std::getline(lines, line);) html += EscapeHtml(line) + "\n";
  return html + "</pre></details>\n" + kClosePlainPage;
}

}  // namespace lockstep::page
