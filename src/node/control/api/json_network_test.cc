#include <gtest/gtest.h>

#include "node/control/api/network_test.h"

namespace lockstep::control {
namespace {

NetworkTestSpec Connecting(const std::string& address) {
  NetworkTestSpec spec;
  spec.listens = false;
  spec.addresses = {{"eth0", address}};
  spec.port = 4711;
  spec.secret = std::string(32, 'a');
  return spec;
}

TEST(JsonNetworkTest, ASpecComesBackAsItWas) {
  NetworkTestSpec spec = Connecting("10.0.0.2");
  spec.bytes = 1 << 20;
  spec.limit_ns = 2'000'000'000;
  const auto read = ReadNetworkTestSpec(ToJson(spec));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_FALSE(read->listens);
  EXPECT_EQ(read->addresses.at(0).address, "10.0.0.2");
  EXPECT_EQ(read->port, 4711);
  EXPECT_EQ(read->bytes, spec.bytes);
  EXPECT_EQ(read->limit_ns, spec.limit_ns);
}

TEST(JsonNetworkTest, OnlyAnotherNodesAddressMayBeConnectedTo) {
  for (const char* address : {"10.0.0.2", "192.168.1.1", "fd00::2"}) {
    EXPECT_TRUE(ReadNetworkTestSpec(ToJson(Connecting(address)))) << address;
  }
  for (const char* address : {"127.0.0.1", "127.3.2.1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255",
                              "::1", "::", "::ffff:127.0.0.1", "ff02::1", "fe80::1", "localhost", "n1", "10.0.0"}) {
    const auto read = ReadNetworkTestSpec(ToJson(Connecting(address)));
    ASSERT_FALSE(read) << address;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument) << address;
  }
}

TEST(JsonNetworkTest, BytesAndTimeAreBounded) {
  NetworkTestSpec spec;
  spec.limit_ns = 31'000'000'000;
  EXPECT_FALSE(ReadNetworkTestSpec(ToJson(spec)));
  spec = {};
  spec.bytes = (uint64_t{256} << 20) + 1;
  EXPECT_FALSE(ReadNetworkTestSpec(ToJson(spec)));
}

TEST(JsonNetworkTest, AResultComesBackAsItWas) {
  NetworkTest test{.id = "abc", .host = "n1", .listens = false, .is_done = true};
  test.paths = {{.to = {"eth0", "10.0.0.9"}, .problem = "no answer in time"},
                {.to = {"eth1", "10.1.0.9"}, .problem = {}, .latency_ns = 1000, .retransmitted_count = 3}};
  const auto read = ReadNetworkTest(ToJson(test));
  ASSERT_TRUE(read) << read.error().ToString();
  ASSERT_EQ(read->paths.size(), 2);
  EXPECT_EQ(read->paths[0].problem, "no answer in time");
  EXPECT_EQ(read->paths[1].latency_ns, 1000);
  EXPECT_EQ(read->paths[1].retransmitted_count, 3);
  EXPECT_EQ(read->paths[1].sent_bytes_per_s, std::nullopt);
  EXPECT_TRUE(read->is_done);
}

}  // namespace
}  // namespace lockstep::control
