#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::control {

/// An address of a node, and the interface that has it.
struct NetworkAddress {
  std::string interface;
  std::string address;  ///< "10.0.0.2", "fd00::2"; never a name.
};

/// POST /api/v1/network-tests: one end of a test of the network between two nodes. First one listens, then the other
/// connects with the secret that the first one made.
struct NetworkTestSpec {
  bool listens = true;
  std::vector<std::string> interfaces;    ///< Listening: tell only addresses of those whose name begins so; empty: all.
  std::vector<NetworkAddress> addresses;  ///< Connecting: tried in this order, until one is reached.
  uint16_t port = 0;
  std::string secret;
  uint64_t bytes = 16U << 20;        ///< Sent each way at most; up to 256 MiB.
  int64_t limit_ns = 5'000'000'000;  ///< For all of it; 100 ms to 30 s.
};

/// What came of one address.
struct NetworkPath {
  NetworkAddress to;
  std::string problem = {};                ///< Why it was not reached; "" = measured.
  std::optional<int64_t> latency_ns = {};  ///< There and back, median of 20.
  std::optional<int64_t> longest_latency_ns = {};
  std::optional<int64_t> sent_bytes_per_s = {};  ///< From the end that connects, by one TCP connection.
  std::optional<int64_t> received_bytes_per_s = {};
  std::optional<int64_t> segment_count = {};        ///< TCP segments that both ends sent,
  std::optional<int64_t> retransmitted_count = {};  ///< and how many of them once more.
};

/// One end of a test as its daemon knows it.
struct NetworkTest {
  std::string id = {};
  std::string host = {};
  bool listens = true;
  bool is_done = false;
  std::vector<NetworkAddress> addresses = {};  ///< Listening: of this node, without loopback.
  uint16_t port = 0;
  std::string secret = {};  ///< Listening: only in the answer to the POST.
  std::vector<NetworkPath> paths =
      {};                    ///< Connecting: those that were tried; the last one is the one that was measured.
  std::string problem = {};  ///< Of the test as a whole.
};

std::string ToJson(const NetworkTestSpec& spec);
std::string ToJson(const NetworkTest& test);
/// Errors: as in json.h. An address that is none, or of loopback, is kInvalidArgument.
Result<NetworkTestSpec> ReadNetworkTestSpec(std::string_view json);
Result<NetworkTest> ReadNetworkTest(std::string_view json);

}  // namespace lockstep::control
