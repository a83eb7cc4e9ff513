#include "programs/doctor/job.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "programs/doctor/collectives.h"

namespace lockstep::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

control::Process RankProcess(int32_t rank, int32_t world_size) {
  control::Process process;
  process.id = std::to_string(rank + 1) + "-1";
  process.pid = rank + 1;
  process.rank = rank;
  process.world_size = world_size;
  process.job_kind = control::JobKind::kSlurm;
  process.job_id = "7";
  process.torch_version = "2.13.0";
  process.python_version = "3.11";
  return process;
}

/// Nodes n0, n1, ... that answer, with one rank each.
jobs::StatusView ViewOf(int32_t count) {
  jobs::StatusView view;
  for (int32_t i = 0; i < count; ++i) {
    jobs::NodeView node;
    node.host = "n" + std::to_string(i);
    node.status = control::NodeStatus();
    node.status->version = "0.1.0";
    node.clock = control::ClockDifference{0, 1000};
    node.processes = {RankProcess(i, count)};
    view.nodes.push_back(std::move(node));
  }
  return view;
}

control::NetworkPath GoodPath(int64_t bytes_per_s = 1'000'000'000) {
  control::NetworkPath path;
  path.to = {"eth0", "10.0.0.1"};
  path.latency_ns = 100'000;
  path.sent_bytes_per_s = bytes_per_s;
  path.received_bytes_per_s = bytes_per_s;
  path.segment_count = 10'000;
  path.retransmitted_count = 0;
  return path;
}

/// All pairs of the view's nodes; those that `is_bad` says do not reach each other.
JobFacts FactsOf(const jobs::StatusView& view, const std::function<bool(NodePair)>& is_bad) {
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  for (size_t i = 0; i < view.nodes.size(); ++i) facts.tested_nodes.push_back(i);
  for (const auto& round : PairsOf(view.nodes.size())) {
    for (const NodePair& pair : round) {
      PairResult result{.pair = pair, .problem = is_bad(pair) ? "no answer in time" : "", .paths = {}};
      if (result.problem.empty()) result.paths = {GoodPath()};
      facts.pairs.push_back(std::move(result));
    }
  }
  return facts;
}

std::vector<Check> Network(const JobFacts& facts) {
  std::vector<Check> checks;
  CheckNetwork(facts, &checks);
  return checks;
}

TEST(PairsTest, EveryPairOfFewNodesIsInOneRound) {
  size_t count = 0;
  for (const auto& round : PairsOf(7)) {
    std::vector<size_t> nodes;
    for (const auto& [a, b] : round) {
      nodes.push_back(a);
      nodes.push_back(b);
    }
    std::ranges::sort(nodes);
    EXPECT_EQ(std::ranges::adjacent_find(nodes), nodes.end());
    count += round.size();
  }
  EXPECT_EQ(count, 21);
  EXPECT_THAT(PairsOf(1), IsEmpty());
  EXPECT_THAT(PairsOf(0), IsEmpty());
}

TEST(PairsTest, ManyNodesAreTestedWithSomeOthersEach) {
  size_t count = 0;
  for (const auto& round : PairsOf(256)) count += round.size();
  EXPECT_EQ(count, 256 * 7 + 128);  // Distances 1 to 64, and half the way round once.
}

TEST(InterfacesTest, NamesComeFromTheRanksSettings) {
  EXPECT_THAT(InterfacesOf({"NCCL_SOCKET_IFNAME=eth,ib", "GLOO_SOCKET_IFNAME=eth0", "NCCL_DEBUG=INFO"}),
              ElementsAre("eth", "eth0", "ib"));
  EXPECT_THAT(InterfacesOf({"NCCL_SOCKET_IFNAME==bond0"}), ElementsAre("bond0"));
  EXPECT_THAT(InterfacesOf({"NCCL_SOCKET_IFNAME=^docker"}), IsEmpty());
  EXPECT_THAT(InterfacesOf({"GLOO_SOCKET_IFNAME=lo"}), IsEmpty());
}

