#include "measure/rendezvous/tcp_communicator.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <ctime>
#include <future>
#include <stdexcept>
#include <thread>

#include "base/unique_fd.h"
#include "measure/rendezvous/hello.h"

namespace lockstep::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Met = Result<std::unique_ptr<TcpCommunicator>>;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// A listening socket at a port of its own.
UniqueFd Listener(uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(fd.get(), 16), 0);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  *port = ntohs(address.sin_port);
  return fd;
}

UniqueFd Connect(uint16_t port) {
  for (int i = 0; i < 1000; ++i) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(port);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return UniqueFd();
}

class TcpCommunicatorTest : public testing::Test {
 protected:
  // The port was somebody's just now, so no other test gets it.
  void SetUp() override { Listener(&port_); }

  JobPlace Place(uint32_t rank, uint32_t size) const {
    return {.rank = rank,
            .world_size = size,
            .address = "127.0.0.1",
            .listen_address = "127.0.0.1",
            .first_port = port_,
            .job = 77};
  }
  std::future<Met> Start(const JobPlace& place) {
    return std::async(std::launch::async, [this, place] {
      return TcpCommunicator::Meet(place, limits_, [](const Error& error) { throw std::runtime_error(error.message); });
    });
  }
  std::vector<std::unique_ptr<TcpCommunicator>> All(uint32_t size) {
    std::vector<std::future<Met>> coming;
    for (uint32_t rank = 0; rank < size; ++rank) coming.push_back(Start(Place(rank, size)));
    std::vector<std::unique_ptr<TcpCommunicator>> all;
    for (auto& one : coming) {
      Met met = one.get();
      EXPECT_TRUE(met) << met.error().message;
      all.push_back(std::move(*met));
    }
    return all;
  }

  uint16_t port_ = 0;
  TcpCommunicator::Limits limits_{std::chrono::seconds(20), std::chrono::seconds(20), std::chrono::seconds(5)};
};

TEST_F(TcpCommunicatorTest, EverybodyHearsTheRootAndTheRootEverybody) {
  auto all = All(4);
  const std::string large(5'000'000, 'x');
  std::vector<std::future<std::string>> ranks;
  for (auto& one : all) {
    ranks.push_back(std::async(std::launch::async, [&] {
      std::string word = one->is_root() ? large : "";
      one->Broadcast(&word);
      EXPECT_EQ(word, large);
      std::string seen;
      for (int i = 0; i < 50; ++i) {
        const auto told = one->Gather(std::to_string(one->process() * 10 + i) + (i % 2 == 0 ? "" : large));
        EXPECT_EQ(told.size(), one->is_root() ? 4u : 0u);
        for (size_t rank = 0; rank < told.size(); ++rank)
          EXPECT_TRUE(told[rank].starts_with(std::to_string(rank * 10 + i)));
        if (i == 0 && one->is_root()) seen = told[0] + "," + told[1] + "," + told[2] + "," + told[3];
      }
      return seen;
    }));
  }
  EXPECT_EQ(ranks[0].get(), "0,10,20,30");
  for (size_t rank = 1; rank < ranks.size(); ++rank) EXPECT_EQ(ranks[rank].get(), "");
  EXPECT_EQ(all[1]->traffic().message_count, 51u);
}

TEST_F(TcpCommunicatorTest, OneRankAloneNeedsNobody) {
  auto met = Start(Place(0, 1)).get();
  ASSERT_TRUE(met);
  EXPECT_THAT((*met)->Gather("me"), ElementsAre("me"));
}

TEST_F(TcpCommunicatorTest, RanksThatDoNotComeAreNamed) {
  limits_.meeting = std::chrono::seconds(10);  // Time enough for rank 2 to come.
  auto root = Start(Place(0, 6));
  auto two = Start(Place(2, 6));
  const auto met = root.get();
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(met.error().message, HasSubstr("ranks 1, 3-5 of 6 did not come to 127.0.0.1 port"));
  two.wait();
}

