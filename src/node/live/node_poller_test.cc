#include "node/live/node_poller.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/client/testing/scripted_server.h"

namespace lockstep::live {
namespace {

using control::testing::Http;
using control::testing::ScriptedServer;
using Request = ScriptedServer::Request;
using Answer = ScriptedServer::Answer;

constexpr int64_t kLong = 60'000 * kMillisecondNs;

Answer Daemon(const Request& request) {
  if (request.head.starts_with("GET /metrics ")) {
    return {Http(200, "lockstep_rank_up{job_id=\"j\",rank=\"0\",host=\"n\"} 1\n")};
  }
  return {Http(200, R"({"host":"n","now_unix_ns":1})")};
}

control::Endpoint At(uint16_t port) {
  control::Endpoint endpoint;
  endpoint.host = "n";
  endpoint.address = "127.0.0.1";
  endpoint.port = port;
  return endpoint;
}

TEST(NodePollerTest, ANodeThatHangsHoldsUpOneLook) {
  ScriptedServer well(Daemon);
  ScriptedServer ill([](const Request&) { return Answer{.bytes = "", .close = false, .hang = true}; });
  NodePoller poller({At(well.port()), At(ill.port())}, "", 64);
  std::vector<NodeLook> looks;
  const int64_t end_ns = SteadyNow() + kLong;
  do looks = poller.Look(2000 * kMillisecondNs);
  while (looks[0].error && SteadyNow() < end_ns);
  ASSERT_FALSE(looks[0].error) << looks[0].error->message;
  EXPECT_EQ(looks[0].reading.ranks.size(), 1U);
  ASSERT_TRUE(looks[1].error);
  // It is asked again within these, and may take a minute to answer; that is not waited for.
  const int64_t begin_ns = SteadyNow();
  for (int i = 0; i < 20; ++i) {
    looks = poller.Look(kLong);
    EXPECT_FALSE(looks[0].error);
    EXPECT_TRUE(looks[0].is_news);
    EXPECT_TRUE(looks[1].error);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_LT(SteadyNow() - begin_ns, kLong);
}

TEST(NodePollerTest, NodesThatHangLeaveRoomForThoseThatAnswer) {
  ScriptedServer well(Daemon);
  ScriptedServer ill([](const Request&) { return Answer{.bytes = "", .close = false, .hang = true}; });
  NodePoller poller({At(ill.port()), At(ill.port()), At(well.port())}, "", 1);
  // Behind the others, which take the one place one after the other, it comes to its turn once.
  const int64_t end_ns = SteadyNow() + kLong;
  while (poller.Look(50 * kMillisecondNs)[2].error && SteadyNow() < end_ns) {
  }
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(poller.Look(kLong)[2].error);
}

TEST(NodePollerTest, ATunnelMayTakeLongerThanALook) {
  ScriptedServer server(Daemon);
  control::Endpoint endpoint;
  endpoint.host = "n";
  const std::string go = ::testing::TempDir() + "/node_poller_go_" + std::to_string(::getpid());
  endpoint.tunnel = {"bash", "-c",
                     "until [ -e $1 ]; do sleep 0.05; done; exec 3<>/dev/tcp/127.0.0.1/$0 4<&0; cat <&4 >&3 & cat <&3; "
                     "kill 0",
                     std::to_string(server.port()), go};
  NodePoller poller({endpoint}, "", 64);
  const int64_t end_ns = SteadyNow() + kLong;
  std::vector<NodeLook> looks = poller.Look(100 * kMillisecondNs);
  EXPECT_TRUE(looks[0].error);
  std::ofstream(go).close();
  while (looks[0].error && SteadyNow() < end_ns) looks = poller.Look(100 * kMillisecondNs);
  std::filesystem::remove(go);
  ASSERT_FALSE(looks[0].error) << looks[0].error->message;
  EXPECT_EQ(server.connection_count(), 1);
}

TEST(NodePollerTest, ANodeThatIsBackIsHeardAgain) {
  std::atomic<bool> answers = false;
  ScriptedServer server([&](const Request& request) {
    return answers ? Daemon(request) : Answer{.bytes = "", .close = true, .hang = false};
  });
  NodePoller poller({At(server.port())}, "", 64);
  EXPECT_TRUE(poller.Look(kLong)[0].error);
  answers = true;
  const int64_t end_ns = SteadyNow() + kLong;
  while (poller.Look(kLong)[0].error) {
    ASSERT_LT(SteadyNow(), end_ns);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(NodePollerTest, ItEndsThoughANodeHangs) {
  ScriptedServer ill([](const Request&) { return Answer{.bytes = "", .close = false, .hang = true}; });
  const int64_t begin_ns = SteadyNow();
  {
    control::Endpoint endpoint;
    endpoint.host = "n";
    endpoint.tunnel = {"sleep", "1000"};  // Half a minute is what it has to come up.
    NodePoller poller({endpoint, At(ill.port())}, "", 64);
    EXPECT_TRUE(poller.Look(10 * kMillisecondNs)[0].error);
  }
  EXPECT_LT(SteadyNow() - begin_ns, 25'000 * kMillisecondNs);
}

}  // namespace
}  // namespace lockstep::live