TEST(DoctorNetworkTest, PairsThatReachEachOtherAreOneLine) {
  const jobs::StatusView view = ViewOf(4);
  const std::vector<Check> checks = Network(FactsOf(view, [](NodePair) { return false; }));
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].status, CheckStatus::kOk);
  EXPECT_THAT(checks[0].finding, HasSubstr("6 of 6 pairs"));
}

TEST(DoctorNetworkTest, ANodeNoneOfWhosePairsWorksIsCutOffAndNamedOnce) {
  const jobs::StatusView view = ViewOf(4);
  const std::vector<Check> checks =
      Network(FactsOf(view, [](NodePair pair) { return pair.first == 2 || pair.second == 2; }));
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].status, CheckStatus::kProblem);
  EXPECT_EQ(checks[0].subject, "n2");
  EXPECT_THAT(checks[0].hosts, ElementsAre("n2"));
  EXPECT_EQ(checks[1].status, CheckStatus::kOk);
}

TEST(DoctorNetworkTest, APairThatFailsAloneIsNoNodesFault) {
  const jobs::StatusView view = ViewOf(4);
  const std::vector<Check> checks = Network(FactsOf(view, [](NodePair pair) { return pair == NodePair(0, 1); }));
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].subject, "n0 - n1");
  EXPECT_THAT(checks[0].hosts, ElementsAre("n0", "n1"));
}

TEST(DoctorNetworkTest, OfTwoNodesNeitherIsBlamed) {
  const jobs::StatusView view = ViewOf(2);
  const std::vector<Check> checks = Network(FactsOf(view, [](NodePair) { return true; }));
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].subject, "n0 - n1");
}

TEST(DoctorNetworkTest, APairBelowHalfOfTheUsualRateStandsOut) {
  const jobs::StatusView view = ViewOf(4);
  JobFacts facts = FactsOf(view, [](NodePair) { return false; });
  facts.pairs[3].paths = {GoodPath(400'000'000)};
  const std::vector<Check> checks = Network(facts);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].status, CheckStatus::kWarning);
}

TEST(DoctorNetworkTest, LostSegmentsAreAWarning) {
  const jobs::StatusView view = ViewOf(2);
  JobFacts facts = FactsOf(view, [](NodePair) { return false; });
  facts.pairs[0].paths[0].retransmitted_count = 300;
  const std::vector<Check> checks = Network(facts);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_THAT(checks[0].finding, HasSubstr("3.0 %"));
}

TEST(DoctorNetworkTest, ANodeWhoseDaemonIsSilentWasNotMeasured) {
  jobs::StatusView view = ViewOf(2);
  view.nodes[1].status.reset();
  JobFacts facts{.view = view, .tested_nodes = {0}, .pairs = {}};
  const std::vector<Check> checks = Network(facts);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].subject, "n1");
  EXPECT_EQ(checks[0].status, CheckStatus::kProblem);
  EXPECT_EQ(checks[1].status, CheckStatus::kSkipped);
}

TEST(DoctorCollectivesTest, ASweepThatAgreesIsFine) {
  const Check check = ReadCollectives(
      "warning: of mpirun\n{\"schema\":\"lockstep.mpi-check/1\",\"hosts\":[\"a\",\"b\"],\"operations\":[{\"operation\":"
      "\"all_reduce\",\"bytes\":8,\"time_ns\":1000000,\"wrong_ranks\":[]}]}\n",
      "", 0);
  EXPECT_EQ(check.status, CheckStatus::kOk);
  EXPECT_THAT(check.finding, HasSubstr("2 MPI ranks of 2 nodes"));
}

TEST(DoctorCollectivesTest, RanksWithWrongResultsAreNamed) {
  const Check check = ReadCollectives(
      "{\"schema\":\"lockstep.mpi-check/1\",\"hosts\":[\"a\",\"b\"],\"operations\":[{\"operation\":\"broadcast\","
      "\"bytes\":8,\"time_ns\":1,\"wrong_ranks\":[1]}]}\n",
      "", 1);
  EXPECT_EQ(check.status, CheckStatus::kProblem);
  EXPECT_THAT(check.ranks, ElementsAre(1));
  EXPECT_THAT(check.finding, HasSubstr("broadcast"));
}