TEST_F(TcpCommunicatorTest, ASilentStrangerHoldsUpNoMessage) {
  limits_.hello = std::chrono::seconds(15);
  auto root = Start(Place(0, 2));
  const UniqueFd silent = Connect(port_);
  auto one = Start(Place(1, 2));
  const Met first = root.get(), second = one.get();
  ASSERT_TRUE(first && second);
  const auto begin = std::chrono::steady_clock::now();
  auto told = std::async(std::launch::async, [&] { return (*first)->Gather("0"); });
  (*second)->Gather("1");
  EXPECT_THAT(told.get(), ElementsAre("0", "1"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, limits_.hello / 2);
}

TEST_F(TcpCommunicatorTest, WhereOnlyThisHostReachesTheRootItSaysWhatToSet) {
  limits_.meeting = std::chrono::milliseconds(200);
  const auto met = Start(Place(0, 2)).get();
  ASSERT_FALSE(met);
  EXPECT_THAT(met.error().message, HasSubstr("LOCKSTEP_BENCH_LISTEN"));
}

#ifndef LOCKSTEP_SANITIZED  // Which looks at objects through descriptors of its own, and calls them bad without.
TEST_F(TcpCommunicatorTest, WithoutDescriptorsTheRootSaysSoAndDoesNotSpin) {
  limits_.meeting = std::chrono::seconds(3);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  auto root = Start(Place(0, 3));
  const UniqueFd silent = Connect(port_);
  UniqueFd knocking(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd lowest(::dup(knocking.get()));
  rlimit none_more = before;
  none_more.rlim_cur = static_cast<rlim_t>(lowest.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_more), 0);
  const sockaddr_in address = Loopback(port_);
  ::connect(knocking.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const clock_t used = ::clock();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double used_s = static_cast<double>(::clock() - used) / CLOCKS_PER_SEC;
  root.wait();  // Who has knocked is to be met while there are none.
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const auto met = root.get();
  ASSERT_FALSE(met);
  EXPECT_THAT(met.error().message, HasSubstr("Too many open files"));
  EXPECT_LT(used_s, 0.5);
}
#endif

TEST_F(TcpCommunicatorTest, ARootThatIsNotThereIsNamed) {
  limits_.meeting = std::chrono::milliseconds(500);
  const auto met = Start(Place(2, 3)).get();
  ASSERT_FALSE(met);
  EXPECT_THAT(met.error().message, HasSubstr("rank 0 was not reached at 127.0.0.1"));
}

TEST_F(TcpCommunicatorTest, StrangersAndRanksOfOtherJobsAreTurnedAway) {
  auto root = Start(Place(0, 3));
  const UniqueFd silent = Connect(port_);
  const UniqueFd loud = Connect(port_);
  const std::string_view request = "GET / HTTP/1.1\r\nHost: somebody\r\nAccept: everything\r\n\r\n";
  ASSERT_EQ(::send(loud.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  // Ranks that cannot be.
  for (const Hello& hello :
       {Hello{.job = 77, .world_size = 3, .rank = 0}, Hello{.job = 77, .world_size = 3, .rank = 3},
        Hello{.job = 77, .world_size = 4, .rank = 1}, Hello{.job = 78, .world_size = 3, .rank = 1}}) {
    const UniqueFd guest = Connect(port_);
    const auto bytes = ToBytes(hello);
    ASSERT_EQ(::send(guest.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    std::array<std::byte, kAnswerBytes> answer = {};
    ASSERT_EQ(::recv(guest.get(), answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
    EXPECT_NE(*ParseAnswer(answer), Answer::kWelcome);
  }
  JobPlace bigger = Place(1, 4);
  const auto refused = Start(bigger).get();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("its world size is not 4"));
  auto one = Start(Place(1, 3));
  auto two = Start(Place(2, 3));
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(two.get());
  EXPECT_TRUE(root.get());
}

TEST_F(TcpCommunicatorTest, TwoProcessesOfOneRankAreNotTakenForTwo) {
  limits_.meeting = std::chrono::seconds(10);
  auto root = Start(Place(0, 3));
  auto first = Start(Place(1, 3));
  auto second = Start(Place(1, 3));
  auto first_met = first.get();
  auto second_met = second.get();
  EXPECT_NE(first_met.has_value(), second_met.has_value());
  EXPECT_THAT((first_met ? second_met : first_met).error().message, HasSubstr("another process came as this rank"));
  EXPECT_THAT(root.get().error().message, HasSubstr("rank 2 of 3 did not come"));
}

TEST_F(TcpCommunicatorTest, APortThatIsTakenIsPassedOver) {
  // Another service, which answers what is not ours.
  const UniqueFd taken = [&] {
    uint16_t port = 0;
    UniqueFd fd = Listener(&port);
    port_ = port;
    return fd;
  }();
  std::jthread answering([&] {
    for (int i = 0; i < 2; ++i) {
      const UniqueFd guest(::accept(taken.get(), nullptr, nullptr));
      if (guest.valid()) (void)::send(guest.get(), "220 mail.example ESMTP\r\n", 24, MSG_NOSIGNAL);
    }
  });
  auto all = All(2);
  ::shutdown(taken.get(), SHUT_RDWR);
  auto other = std::async(std::launch::async, [&] { all[1]->Gather("b"); });
  EXPECT_THAT(all[0]->Gather("a"), ElementsAre("a", "b"));
  other.wait();
}

TEST_F(TcpCommunicatorTest, ALostRankIsTold) {
  auto all = All(3);
  auto one = std::async(std::launch::async, [&] { all[1]->Gather("b"); });
  one.wait();
  all[2].reset();
  EXPECT_THAT([&] { all[0]->Gather("a"); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("rank 2 closed its connection")));
}

TEST_F(TcpCommunicatorTest, ALateRankIsTold) {
  limits_.message = std::chrono::seconds(10);  // Time enough for the others to meet and be heard.
  auto all = All(3);
  all[1]->Gather("b");
  EXPECT_THAT([&] { all[0]->Gather("a"); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("rank 2 did not come")));
}

TEST_F(TcpCommunicatorTest, AMessageWithoutBoundsIsRefused) {
  auto root = Start(Place(0, 2));
  const UniqueFd guest = Connect(port_);
  const auto hello = ToBytes(Hello{.job = 77, .world_size = 2, .rank = 1});
  const auto header = LengthBytes(UINT64_MAX);
  ASSERT_GT(::send(guest.get(), hello.data(), hello.size(), MSG_NOSIGNAL), 0);
  ASSERT_GT(::send(guest.get(), header.data(), header.size(), MSG_NOSIGNAL), 0);
  auto met = root.get();
  ASSERT_TRUE(met);
  EXPECT_THAT([&] { (*met)->Gather("a"); }, testing::ThrowsMessage<std::runtime_error>(HasSubstr("too large")));
}

}  // namespace
}  // namespace lockstep::rendezvous
