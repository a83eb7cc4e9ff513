#include "present/page/fabric/fabric_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/page/fabric/curve_drawing.h"
#include "present/page/html.h"
#include "present/page/plain_page.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using model::Fabric;
using model::FabricPair;
using model::FabricPoint;

// The six colours of the report page's curves: at least 3:1 against the paper of their theme.
constexpr const char* kStyle = R"(
:root { --cell: 47 109 181; --c1: #2f6db5; --c2: #c05200; --c3: #2c7a3f; --c4: #8a4a9e; --c5: #a8324f; --c6: #5c6670; }
@media (prefers-color-scheme: dark) { :root { --cell: 94 159 230; --c1: #5e9fe6; --c2: #f08c3e; --c3: #67b978; --c4: #c38fd6;
  --c5: #ec7f98; --c6: #9aa6b3; } }
td.slow { color: var(--bad); font-weight: 600; }
svg .curve { fill: none; stroke: currentColor; stroke-width: 2; }
svg .band { fill: currentColor; fill-opacity: .14; } svg .point { fill: currentColor; stroke: var(--paper); }
svg .earlier.curve { stroke-width: 1.5; stroke-dasharray: 5 4; } svg .earlier.point { fill: var(--paper); stroke: currentColor; }
svg .cell { fill: rgb(var(--cell)); stroke: var(--line); stroke-width: .5; } svg .slow { fill: none; stroke: var(--bad); stroke-width: 2; }
.series-1 { color: var(--c1); } .series-2 { color: var(--c2); } .series-3 { color: var(--c3); } .series-4 { color: var(--c4); }
.series-5 { color: var(--c5); } .series-6 { color: var(--c6); }
)";

constexpr int64_t kMostDrawnRanks = 128;
constexpr int64_t kMostLabelledRanks = 16;
constexpr size_t kMostListedPairs = 200;

double SlowerOf(const FabricPair& pair) { return std::min(pair.bytes_per_s, pair.back_bytes_per_s); }

const FabricPoint* SamePoint(const Fabric& fabric, const FabricPoint& point) {
  const auto at = std::lower_bound(fabric.points.begin(), fabric.points.end(), point, [](const auto& a, const auto& b) {
    return std::tie(a.operation, a.bytes) < std::tie(b.operation, b.bytes);
  });
  const bool is_there = at != fabric.points.end() && at->operation == point.operation && at->bytes == point.bytes;
  return is_there ? &*at : nullptr;
}

/// "+25.0 %", and beyond ten times "25.3 x".
std::string ChangeText(double ratio) {
  return ratio > 0.1 && ratio < 10 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : fmt::format("{:.3g} x", ratio);
}

std::string PointTable(const Fabric& fabric, const Fabric* earlier) {
  std::vector<std::pair<const char*, bool>> columns = {{"Operation", false},   {"Size", true},
                                                       {"Time", true},         {"busbw", true},
                                                       {"Slowest rank", true}, {"Fastest rank", true}};
  if (earlier != nullptr) columns.insert(columns.end(), {{"Earlier busbw", true}, {"Change", true}});
  std::string html = OpenTable("Measured bandwidths", columns);
  for (const FabricPoint& point : fabric.points) {
    html += fmt::format("<tr><td>{}</td>", EscapeHtml(point.operation)) + NumberCell(report::FormatBytes(point.bytes)) +
            NumberCell(point.mean_ns ? report::FormatDuration(static_cast<int64_t>(*point.mean_ns)) : "-") +
            NumberCell(report::FormatRate(point.busbw_bytes_per_s)) +
            NumberCell(report::FormatRate(point.slowest_busbw_bytes_per_s)) +
            NumberCell(report::FormatRate(point.fastest_busbw_bytes_per_s));
    if (earlier != nullptr) {
      const FabricPoint* const same = SamePoint(*earlier, point);
      html += NumberCell(same == nullptr ? "-" : report::FormatRate(same->busbw_bytes_per_s)) +
              NumberCell(same == nullptr ? "-" : ChangeText(point.busbw_bytes_per_s / same->busbw_bytes_per_s));
    }
    html += "</tr>\n";
  }
  return html + kCloseTable;
}

/// A row sends, a column receives; the fuller the faster.
std::string MatrixSvg(const Fabric& fabric) {
  const int64_t count = fabric.rank_count;
  const bool labelled = count <= kMostLabelledRanks;
  const int64_t cell = labelled ? 62 : std::max<int64_t>(6, 900 / count);
  const int64_t height = labelled ? 28 : cell;
  constexpr int64_t kMargin = 44;
  double most = 0;
  for (const FabricPair& pair : fabric.pairs) most = std::max({most, pair.bytes_per_s, pair.back_bytes_per_s});
  std::string svg = fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Every two ranks alone, drawn\"><svg "
      "role=\"img\" "
      "width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\"><title>Bytes a second from each rank (row) to each other "
      "(column)</title>\n",
      kMargin + count * cell + 4, kMargin + count * height + 4);
  const int64_t stride = labelled ? 1 : (24 + cell - 1) / cell;
  for (int64_t rank = 0; rank < count; rank += stride) {
    svg += fmt::format(
        "<text class=\"axis\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text><text class=\"axis\" "
        "text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
        kMargin + rank * cell + cell / 2, kMargin - 8, rank, kMargin - 8, kMargin + rank * height + height / 2 + 4,
        rank);
  }
  std::string frames;  // Above their neighbours.
  const auto add = [&](int64_t from, int64_t to, double rate, const FabricPair& pair) {
    const int64_t x = kMargin + to * cell, y = kMargin + from * height;
    svg += fmt::format(
        "<rect class=\"cell\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill-opacity=\"{:.2f}\"><title>rank {} to "
        "rank {}: {}, {} there{}{}</title></rect>",
        x, y, cell, height, 0.05 + 0.4 * rate / most, from, to, report::FormatRate(rate),
        report::FormatDuration(static_cast<int64_t>(pair.latency_ns)), pair.same_host ? ", one host" : "",
        pair.is_slow ? ", slow" : "");
    if (labelled) {
      svg += fmt::format("<text text-anchor=\"middle\" x=\"{}\" y=\"{}\">{:.2f}</text>", x + cell / 2,
                         y + height / 2 + 4, rate / 1e9);
    }
    svg += '\n';
    if (pair.is_slow) {
      frames += fmt::format("<rect class=\"slow\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", x + 1, y + 1,
                            cell - 2, height - 2);
    }
  };
  for (const FabricPair& pair : fabric.pairs) {
    add(pair.rank_a, pair.rank_b, pair.bytes_per_s, pair);
    add(pair.rank_b, pair.rank_a, pair.back_bytes_per_s, pair);
  }
  return svg + frames + "</svg></div>\n";
}

std::string Pairs(const Fabric& fabric) {
  if (fabric.pairs.empty()) {
    return "<h2>Links</h2>\n<p>Not measured; <code>lockstep bench collectives --pairs</code> does.</p>\n";
  }
  std::vector<const FabricPair*> pairs;
  for (const FabricPair& pair : fabric.pairs) pairs.push_back(&pair);
  std::stable_sort(pairs.begin(), pairs.end(), [](const FabricPair* a, const FabricPair* b) {
    return a->is_slow != b->is_slow ? a->is_slow : SlowerOf(*a) < SlowerOf(*b);
  });
  const auto slow = std::count_if(pairs.begin(), pairs.end(), [](const FabricPair* pair) { return pair->is_slow; });
  std::string html = fmt::format(
      "<h2>Every two ranks alone</h2>\n<p>{} A row sends, a column receives{}; the fuller the faster, framed: less "
      "than "
      "half of the median of pairs like it.</p>\n",
      slow == 0 ? "No link is slow."
                : fmt::format("{} of {} links {} slow.", slow, pairs.size(), slow == 1 ? "is" : "are"),
      fabric.rank_count <= kMostLabelledRanks ? ", in GB/s" : "");
  html += fabric.rank_count <= kMostDrawnRanks
              ? MatrixSvg(fabric)
              : fmt::format("<p class=\"faint\">{} ranks are too many to be drawn.</p>\n", fabric.rank_count);
  if (pairs.size() > kMostListedPairs) {
    html += fmt::format("<p class=\"faint\">The {} slowest of {} pairs.</p>\n", kMostListedPairs, pairs.size());
    pairs.resize(kMostListedPairs);
  }
  html +=
      OpenTable("Pairs of ranks, slow ones first",
                {{"Ranks", false}, {"Hosts", false}, {"Latency", true}, {"There", true}, {"Back", true}, {"", false}});
  const auto host = [&](int64_t rank) { return EscapeHtml(fabric.hosts[static_cast<size_t>(rank)]); };
  for (const FabricPair* pair : pairs) {
    html += fmt::format(
        "<tr><td>{} and {}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td><td class=\"slow\">{}</td></tr>\n",
        pair->rank_a, pair->rank_b,
        pair->same_host ? host(pair->rank_a) : host(pair->rank_a) + " and " + host(pair->rank_b),
        report::FormatDuration(static_cast<int64_t>(pair->latency_ns)), report::FormatRate(pair->bytes_per_s),
        report::FormatRate(pair->back_bytes_per_s), pair->is_slow ? "slow" : "");
  }
  return html + kCloseTable;
}

std::string Setup(const Fabric& fabric) {
  const std::set<std::string> hosts(fabric.hosts.begin(), fabric.hosts.end());
  return fmt::format("{} ranks on {} {}, {}", fabric.rank_count, hosts.size(), hosts.size() == 1 ? "host" : "hosts",
                     fabric.backend.empty() ? "library not named" : EscapeHtml(fabric.backend));
}

std::string Facts(const Fabric& fabric) {
  const auto best = std::max_element(fabric.points.begin(), fabric.points.end(), [](const auto& a, const auto& b) {
    return a.busbw_bytes_per_s < b.busbw_bytes_per_s;
  });
  return fmt::format("<p>{}. At best {} of bus bandwidth: {} of {}.</p>\n<p class=\"faint\">{}</p>\n", Setup(fabric),
                     report::FormatRate(best->busbw_bytes_per_s), EscapeHtml(best->operation),
                     report::FormatBytes(best->bytes), EscapeHtml(fabric.source));
}

/// Dashed: whose curves, and which of its operations are not here.
std::string EarlierFacts(const std::vector<FabricCurve>& curves, const Fabric& earlier) {
  std::set<std::string> others;
  for (const FabricPoint& point : earlier.points) others.insert(EscapeHtml(point.operation));
  for (const FabricCurve& curve : curves) others.erase(EscapeHtml(curve.operation));
  return fmt::format("<p>Dashed, the earlier run: {}, {}.{}</p>\n", Setup(earlier), EscapeHtml(earlier.source),
                     others.empty() ? "" : fmt::format(" Measured only then: {}.", fmt::join(others, ", ")));
}

}  // namespace

std::string FabricPage(const Fabric& fabric, const Fabric* earlier) {
  std::string html = OpenPlainPage("What the fabric can do", "What the fabric can do", kStyle);
  if (!fabric.points.empty()) html += Facts(fabric);
  const std::vector<FabricCurve> curves = CurvesOf(fabric, earlier);
  if (earlier != nullptr) html += EarlierFacts(curves, *earlier);
  html +=
      "<h2>Bus bandwidth by message size</h2>\n<p class=\"faint\">Around each curve: from its slowest rank to its "
      "fastest.</p>\n";
  html += CurvesSvg(curves, CurveQuantity::kBusBandwidth, "Bus bandwidth by message size");
  if (const std::string times = CurvesSvg(curves, CurveQuantity::kTime, "Time of a call by message size");
      !times.empty()) {
    html += "<h2>Time of a call by message size</h2>\n" + times;
  }
  html += Pairs(fabric) + "<h2>The curves as a table</h2>\n" + PointTable(fabric, earlier);
  return html + kClosePlainPage;
}

}  // namespace lockstep::page
