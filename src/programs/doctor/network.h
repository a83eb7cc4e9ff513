#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "node/control/api/network_test.h"
#include "node/jobs/nodes.h"

namespace lockstep::doctor {

/// Two nodes, by their places in a list; the first one connects to the second one.
using NodePair = std::pair<size_t, size_t>;

/// What came of the network between two nodes.
struct PairResult {
  NodePair pair;
  std::string problem;  ///< "" = measured.
  std::vector<control::NetworkPath> paths;
};

/// Pairs of `count` nodes that are worth testing: all of them up to 16 nodes; above, each with those 1, 2, 4, ...
/// places further. In rounds, in each of which a node is in one pair at most.
std::vector<std::vector<NodePair>> PairsOf(size_t count);

/// Interfaces that ranks were told to use, by "NCCL_SOCKET_IFNAME=eth0,ib" and GLOO_SOCKET_IFNAME in their settings:
/// beginnings of names; empty: any.
std::vector<std::string> InterfacesOf(const std::vector<std::string>& settings);

/// Tests the pairs of these nodes by their daemons, round after round, all within `deadline_ns`. One result a pair.
std::vector<PairResult> TestPairs(const std::vector<control::Endpoint>& nodes,
                                  const std::vector<std::vector<NodePair>>& rounds,
                                  const std::vector<std::string>& interfaces, int64_t deadline_ns);

}  // namespace lockstep::doctor
