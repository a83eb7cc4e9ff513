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
.rings { display: flex; flex-wrap: wrap; gap: 1.5rem; } figure { margin: 0; } figcaption { color: var(--faint); }
svg .edge { stroke: var(--accent); fill: none; }
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

/// Ranks on a circle in their numbers' order, so that rings of other orders look different.
std::string RingSvg(const NcclRing& ring, const std::map<int32_t, std::string>& hosts) {
  constexpr double kSize = 320, kMiddle = kSize / 2, kRadius = 122;
  std::vector<int32_t> ranks = ring.order;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  const auto position = [&](int32_t rank) {
    const auto at = static_cast<double>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
    const double angle = 2 * std::numbers::pi * at / static_cast<double>(ranks.size()) - std::numbers::pi / 2;
    return std::pair(kMiddle + kRadius * std::cos(angle), kMiddle + kRadius * std::sin(angle));
  };
  const auto host = [&](int32_t rank) {
    const auto found = hosts.find(rank);
    return found == hosts.end() ? std::string() : found->second;
  };
  std::string order;
  for (size_t i = 0; i < ring.order.size() && i < 256; ++i)
    order += (i == 0 ? "" : ", ") + std::to_string(ring.order[i]);
  std::string svg = fmt::format(
      "<figure><svg role=\"img\" width=\"{0}\" height=\"{0}\" viewBox=\"0 0 {0} {0}\"><title>Ring of channel {1}: "
      "{2}</title>",
      kSize, report::NumberRanges(ring.channels), order);
  for (size_t i = 0; i < ring.order.size(); ++i) {
    const int32_t from = ring.order[i], to = ring.order[(i + 1) % ring.order.size()];
    const auto [x1, y1] = position(from);
    const auto [x2, y2] = position(to);
    svg += fmt::format("<path class=\"edge{}\" marker-end=\"url(#arrow)\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>",
                       host(from) != host(to) ? " between" : "", x1, y1, x1 + (x2 - x1) * 0.9, y1 + (y2 - y1) * 0.9);
  }
  const bool labels = ranks.size() <= 64;
  for (const int32_t rank : ranks) {
    const auto [x, y] = position(rank);
    svg += fmt::format("<circle class=\"node\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", x, y, labels ? 11 : 3);
    if (labels) svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", x, y + 4, rank);
  }
  svg += fmt::format("</svg><figcaption>channel {}</figcaption></figure>\n", report::NumberRanges(ring.channels));
  return svg;
}

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
  std::string html =
      "<table><thead><tr><th scope=\"col\">Severity</th><th scope=\"col\">Finding</th>"
      "<th scope=\"col\">Where</th></tr></thead><tbody>\n";
  for (const evidence::NcclLogFinding& finding : evidence.findings) {
    html +=
        fmt::format("<tr><td class=\"{}\">{}</td><td>{}{}<br><span class=\"faint\">{}</span></td><td>{}{}</td></tr>\n",
                    EscapeHtml(finding.severity), EscapeHtml(finding.severity), EscapeHtml(finding.text),
                    finding.first ? " It was the first error." : "", EscapeHtml(finding.remedy),
                    EscapeHtml(finding.file), finding.line > 0 ? fmt::format(":{}", finding.line) : "");
  }
  return html + "</tbody></table>\n";
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
          "<h2>Rings of the communicator of {} ranks</h2>\n<p class=\"faint\">Dashed: between hosts.</p>\n"
          "<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" "
          "refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path "
          "d=\"M0 0L8 4L0 8z\" fill=\"currentColor\"/></marker></defs></svg>\n<div class=\"rings\">\n",
          communicator.rank_count);
      const std::map<int32_t, std::string> hosts = HostsOf(evidence.job, communicator);
      constexpr size_t kRingLimit = 12, kRankLimit = 1024;
      for (size_t i = 0; i < rings.size() && i < kRingLimit; ++i) {
        if (rings[i].order.size() <= kRankLimit) html += RingSvg(rings[i], hosts);
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
