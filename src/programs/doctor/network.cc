#include "programs/doctor/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string_view>
#include <thread>

#include "node/control/client/fan_out.h"
#include "node/control/client/node_client.h"

namespace lockstep::doctor {
namespace {

using control::NetworkTest;
using control::NetworkTestSpec;
using control::NodeClient;

constexpr size_t kAllPairs = 16;
constexpr int64_t kTestNs = 5'000'000'000;
constexpr int64_t kTestAnswerNs = 5'000'000'000;
constexpr auto kPoll = std::chrono::milliseconds(20);

/// Made when it is first needed, and kept: through srun or ssh each is a process.
Result<NodeClient*> ClientOf(const control::Endpoint& endpoint, std::unique_ptr<NodeClient>* client) {
  if (*client == nullptr) {
    ASSIGN_OR_RETURN(*client, NodeClient::Create(endpoint));
  }
  return client->get();
}

Result<std::vector<control::NetworkPath>> TestPair(NodeClient& from, NodeClient& to,
                                                   const std::vector<std::string>& interfaces, int64_t left_ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min(left_ns, 2 * kTestNs));
  NetworkTestSpec spec;
  spec.interfaces = interfaces;
  spec.limit_ns = kTestNs;
  ASSIGN_OR_RETURN(NetworkTest listening, to.StartNetworkTest(spec, kTestAnswerNs));
  if (listening.addresses.empty()) {
    return Error{ErrorCode::kNotFound, interfaces.empty()
                                           ? fmt::format("{} has no address but loopback's", to.endpoint().host)
                                           : fmt::format("{} has no address on the interfaces that ranks use ({})",
                                                         to.endpoint().host, fmt::join(interfaces, ", "))};
  }
  spec.listens = false;
  spec.addresses = std::move(listening.addresses);
  spec.port = listening.port;
  spec.secret = listening.secret;
  ASSIGN_OR_RETURN(NetworkTest measuring, from.StartNetworkTest(spec, kTestAnswerNs));
  while (!measuring.is_done && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPoll);
    ASSIGN_OR_RETURN(measuring, from.GetNetworkTest(measuring.id, kTestAnswerNs));
  }
  if (!measuring.is_done) return Error{ErrorCode::kCancelled, "the test did not end in time"};
  return std::move(measuring.paths);
}

std::string ProblemOf(const std::vector<control::NetworkPath>& paths) {
  if (paths.empty()) return "no address was tried";
  if (paths.back().problem.empty()) return "";
  std::vector<std::string> texts;
  for (const control::NetworkPath& path : paths) {
    texts.push_back(fmt::format("{} ({}): {}", path.to.address, path.to.interface, path.problem));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::vector<std::vector<NodePair>> PairsOf(size_t count) {
  std::set<NodePair> wanted;
  for (size_t i = 0; i < count; ++i) {
    for (size_t distance = 1; distance < count; distance = count <= kAllPairs ? distance + 1 : distance * 2) {
      const size_t other = (i + distance) % count;
      wanted.emplace(std::min(i, other), std::max(i, other));
    }
  }
  std::vector<std::vector<NodePair>> rounds;
  while (!wanted.empty()) {
    std::vector<bool> is_busy(count);
    std::vector<NodePair>& round = rounds.emplace_back();
    for (auto each = wanted.begin(); each != wanted.end();) {
      if (is_busy[each->first] || is_busy[each->second]) {
        ++each;
        continue;
      }
      is_busy[each->first] = is_busy[each->second] = true;
      round.push_back(*each);
      each = wanted.erase(each);
    }
  }
  return rounds;
}

std::vector<std::string> InterfacesOf(const std::vector<std::string>& settings) {
  std::set<std::string> names;
  for (const std::string_view setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string_view::npos || !setting.substr(0, equals).ends_with("_SOCKET_IFNAME")) continue;
    std::string_view list = setting.substr(equals + 1);
    if (list.starts_with('^')) return {};  // All but these: told by no beginning of a name.
    if (list.starts_with('=')) list.remove_prefix(1);
    while (!list.empty()) {
      const std::string_view name = list.substr(0, list.find(','));
      list.remove_prefix(std::min(name.size() + 1, list.size()));
      if (!name.empty() && name != "lo" && name.size() < 64) names.emplace(name);
    }
  }
  return {names.begin(), names.end()};
}

std::vector<PairResult> TestPairs(const std::vector<control::Endpoint>& nodes,
                                  const std::vector<std::vector<NodePair>>& rounds,
                                  const std::vector<std::string>& interfaces, int64_t deadline_ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(deadline_ns);
  std::vector<std::unique_ptr<NodeClient>> clients(nodes.size());
  std::vector<PairResult> results;
  for (const std::vector<NodePair>& round : rounds) {
    const int64_t left_ns = std::max<int64_t>((end - std::chrono::steady_clock::now()).count(), 1);
    const auto answers = control::FanOut<std::vector<control::NetworkPath>>(
        round.size(), control::kDefaultParallel, left_ns,
        [&](size_t i, int64_t pair_left_ns) -> Result<std::vector<control::NetworkPath>> {
          // Each node is in one pair of a round, so its client is one thread's.
          const auto [from, to] = round[i];
          ASSIGN_OR_RETURN(NodeClient * connecting, ClientOf(nodes[from], &clients[from]));
          ASSIGN_OR_RETURN(NodeClient * listening, ClientOf(nodes[to], &clients[to]));
          return TestPair(*connecting, *listening, interfaces, pair_left_ns);
        });
    for (size_t i = 0; i < round.size(); ++i) {
      PairResult& result = results.emplace_back();
      result.pair = round[i];
      result.problem = answers[i] ? ProblemOf(*answers[i]) : answers[i].error().message;
      if (answers[i]) result.paths = *answers[i];
    }
  }
  return results;
}

}  // namespace lockstep::doctor
