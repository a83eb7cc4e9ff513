#include "agent/network/network_tester.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "agent/network/network_exchange.h"

namespace lockstep::agent {
namespace {

constexpr auto kWait = std::chrono::seconds(20);

/// What a daemon on another node would do: here over loopback, which no request can name.
Status Measure(const control::NetworkTest& listening, const std::string& secret, uint64_t bytes,
               control::NetworkPath* path) {
  const auto deadline = NetworkClock::now() + kWait;
  ASSIGN_OR_RETURN(TimedSocket socket,
                   TimedSocket::Connect({"lo", "127.0.0.1"}, listening.port, deadline, deadline, -1));
  return MeasureExchange(&socket, secret, bytes, path);
}

control::NetworkTest WaitUntilDone(const NetworkTester& tester, const std::string& id) {
  const auto end = NetworkClock::now() + kWait;
  for (;;) {
    const auto test = tester.Get(id, "alice");
    if (!test || test->is_done || NetworkClock::now() > end) return test.value_or(control::NetworkTest());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(NetworkTesterTest, TheEndThatConnectsMeasuresLatencyAndBothDirections) {
  NetworkTester tester("n1");
  control::NetworkTestSpec spec;
  spec.limit_ns = 20'000'000'000;
  const auto listening = tester.Start(spec, "alice");
  ASSERT_TRUE(listening) << listening.error().ToString();
  control::NetworkPath path;
  const Status measured = Measure(*listening, listening->secret, 1 << 20, &path);
  ASSERT_TRUE(measured) << measured.error().ToString();
  EXPECT_GT(path.latency_ns, 0);
  EXPECT_GE(path.longest_latency_ns, path.latency_ns);
  EXPECT_GT(path.sent_bytes_per_s, 0);
  EXPECT_GT(path.received_bytes_per_s, 0);
  EXPECT_GT(path.segment_count, 0);
  EXPECT_GE(path.retransmitted_count, 0);
  const control::NetworkTest done = WaitUntilDone(tester, listening->id);
  EXPECT_TRUE(done.is_done);
  EXPECT_EQ(done.problem, "");
}

TEST(NetworkTesterTest, ASecretIsToldOnce) {
  NetworkTester tester("n1");
  const auto listening = tester.Start({}, "alice");
  ASSERT_TRUE(listening);
  EXPECT_EQ(listening->secret.size(), 32);
  EXPECT_EQ(tester.Get(listening->id, "alice")->secret, "");
}

TEST(NetworkTesterTest, AnothersTestIsNotThere) {
  NetworkTester tester("n1");
  const auto listening = tester.Start({}, "alice");
  ASSERT_TRUE(listening);
  EXPECT_EQ(tester.Get(listening->id, "bob").error().code, ErrorCode::kNotFound);
}

TEST(NetworkTesterTest, AStrangerIsTurnedAwayAndTheNextOneServed) {
  NetworkTester tester("n1");
  control::NetworkTestSpec spec;
  spec.limit_ns = 20'000'000'000;
  const auto listening = tester.Start(spec, "alice");
  ASSERT_TRUE(listening);
  control::NetworkPath path;
  EXPECT_FALSE(Measure(*listening, std::string(32, 'x'), 1024, &path));
  EXPECT_TRUE(Measure(*listening, listening->secret, 1024, &path));
}

TEST(NetworkTesterTest, NobodyComingEndsATest) {
  NetworkTester tester("n1");
  control::NetworkTestSpec spec;
  spec.limit_ns = 100'000'000;
  const auto listening = tester.Start(spec, "alice");
  ASSERT_TRUE(listening);
  EXPECT_EQ(WaitUntilDone(tester, listening->id).problem, "nobody came");
}

TEST(NetworkTesterTest, TestsAtATimeAreLimited) {
  NetworkTester tester("n1");
  for (size_t i = 0; i < NetworkTester::kAtATime; ++i) ASSERT_TRUE(tester.Start({}, "alice"));
  EXPECT_EQ(tester.Start({}, "alice").error().code, ErrorCode::kLimitExceeded);
}

TEST(NetworkTesterTest, ADaemonThatStopsWaitsForNoTest) {
  const auto start = NetworkClock::now();
  {
    NetworkTester tester("n1");
    control::NetworkTestSpec spec;
    spec.limit_ns = 30'000'000'000;
    ASSERT_TRUE(tester.Start(spec, "alice"));
  }
  EXPECT_LT(NetworkClock::now() - start, kWait);
}

TEST(NetworkTesterTest, AnAddressThatRefusesIsAPathWithItsProblem) {
  NetworkTester tester("n1");
  control::NetworkTestSpec spec;
  spec.listens = false;
  spec.addresses = {{"lo", "127.0.0.1"}};  // Past the reader, which refuses it.
  spec.port = 1;
  spec.secret = std::string(32, 'x');
  const auto connecting = tester.Start(spec, "alice");
  ASSERT_TRUE(connecting);
  const control::NetworkTest done = WaitUntilDone(tester, connecting->id);
  ASSERT_THAT(done.paths, testing::SizeIs(1));
  EXPECT_NE(done.paths[0].problem, "");
}

}  // namespace
}  // namespace lockstep::agent
