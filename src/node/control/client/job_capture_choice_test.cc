#include "node/control/client/job_capture_choice.h"

#include <gmock/gmock.h>

namespace lockstep::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Process Trainer(int32_t pid, std::optional<int32_t> rank, const std::string& job, uint32_t uid = 1000) {
  Process process;
  process.id = std::to_string(pid) + "-1";
  process.pid = pid;
  process.uid = uid;
  process.user = "user" + std::to_string(uid);
  process.client_pids = {pid, 10, 1};
  process.rank = rank;
  process.job_id = job;
  process.job_kind = job.empty() ? JobKind::kNone : JobKind::kSlurm;
  return process;
}

std::vector<int32_t> Pids(const JobChoice& choice) {
  std::vector<int32_t> pids;
  for (const JobTarget& target : choice.targets) pids.push_back(target.process.pid);
  return pids;
}

NodeProcesses OnNode(size_t idx, std::vector<Process> processes) {
  return {idx, "n" + std::to_string(idx), std::move(processes)};
}

TEST(ChooseTargetsTest, ARunningJobOnTwoNodesIsOneJobInOrderOfRank) {
  const auto choice = ChooseTargets(
      {}, {OnNode(0, {Trainer(7, 3, "5"), Trainer(8, 2, "5")}), OnNode(1, {Trainer(7, 0, "5"), Trainer(8, 1, "5")})},
      std::nullopt);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_THAT(Pids(*choice), ElementsAre(7, 8, 8, 7));
}

TEST(ChooseTargetsTest, LaunchersAreLeftOut) {
  Process launcher = Trainer(10, std::nullopt, "5");
  launcher.role = ProcessRole::kLauncher;
  const auto choice = ChooseTargets({}, {OnNode(0, {launcher, Trainer(11, 0, "5")})}, std::nullopt);
  ASSERT_TRUE(choice);
  EXPECT_THAT(Pids(*choice), ElementsAre(11));
  const auto none = ChooseTargets({}, {OnNode(0, {launcher})}, std::nullopt);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("launcher"));
}

TEST(ChooseTargetsTest, TheLaunchersPidSelectsItsRanks) {
  CaptureSelector selector;
  selector.pids = {10};
  Process other = Trainer(21, 0, "");
  other.client_pids = {21, 20};
  const auto choice =
      ChooseTargets(selector, {OnNode(0, {Trainer(11, 0, ""), other, Trainer(12, 1, "")})}, std::nullopt);
  ASSERT_TRUE(choice);
  EXPECT_THAT(Pids(*choice), ElementsAre(11, 12));
}

TEST(ChooseTargetsTest, TwoJobsAreNotMixed) {
  const auto choice = ChooseTargets({}, {OnNode(0, {Trainer(1, 0, "5"), Trainer(2, 0, "6")})}, std::nullopt);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(choice.error().message, ::testing::AllOf(HasSubstr("job 5"), HasSubstr("job 6")));
  CaptureSelector selector;
  selector.job_id = "6";
  const auto one = ChooseTargets(selector, {OnNode(0, {Trainer(1, 0, "5"), Trainer(2, 0, "6")})}, std::nullopt);
  ASSERT_TRUE(one);
  EXPECT_THAT(Pids(*one), ElementsAre(2));
}

TEST(ChooseTargetsTest, TwoJobsWithoutAnIdAreToldApartByTheirLaunchers) {
  Process other = Trainer(21, 0, "");
  other.client_pids = {21, 20};
  const auto choice = ChooseTargets({}, {OnNode(0, {Trainer(11, 0, ""), other})}, std::nullopt);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().message, HasSubstr("--pid"));
}

TEST(ChooseTargetsTest, LoneProcessesAreTakenTogether) {
  const auto choice =
      ChooseTargets({}, {OnNode(0, {Trainer(11, std::nullopt, ""), Trainer(12, std::nullopt, "")})}, std::nullopt);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->targets.size(), 2u);
}

TEST(ChooseTargetsTest, OthersProcessesAreLeftOutWhereOnesOwnMatch) {
  const std::vector<NodeProcesses> nodes = {OnNode(0, {Trainer(1, 0, "5", 1000), Trainer(2, 0, "6", 1001)})};
  const auto choice = ChooseTargets({}, nodes, 1001);
  ASSERT_TRUE(choice);
  EXPECT_THAT(Pids(*choice), ElementsAre(2));
  EXPECT_EQ(choice->other_user_count, 1u);
}

TEST(ChooseTargetsTest, RanksThatAreNotRegisteredAreMissing) {
  Process one = Trainer(1, 1, "5");
  one.world_size = 4;
  Process three = Trainer(3, 3, "5");
  three.world_size = 4;
  const auto all = ChooseTargets({}, {OnNode(0, {one, three})}, std::nullopt);
  ASSERT_TRUE(all);
  EXPECT_THAT(all->missing_ranks, ElementsAre(0, 2));
  CaptureSelector selector;
  selector.ranks = {{1, 2}};
  const auto some = ChooseTargets(selector, {OnNode(0, {one, three})}, std::nullopt);
  ASSERT_TRUE(some);
  EXPECT_THAT(Pids(*some), ElementsAre(1));
  EXPECT_THAT(some->missing_ranks, ElementsAre(2));
  selector.ranks = {{1, 1}, {4, 4}};
  const auto beyond = ChooseTargets(selector, {OnNode(0, {one, three})}, std::nullopt);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kInvalidArgument);
}

TEST(ChooseTargetsTest, WithoutAMatchItSaysWhatIsRegistered) {
  CaptureSelector selector;
  selector.job_id = "77";
  const auto none = ChooseTargets(selector, {OnNode(0, {Trainer(1, 0, "5")})}, std::nullopt);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, ::testing::AllOf(HasSubstr("job 77"), HasSubstr("job 5 (rank 0) of user1000 on n0"),
                                                     HasSubstr("KINETO_USE_DAEMON")));
  EXPECT_THAT(ChooseTargets({}, {OnNode(0, {})}, std::nullopt).error().message, HasSubstr("KINETO_USE_DAEMON=1"));
}

TEST(MatchesTest, PbsJobsAreFoundByTheirNumber) {
  Process process = Trainer(1, 0, "123.server");
  process.job_kind = JobKind::kPbs;
  CaptureSelector selector;
  selector.job_id = "123";
  EXPECT_TRUE(Matches(selector, process));
  selector.job_id = "12";
  EXPECT_FALSE(Matches(selector, process));
}

TEST(RankListTest, RunsAreRanges) {
  EXPECT_EQ(RankList({3, 0, 1, 2, 7, 9, 10}), "0-3, 7, 9-10");
  EXPECT_EQ(RankList({}), "");
}

}  // namespace
}  // namespace lockstep::control
