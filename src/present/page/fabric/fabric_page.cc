#include "present/page/fabric/fabric_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "present/page/answer_page.h"
#include "present/report/format.h"
#include "present/report/json_stream.h"

namespace lockstep::page {
namespace {

using model::Fabric;
using model::FabricPair;
using model::FabricPoint;
using report::JsonRow;

/// Of more ranks the pairs are too many for a page: the slow ones and the slowest stay.
constexpr int64_t kMostMatrixRanks = 512;
constexpr size_t kMostListedPairs = 1000;

std::vector<const FabricPair*> PairsOf(const Fabric& fabric) {
  std::vector<const FabricPair*> pairs;
  for (const FabricPair& pair : fabric.pairs) pairs.push_back(&pair);
  if (fabric.rank_count <= kMostMatrixRanks) return pairs;
  const auto slower = [](const FabricPair* pair) { return std::min(pair->bytes_per_s, pair->back_bytes_per_s); };
  std::stable_sort(pairs.begin(), pairs.end(), [&](const FabricPair* a, const FabricPair* b) {
    return a->is_slow != b->is_slow ? a->is_slow : slower(a) < slower(b);
  });
  if (pairs.size() > kMostListedPairs) pairs.resize(kMostListedPairs);
  return pairs;
}

void AddFabric(const Fabric& fabric, JsonRow* json) {
  json->StartObject().Key("source").Text(fabric.source).Key("backend").TextOrNull(fabric.backend);
  json->Key("rank_count").Int(fabric.rank_count).Key("hosts").List(fabric.hosts);
  json->Key("points").Each(fabric.points, [&](const FabricPoint& point) {
    json->Key("operation").Text(point.operation).Key("bytes").Int(point.bytes);
    json->Key("busbw_bytes_per_s").Double(point.busbw_bytes_per_s);
    json->Key("slowest_busbw_bytes_per_s").Optional(point.slowest_busbw_bytes_per_s);
    json->Key("fastest_busbw_bytes_per_s").Optional(point.fastest_busbw_bytes_per_s);
    json->Key("mean_ns").Optional(point.mean_ns);
  });
  json->Key("pair_count").Uint(fabric.pairs.size());
  json->Key("pairs").Each(PairsOf(fabric), [&](const FabricPair* pair) {
    json->Key("rank_a").Int(pair->rank_a).Key("rank_b").Int(pair->rank_b).Key("latency_ns").Double(pair->latency_ns);
    json->Key("bytes_per_s").Double(pair->bytes_per_s).Key("back_bytes_per_s").Double(pair->back_bytes_per_s);
    json->Key("same_host").Bool(pair->same_host).Key("is_slow").Bool(pair->is_slow);
  });
  json->EndObject();
}

std::string Setup(const Fabric& fabric) {
  const std::set<std::string> hosts(fabric.hosts.begin(), fabric.hosts.end());
  return fmt::format("{} ranks on {} {}, {}", fabric.rank_count, hosts.size(), hosts.size() == 1 ? "host" : "hosts",
                     fabric.backend.empty() ? "library not named" : fabric.backend);
}

std::string Sentence(const Fabric& fabric) {
  const auto best = std::max_element(fabric.points.begin(), fabric.points.end(), [](const auto& a, const auto& b) {
    return a.busbw_bytes_per_s < b.busbw_bytes_per_s;
  });
  if (best == fabric.points.end()) return Setup(fabric) + ".";
  return fmt::format("{}. At best {} of bus bandwidth: {} of {}.", Setup(fabric),
                     report::FormatRate(best->busbw_bytes_per_s), best->operation, report::FormatBytes(best->bytes));
}

/// Without a script: every point, and the slow links.
std::string Text(const Fabric& fabric, const Fabric* earlier) {
  std::string text = fmt::format("{}\n\n", fabric.source);
  for (const FabricPoint& point : fabric.points) {
    text += fmt::format("{:16} {:>10} {:>12}\n", point.operation, report::FormatBytes(point.bytes),
                        report::FormatRate(point.busbw_bytes_per_s));
  }
  for (const FabricPair& pair : fabric.pairs) {
    if (!pair.is_slow) continue;
    text += fmt::format("slow link: ranks {} and {}, {} there, {} back\n", pair.rank_a, pair.rank_b,
                        report::FormatRate(pair.bytes_per_s), report::FormatRate(pair.back_bytes_per_s));
  }
  if (earlier != nullptr) text += fmt::format("\nThe earlier run: {}. {}\n", Setup(*earlier), Text(*earlier, nullptr));
  return text;
}

}  // namespace

std::string FabricPage(const Fabric& fabric, const Fabric* earlier) {
  JsonRow json;
  json.Key("fabric");
  AddFabric(fabric, &json);
  json.Key("earlier");
  if (earlier != nullptr) {
    AddFabric(*earlier, &json);
  } else {
    json.Null();
  }
  return ComposeAnswerPage({.kind = PageKind::kFabric,
                            .title = "What the fabric can do - lockstep",
                            .lead_html = LeadHtml(Sentence(fabric)),
                            .text = Text(fabric, earlier),
                            .data_json = std::string(json.Finish())});
}

}  // namespace lockstep::page