TEST(DoctorCollectivesTest, OfOpenMpisWordsTheFirstTextBetweenRulesCounts) {
  const std::string rule(74, '-');
  const Check check = ReadCollectives("2 total processes failed to start\n",
                                      "ssh: noise\n" + rule + "\nmpirun was unable to launch\n\nNode: a\n" + rule +
                                          "\n" + rule + "\nand so on\n" + rule + "\n",
                                      132);
  EXPECT_EQ(check.status, CheckStatus::kProblem);
  EXPECT_THAT(check.finding, HasSubstr("(exit status 132): mpirun was unable to launch Node: a"));
}

TEST(DoctorCollectivesTest, ASweepThatDoesNotEndGivesTheLauncherLastWords) {
  const Check check = ReadCollectives("", "first\nno route to host b\n", 1);
  EXPECT_EQ(check.status, CheckStatus::kProblem);
  EXPECT_THAT(check.finding, HasSubstr("no route to host b"));
  for (const char* text : {"{\"schema\":\"lockstep.mpi-check/1\"", "{\"schema\":\"lockstep.mpi-check/1\"}", "[]"}) {
    EXPECT_EQ(ReadCollectives(text, "", 0).status, CheckStatus::kProblem) << text;
  }
}

TEST(DoctorJobTest, MissingRanksAreNamed) {
  jobs::StatusView view = ViewOf(4);
  view.nodes[1].processes.clear();
  std::vector<Check> checks;
  CheckRanks({.view = view, .tested_nodes = {}, .pairs = {}}, &checks);
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].status, CheckStatus::kProblem);
  EXPECT_THAT(checks[0].ranks, ElementsAre(1));
}

TEST(DoctorJobTest, ARankOfAnotherVersionIsNamed) {
  jobs::StatusView view = ViewOf(4);
  view.nodes[3].processes[0].torch_version = "2.9.1";
  std::vector<Check> checks;
  CheckVersions({.view = view, .tested_nodes = {}, .pairs = {}}, &checks);
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].status, CheckStatus::kProblem);
  EXPECT_THAT(checks[0].ranks, ElementsAre(3));
  EXPECT_THAT(checks[0].finding, HasSubstr("2.9.1 on rank 3"));
}

TEST(DoctorJobTest, ASettingThatOneRankLacksIsNamedAndOneOfEachRankIsNot) {
  jobs::StatusView view = ViewOf(3);
  for (jobs::NodeView& node : view.nodes) {
    node.processes[0].settings = {"NCCL_ALGO=Ring", "TORCH_FR_DUMP_TEMP_FILE=" + node.host};
  }
  std::vector<Check> same;
  CheckEnvironment({.view = view, .tested_nodes = {}, .pairs = {}}, &same);
  ASSERT_THAT(same, SizeIs(1));
  EXPECT_EQ(same[0].status, CheckStatus::kOk);
  view.nodes[0].processes[0].settings.clear();
  std::vector<Check> checks;
  CheckEnvironment({.view = view, .tested_nodes = {}, .pairs = {}}, &checks);
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].subject, "NCCL_ALGO");
  EXPECT_THAT(checks[0].ranks, ElementsAre(0));
  EXPECT_THAT(checks[0].finding, HasSubstr("not set on rank 0"));
}

TEST(DoctorJobTest, AClockIsBlamedOnlyForWhatTheMeasurementCanTell) {
  jobs::StatusView view = ViewOf(2);
  view.nodes[1].clock = control::ClockDifference{80'000'000, 60'000'000};
  std::vector<Check> unsure;
  CheckClocks({.view = view, .tested_nodes = {}, .pairs = {}}, &unsure);
  EXPECT_EQ(unsure.at(0).status, CheckStatus::kOk);
  view.nodes[1].clock = control::ClockDifference{-2'000'000'000, 1'000'000};
  std::vector<Check> checks;
  CheckClocks({.view = view, .tested_nodes = {}, .pairs = {}}, &checks);
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].status, CheckStatus::kProblem);
  EXPECT_THAT(checks[0].hosts, ElementsAre("n1"));
}

