#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/median.h"
#include "present/report/format.h"
#include "programs/doctor/job.h"

namespace lockstep::doctor {
namespace {

constexpr double kSlowRatio = 0.5;     // Of the median rate; below it a pair stands out.
constexpr double kFarRatio = 3;        // Of the median latency; above it.
constexpr int64_t kFarNs = 500'000;    // And by that much more: what is less matters to nobody.
constexpr double kLossyRatio = 0.01;   // TCP's retransmissions; healthy data centres have less than one in 10^4.
constexpr int64_t kFewSegments = 200;  // Fewer say nothing about a ratio.

const char* const kCutAdvice =
    "look at that node's link and addresses (ip -s link, ip route), firewall and switch port; take it out of the job";

const char* const kSettingAdvice =
    "compare the two nodes' links (ethtool, ibstat) and the switch between them; NCCL_SOCKET_IFNAME and "
    "GLOO_SOCKET_IFNAME choose another interface";

std::string Rate(double bytes_per_s) { return report::FormatRate(bytes_per_s); }

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  return UpperMedian(&values);
}

double RateOf(const control::NetworkPath& path) {
  return static_cast<double>(std::min(path.sent_bytes_per_s.value_or(0), path.received_bytes_per_s.value_or(0)));
}

/// Nodes all of whose pairs failed, of which there is one at least.
std::vector<bool> FindCutNodes(size_t count, const std::vector<PairResult>& pairs) {
  std::vector<int> good(count);
  std::vector<int> bad(count);
  for (const PairResult& result : pairs) {
    for (const size_t node : {result.pair.first, result.pair.second}) {
      ++(result.problem.empty() ? good : bad)[node];
    }
  }
  std::vector<bool> is_cut(count);
  for (size_t i = 0; i < count; ++i) is_cut[i] = good[i] == 0 && bad[i] > 0;
  return is_cut;
}

struct Group {
  double latency_ns = 0;
  double bytes_per_s = 0;
};

void CheckGoodPair(const PairResult& result, const std::string& subject, const Group& usual, bool is_comparable,
                   std::vector<Check>* checks) {
  const control::NetworkPath& path = result.paths.back();
  const double bytes_per_s = RateOf(path);
  const auto latency_ns = static_cast<double>(path.latency_ns.value_or(0));
  std::vector<std::string> faults;
  if (is_comparable && bytes_per_s < kSlowRatio * usual.bytes_per_s) {
    faults.push_back(fmt::format("{}, the others {}", Rate(bytes_per_s), Rate(usual.bytes_per_s)));
  }
  if (is_comparable && latency_ns > kFarRatio * usual.latency_ns && latency_ns > usual.latency_ns + kFarNs) {
    faults.push_back(fmt::format("{} there and back, the others {}",
                                 report::FormatDuration(static_cast<int64_t>(latency_ns)),
                                 report::FormatDuration(static_cast<int64_t>(usual.latency_ns))));
  }
  const auto segments = path.segment_count.value_or(0);
  const double loss = segments < kFewSegments
                          ? 0
                          : static_cast<double>(path.retransmitted_count.value_or(0)) / static_cast<double>(segments);
  if (loss > kLossyRatio) {
    faults.push_back(fmt::format("{:.1f} % of {} segments sent once more", 100 * loss, segments));
  }
  if (faults.empty()) return;
  Check check =
      Line("network", subject, CheckStatus::kWarning, fmt::format("{}", fmt::join(faults, "; ")), kSettingAdvice);
  check.figures = {{"latency", latency_ns, "ns"}, {"rate", bytes_per_s, "bytes/s"}, {"retransmitted", loss, "ratio"}};
  checks->push_back(std::move(check));
}

}  // namespace

void CheckNetwork(const JobFacts& facts, std::vector<Check>* checks) {
  const auto host_of = [&](size_t place) { return facts.view.nodes[facts.tested_nodes[place]].host; };
  for (const jobs::NodeView& node : facts.view.nodes) {
    if (node.status) continue;
    checks->push_back(Line("network", node.host, CheckStatus::kProblem, "not measured: no lockstepd answers there",
                           "start lockstepd there, or reach it with --via; a node that is down looks the same",
                           {node.host}));
  }
  if (facts.pairs.empty()) {
    checks->push_back(Line("network", "", CheckStatus::kSkipped, "not measured: fewer than two nodes answer"));
    return;
  }
  const std::vector<bool> is_cut = FindCutNodes(facts.tested_nodes.size(), facts.pairs);
  const bool are_all_cut = std::ranges::find(is_cut, false) == is_cut.end();
  std::map<size_t, std::vector<std::string>> problems_of;
  std::vector<double> latencies;
  std::vector<double> rates;
  for (const PairResult& result : facts.pairs) {
    const auto [from, to] = result.pair;
    if (result.problem.empty() && !result.paths.empty()) {
      latencies.push_back(static_cast<double>(result.paths.back().latency_ns.value_or(0)));
      rates.push_back(RateOf(result.paths.back()));
      continue;
    }
    if (!are_all_cut && is_cut[from])
      problems_of[from].push_back(fmt::format("to {}: {}", host_of(to), result.problem));
    if (!are_all_cut && is_cut[to])
      problems_of[to].push_back(fmt::format("from {}: {}", host_of(from), result.problem));
    if (!are_all_cut && (is_cut[from] || is_cut[to])) continue;
    checks->push_back(Line("network", fmt::format("{} - {}", host_of(from), host_of(to)), CheckStatus::kProblem,
                           result.problem, kSettingAdvice, {host_of(from), host_of(to)}));
  }
  for (const auto& [node, problems] : problems_of) {
    checks->push_back(Line(
        "network", host_of(node), CheckStatus::kProblem,
        fmt::format("is cut off: none of its {} connections worked ({})", problems.size(), fmt::join(problems, "; ")),
        kCutAdvice, {host_of(node)}));
  }
  if (rates.empty()) return;
  const Group usual{Median(latencies), Median(rates)};
  const bool is_comparable = rates.size() >= 3;
  for (const PairResult& result : facts.pairs) {
    if (!result.problem.empty() || result.paths.empty()) continue;
    CheckGoodPair(result, fmt::format("{} - {}", host_of(result.pair.first), host_of(result.pair.second)), usual,
                  is_comparable, checks);
  }
  Check check =
      Line("network", "", CheckStatus::kOk,
           fmt::format("{} of {} pairs of nodes reach each other: {} there and back, {} with one connection (medians)",
                       rates.size(), facts.pairs.size(), report::FormatDuration(static_cast<int64_t>(usual.latency_ns)),
                       Rate(usual.bytes_per_s)));
  check.figures = {{"pairs", static_cast<double>(facts.pairs.size()), "count"},
                   {"latency", usual.latency_ns, "ns"},
                   {"rate", usual.bytes_per_s, "bytes/s"}};
  checks->push_back(std::move(check));
}

}  // namespace lockstep::doctor
