#include "base/team.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/thread_communicator.h"

namespace lockstep {
namespace {

void Teach(Team* team) {
  team->Handle<int64_t, std::vector<int64_t>>("sum", [team](const std::vector<int64_t>& numbers) {
    int64_t sum = static_cast<int64_t>(team->process());
    for (const int64_t number : numbers) sum += number;
    return sum;
  });
  team->Handle<int64_t, std::string>("fail", [team](const std::string& text) -> int64_t {
    if (team->process() >= 1) throw std::runtime_error(text + " " + std::to_string(team->process()));
    return 0;
  });
}

TEST(TeamTest, EveryProcessAnswersTheRoot) {
  std::atomic<int> served{0};
  RunOnThreads(4, [&](Communicator& communicator) {
    Team team(&communicator);
    Teach(&team);
    if (!communicator.is_root()) {
      EXPECT_EQ(team.Serve(), 4);
      ++served;
      return;
    }
    EXPECT_EQ(team.Ask<int64_t>("sum", std::vector<int64_t>{1, 2}), (std::vector<int64_t>{3, 4, 5, 6}));
    EXPECT_EQ(team.Ask<int64_t>("sum", std::vector<int64_t>{}), (std::vector<int64_t>{0, 1, 2, 3}));
    team.End(4);
    EXPECT_EQ(communicator.traffic().message_count, 5u);
    EXPECT_EQ(communicator.traffic().received_bytes, 2 * 3 * 9u);
  });
  EXPECT_EQ(served, 3);
}

TEST(TeamTest, TheFirstFailureIsThrownAtTheRootAndTheTeamGoesOn) {
  RunOnThreads(3, [](Communicator& communicator) {
    Team team(&communicator);
    Teach(&team);
    if (!communicator.is_root()) {
      EXPECT_EQ(team.Serve(), 0);
      return;
    }
    try {
      team.Ask<int64_t>("fail", std::string("process"));
      ADD_FAILURE();
    } catch (const TeamError& error) {
      EXPECT_STREQ(error.what(), "process 1");
    }
    EXPECT_THROW(team.Ask<int64_t>("unheard of", 1), TeamError);
    EXPECT_EQ(team.Ask<int64_t>("sum", std::vector<int64_t>{1}).size(), 3u);
    team.End(0);
  });
}

TEST(TeamTest, OneProcessIsATeam) {
  RunOnThreads(1, [](Communicator& communicator) {
    Team team(&communicator);
    Teach(&team);
    EXPECT_EQ(team.Ask<int64_t>("sum", std::vector<int64_t>{5}), std::vector<int64_t>{5});
    team.End(0);
    EXPECT_EQ(communicator.traffic().received_bytes, 0u);
  });
}

}  // namespace
}  // namespace lockstep