TEST(DoctorJobTest, PtraceIsForbiddenByTheScopeUnlessTheDaemonIsAboveIt) {
  jobs::StatusView view = ViewOf(2);
  view.nodes[0].status->ptrace_scope = 1;
  view.nodes[0].status->may_trace_all = true;
  std::vector<Check> checks;
  CheckPtrace({.view = view, .tested_nodes = {}, .pairs = {}}, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kOk);
  view.nodes[1].status->ptrace_scope = 1;
  checks.clear();
  CheckPtrace({.view = view, .tested_nodes = {}, .pairs = {}}, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kWarning);
  EXPECT_THAT(checks.at(0).hosts, ElementsAre("n1"));
}

TEST(DoctorJobTest, AStuckJobIsOutOfStepAndASlowOneIsNot) {
  const jobs::StatusView view = ViewOf(2);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.verdict = hang::Diagnosis();
  facts.verdict->verdict.kind = hang::VerdictKind::kSkippedCollective;
  facts.verdict->verdict.culprit_ranks = {1};
  facts.verdict->ranks.resize(2);
  std::vector<Check> checks;
  CheckProgress(facts, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kProblem);
  EXPECT_THAT(checks.at(0).ranks, ElementsAre(1));
  facts.verdict->verdict.kind = hang::VerdictKind::kStraggler;
  checks.clear();
  CheckProgress(facts, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kOk);
  EXPECT_EQ(checks.at(1).status, CheckStatus::kWarning);
  facts.verdict->verdict.culprit_ranks = {0, 1};
  checks.clear();
  CheckProgress(facts, &checks);
  EXPECT_EQ(checks.at(1).status, CheckStatus::kOk) << "each in turn";
}

TEST(DoctorJobTest, ARankThatHasMovedBetweenTwoLooksIsNotStuckButItsWrongCallsStayWrong) {
  const jobs::StatusView view = ViewOf(2);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.verdict = hang::Diagnosis();
  facts.verdict->verdict.kind = hang::VerdictKind::kStuckOutsideCollective;
  facts.verdict->verdict.culprit_ranks = {1};
  facts.moved_ranks = {0, 1};
  std::vector<Check> checks;
  CheckProgress(facts, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kOk);
  facts.moved_ranks = {0};
  checks.clear();
  CheckProgress(facts, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kProblem);
  facts.moved_ranks = {0, 1};
  facts.verdict->verdict.kind = hang::VerdictKind::kSizeMismatch;
  checks.clear();
  CheckProgress(facts, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kProblem);
}

TEST(DoctorJobTest, ARankMovesWhereItIssuesMoreInAGroup) {
  const auto seen = [](int64_t rank0, int64_t rank1) {
    hang::Diagnosis diagnosis;
    hang::GroupState& group = diagnosis.groups.emplace_back();
    group.name = "0";
    group.ranks.resize(2);
    group.ranks[0].rank = 0;
    group.ranks[0].last_enqueued = rank0;
    group.ranks[1].rank = 1;
    group.ranks[1].last_enqueued = rank1;
    return diagnosis;
  };
  EXPECT_THAT(MovedRanks(seen(4, 4), seen(5, 4)), ElementsAre(0));
  EXPECT_THAT(MovedRanks(seen(4, 4), hang::Diagnosis()), IsEmpty());
}

RankLoad LoadOf(int32_t rank, uint64_t resident_bytes, double busy_cores) {
  return {.rank = rank, .host = "n0", .resident_bytes = resident_bytes, .busy_cores = busy_cores};
}

TEST(DoctorBalanceTest, RanksThatUseAboutTheSameAreBalanced) {
  const jobs::StatusView view = ViewOf(2);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.loads = {LoadOf(0, 5'000'000'000, 1.8), LoadOf(1, 4'000'000'000, 1.0)};
  std::vector<Check> checks;
  CheckBalance(facts, &checks);
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].status, CheckStatus::kOk);
  EXPECT_THAT(checks[0].figures, SizeIs(6));
}

