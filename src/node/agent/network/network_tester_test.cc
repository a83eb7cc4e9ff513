#include "node/agent/network/network_tester.h"

#include <arpa/inet.h>
#include <endian.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/nanoseconds.h"
#include "node/agent/network/network_exchange.h"

namespace lockstep::agent {
namespace {

constexpr auto kWait = std::chrono::seconds(240);

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

TEST(NetworkTesterTest, StrangersThatSayNothingOrLeaveDoNotEndATest) {
  NetworkTester tester("n1");
  control::NetworkTestSpec spec;
  spec.limit_ns = 20'000'000'000;
  const auto listening = tester.Start(spec, "alice");
  ASSERT_TRUE(listening);
  const auto deadline = NetworkClock::now() + kWait;
  const control::NetworkAddress loopback{"lo", "127.0.0.1"};
  ASSERT_TRUE(TimedSocket::Connect(loopback, listening->port, deadline, deadline, -1));  // And gone again.
  const auto silent = TimedSocket::Connect(loopback, listening->port, deadline, deadline, -1);
  ASSERT_TRUE(silent);
  control::NetworkPath path;
  const Status measured = Measure(*listening, listening->secret, 1024, &path);
  EXPECT_TRUE(measured) << measured.error().ToString();
  EXPECT_EQ(WaitUntilDone(tester, listening->id).problem, "");
}

/// What listens at a port of loopback and answers as a lying daemon would: made up.
class LyingPeer {
 public:
  LyingPeer(uint64_t bytes, uint64_t elapsed_ns) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, bytes, elapsed_ns] { Answer(bytes, elapsed_ns); });
  }
  uint16_t port() const { return port_; }

 private:
  void Answer(uint64_t bytes, uint64_t elapsed_ns) {
    UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    TimedSocket socket(std::move(fd), NetworkClock::now() + kWait, -1);
    std::array<char, 64> ping = {};
    const std::string greeting = "lockstep-network-test/1\n";
    (void)socket.Send(greeting.data(), greeting.size());
    (void)socket.Receive(ping.data(), 32);
    (void)socket.Send("\n", 1);
    (void)socket.Receive(ping.data(), sizeof(uint64_t));
    for (int round = 0; round < 21; ++round) {
      if (socket.Receive(ping.data(), ping.size())) (void)socket.Send(ping.data(), ping.size());
    }
    (void)socket.Receive(ping.data(), sizeof(uint32_t));  // No bytes were to be sent: the end of them.
    for (const uint64_t number : {bytes, elapsed_ns}) {
      const uint64_t wire = htobe64(number);
      (void)socket.Send(&wire, sizeof(wire));
    }
    const std::array<char, 4 + 16> rest = {};  // Nothing back, no segments.
    (void)socket.Send(rest.data(), rest.size());
  }

  UniqueFd fd_;
  uint16_t port_ = 0;
  std::jthread thread_;  // Last: ends before what it uses.
};

TEST(NetworkTesterTest, APeerThatSaysItReceivedMoreThanWasSentIsNotBelieved) {
  for (const uint64_t bytes : {uint64_t{0}, ~uint64_t{0}}) {
    LyingPeer peer(bytes, 0);
    control::NetworkTest listening;
    listening.port = peer.port();
    control::NetworkPath path;
    const Status measured = Measure(listening, std::string(32, 'x'), 0, &path);
    EXPECT_EQ(static_cast<bool>(measured), bytes == 0);
    if (!measured) {
      EXPECT_EQ(measured.error().code, ErrorCode::kCorruptData);
    }
    EXPECT_EQ(path.sent_bytes_per_s, std::nullopt);
  }
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
  for (size_t i = 0; i < NetworkTester::kOfOne; ++i) ASSERT_TRUE(tester.Start({}, "alice"));
  EXPECT_EQ(tester.Start({}, "alice").error().code, ErrorCode::kLimitExceeded);
  for (size_t i = NetworkTester::kOfOne; i < NetworkTester::kAtATime; ++i) ASSERT_TRUE(tester.Start({}, "bob"));
  EXPECT_EQ(tester.Start({}, "carol").error().code, ErrorCode::kLimitExceeded);
}

TEST(NetworkTesterTest, ADaemonThatStopsWaitsForNoTest) {
  NetworkTester tester("n1");
  control::NetworkTestSpec spec;
  spec.limit_ns = 24 * kHourNs;  // Past the reader, which refuses it: who waited for it would be seen to.
  ASSERT_TRUE(tester.Start(spec, "alice"));
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