TEST(DoctorBalanceTest, ARankFarAboveTheMedianIsNamedForWhatItUses) {
  const jobs::StatusView view = ViewOf(2);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.loads = {LoadOf(0, 4'000'000'000, 1), LoadOf(1, 4'100'000'000, 1), LoadOf(2, 9'000'000'000, 4)};
  std::vector<Check> checks;
  CheckBalance(facts, &checks);
  ASSERT_THAT(checks, SizeIs(2));
  for (const Check& check : checks) {
    EXPECT_EQ(check.status, CheckStatus::kWarning);
    EXPECT_THAT(check.ranks, ElementsAre(2));
  }
  EXPECT_EQ(checks[0].subject, "memory");
  EXPECT_EQ(checks[1].subject, "processor");
}

TEST(DoctorBalanceTest, OneRankOrNoneIsNotMeasured) {
  const jobs::StatusView view = ViewOf(2);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.no_verdict = "no daemon answers";
  std::vector<Check> checks;
  CheckBalance(facts, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kSkipped);
  EXPECT_THAT(checks.at(0).finding, HasSubstr("no daemon answers"));
  facts.loads = {LoadOf(0, 1, 1)};
  checks.clear();
  CheckBalance(facts, &checks);
  EXPECT_EQ(checks.at(0).status, CheckStatus::kSkipped);
}

NodeDevices NodeWith(std::string host, std::vector<std::pair<std::string, std::string>> facts,
                     std::string model = "A") {
  return {std::move(host), {{.kind = "gpu", .name = "0 " + model, .state = "ok", .facts = std::move(facts)}}};
}

TEST(DoctorGpuTest, WithoutAGpuTheLineIsSkippedAndWithOneOnSomeNodesOnlyTheOthersAreNamed) {
  const jobs::StatusView view = ViewOf(2);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.devices = {{"n0", {}}, {"n1", {}}};
  std::vector<Check> checks;
  CheckGpus(facts, &checks);
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].status, CheckStatus::kSkipped);
  EXPECT_THAT(checks[0].finding, HasSubstr("n0, n1"));
  facts.devices[0] = NodeWith("n0", {{"memory.used", "5 MiB"}});
  checks.clear();
  CheckGpus(facts, &checks);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].status, CheckStatus::kOk);
  EXPECT_EQ(checks[1].status, CheckStatus::kWarning);
  EXPECT_THAT(checks[1].hosts, ElementsAre("n1"));
}

TEST(DoctorGpuTest, AGpuThatHoldsFarMoreThanTheOthersAndAnotherModelStandOut) {
  const jobs::StatusView view = ViewOf(3);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.devices = {NodeWith("n0", {{"memory.used", "20000 MiB"}}), NodeWith("n1", {{"memory.used", "21000 MiB"}}, "B"),
                   NodeWith("n2", {{"memory.used", "70000 MiB"}, {"clocks_throttle_reasons.active", "0x4"}})};
  std::vector<Check> checks;
  CheckGpus(facts, &checks);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_THAT(checks[0].hosts, ElementsAre("n2"));
  EXPECT_THAT(checks[0].finding, HasSubstr("68.4 GiB"));
  EXPECT_THAT(checks[1].finding, HasSubstr("different models"));
}

TEST(DoctorGpuTest, FactsThatAreNotNumbersAreNone) {
  const jobs::StatusView view = ViewOf(1);
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  facts.devices = {NodeWith("n0", {{"temperature.gpu", "hot"},
                                   {"memory.used", "99999999999999999999999 MiB"},
                                   {"clocks_throttle_reasons.active", "0xzz"},
                                   {"pcie.link.width.current", ""}})};
  std::vector<Check> checks;
  CheckGpus(facts, &checks);
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].status, CheckStatus::kOk);
}

TEST(DoctorBalanceTest, LoadsAreSharesOfTheTimeLookedAt) {
  jobs::CollectedJob job;
  evidence::InspectedProcess& process = job.processes.emplace_back();
  process.rank = 3;
  process.state = evidence::ProcessState();
  process.state->window_ns = 2'000'000'000;
  process.state->cpu_ns = 1'000'000'000;
  job.processes.emplace_back();  // No rank, no state.
  const std::vector<RankLoad> loads = LoadsOf(job);
  ASSERT_THAT(loads, SizeIs(1));
  EXPECT_EQ(loads[0].busy_cores, 0.5);
  EXPECT_EQ(loads[0].resident_bytes, std::nullopt);
}

}  // namespace
}  // namespace lockstep::doctor
