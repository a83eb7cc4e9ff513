// Generated jobs with a known cause on a known rank: the first cause and its rank come out; balanced jobs blame nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/collectives.h"
#include "analysis/rank_context.h"
#include "analysis/wait_states/wait_states.h"
#include "generator/generate.h"
#include "ingest/job/ingest_run.h"

namespace lockstep {
namespace {

using analysis::RootCause;
using analysis::RootCauseRow;
using analysis::WaitPattern;
using tracegen::PlantedStraggler;
using tracegen::SlowBy;
using tracegen::TraceSpec;

struct Answer {
  model::Run run;
  analysis::AnalysisResult result;
  const std::vector<RootCauseRow>& causes() const { return result.Get<analysis::WaitStates>().causes; }
};

/// Generates, reads and analyses a job; its files are gone afterwards.
Answer Analyse(TraceSpec spec) {
  static int count = 0;
  const auto folder = std::filesystem::temp_directory_path() /
                      ("lockstep-causes-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
  spec.folder = folder.string();
  tracegen::Generate(spec);
  ingest::IngestOptions ingest_options;
  ingest_options.thread_count = 1;
  Result<model::Run> run = ingest::IngestRun({spec.folder}, ingest_options);
  if (std::getenv("LOCKSTEP_KEEP_JOBS") == nullptr) {
    std::filesystem::remove_all(folder);
    std::filesystem::remove(spec.folder + ".truth.json");
  }
  if (!run) throw std::runtime_error(run.error().ToString());
  Answer answer{std::move(*run), {}};
  analysis::AnalysisOptions options;
  options.thread_count = 1;
  Result<analysis::AnalysisResult> result = analysis::Analyze(&answer.run, options, {});
  if (!result) throw std::runtime_error(result.error().ToString());
  answer.result = std::move(*result);
  return answer;
}

RootCause CauseOf(SlowBy by) {
  switch (by) {
    case SlowBy::kKernel: return RootCause::kKernel;
    case SlowBy::kLoader: return RootCause::kDataLoading;
    case SlowBy::kHost: return RootCause::kHost;  // inside "DistributedDataParallel.forward"
    case SlowBy::kUnrecorded: return RootCause::kNothingRecorded;
    case SlowBy::kOperator: return RootCause::kHost;
    case SlowBy::kCollector: return RootCause::kGarbageCollection;
    case SlowBy::kAllocator: return RootCause::kAllocator;
    case SlowBy::kCheckpoint: return RootCause::kCheckpoint;
    case SlowBy::kLaunch: return RootCause::kLaunchDelay;
    case SlowBy::kCopy: return RootCause::kCopy;
    case SlowBy::kLink: return RootCause::kSlowLink;
  }
  return RootCause::kHost;
}

std::string Describe(const Answer& answer) {
  std::string text;
  for (const RootCauseRow& row : answer.causes()) {
    text += std::string(RootCauseName(row.cause)) + " of rank";
    for (const size_t r : row.rank_indices) text += " " + std::to_string(answer.run.ranks[r].rank.value);
    text += " '" + row.name.substr(0, 40) + "' " + std::to_string(row.direct_wait_ns / 1000) + "+" +
            std::to_string(row.propagated_wait_ns / 1000) + " us, delay " + std::to_string(row.delay_ns / 1000) +
            " us, " + WaitPatternName(row.pattern) + " in " + std::to_string(row.steps.size()) + " of " +
            std::to_string(row.step_count) + " steps; ";
  }
  return text.empty() ? "nobody is blamed" : text;
}

/// Is what was planted among the first `among` causes, with its rank?
bool IsFound(const Answer& answer, const PlantedStraggler& planted, size_t among) {
  for (size_t i = 0; i < answer.causes().size() && i < among; ++i) {
    const RootCauseRow& row = answer.causes()[i];
    if (row.cause != CauseOf(planted.by)) continue;
    if (row.rank_index && answer.run.ranks[*row.rank_index].rank.value == planted.rank) return true;
  }
  return false;
}

TraceSpec SmallJob(uint64_t seed) {
  TraceSpec spec;
  spec.rank_count = 8;
  spec.step_count = 6;
  spec.layer_count = 4;
  spec.bucket_layers = 2;
  spec.seed = seed;
  return spec;
}

/// Two replicas of two stages of two tensor-parallel ranks.
TraceSpec ThreeKindsOfGroups(uint64_t seed) {
  TraceSpec spec = SmallJob(seed);
  spec.tensor_parallel = 2;
  spec.pipeline_parallel = 2;
  spec.gradient_norm = true;
  return spec;
}

constexpr SlowBy kEveryCause[] = {SlowBy::kKernel,    SlowBy::kLoader,    SlowBy::kHost,       SlowBy::kOperator,
                                  SlowBy::kCollector, SlowBy::kAllocator, SlowBy::kCheckpoint, SlowBy::kLaunch,
                                  SlowBy::kCopy,      SlowBy::kUnrecorded};

TEST(PlantedCausesTest, EveryCauseIsFoundInADataParallelJob) {
  uint64_t seed = 100;
  for (const SlowBy by : kEveryCause) {
    TraceSpec spec = SmallJob(++seed);
    spec.stragglers.push_back({static_cast<int32_t>(seed % 8), 12'000'000, by, {}, 0});
    const Answer answer = Analyse(spec);
    EXPECT_TRUE(IsFound(answer, spec.stragglers[0], 1)) << RootCauseName(CauseOf(by)) << ": " << Describe(answer);
  }
}

TEST(PlantedCausesTest, EveryCauseIsFoundBehindThreeKindsOfGroups) {
  uint64_t seed = 200;
  for (const SlowBy by : kEveryCause) {
    TraceSpec spec = ThreeKindsOfGroups(++seed);
    spec.stragglers.push_back({static_cast<int32_t>(seed % 8), 12'000'000, by, {}, 0});
    const Answer answer = Analyse(spec);
    EXPECT_TRUE(IsFound(answer, spec.stragglers[0], 1)) << RootCauseName(CauseOf(by)) << ": " << Describe(answer);
  }
}

/// How many of the jobs' planted causes come out, first where one is planted, among the first two where two are.
struct Score {
  int right = 0;
  int all = 0;
  void Add(const Answer& answer, const TraceSpec& spec) {
    for (const PlantedStraggler& planted : spec.stragglers) {
      ++all;
      const bool found = IsFound(answer, planted, spec.stragglers.size());
      right += found ? 1 : 0;
      if (!found) {
        printf("missed: %s of rank %d (seed %lu, %d ranks): %s\n", RootCauseName(CauseOf(planted.by)), planted.rank,
               static_cast<unsigned long>(spec.seed), spec.rank_count, Describe(answer).c_str());
      }
    }
  }
};

TEST(PlantedCausesTest, ADelayIsFollowedThroughThreeGroups) {
  TraceSpec spec = ThreeKindsOfGroups(1);
  spec.stragglers.push_back({1, 12'000'000, SlowBy::kLoader, {}, 0});
  const Answer answer = Analyse(spec);
  ASSERT_TRUE(IsFound(answer, spec.stragglers[0], 1)) << Describe(answer);
  // Rank 6 of the other replica waits for rank 2 at the gradients, which waited for a message of rank 0, which waited
  // at the tensor-parallel group for rank 1.
  std::set<std::string> groups;
  size_t longest = 0;
  for (const analysis::WaitChain& chain : answer.causes()[0].chains) {
    longest = std::max(longest, chain.hops.size());
    EXPECT_EQ(answer.run.ranks[chain.hops.back().late_rank_index].rank.value, 1);
    for (const analysis::WaitHop& hop : chain.hops) {
      const std::string& group = answer.result.Get<analysis::Collectives>().instances[hop.instance].group;
      groups.insert(group.substr(group.find('(')));
    }
  }
  EXPECT_GE(longest, 3u);
  EXPECT_GE(groups.size(), 3u) << ::testing::PrintToString(groups);
  EXPECT_GT(answer.causes()[0].propagated_wait_ns, 0);
}

TEST(PlantedCausesTest, TwoCausesAtATimeAreBothFound) {
  TraceSpec spec = SmallJob(2);
  spec.stragglers.push_back({3, 12'000'000, SlowBy::kLoader, {}, 0});
  spec.stragglers.push_back({5, 15'000'000, SlowBy::kKernel, {}, 0});
  TraceSpec same_rank = SmallJob(3);
  same_rank.stragglers.push_back({3, 12'000'000, SlowBy::kCollector, 1, 0});
  same_rank.stragglers.push_back({3, 9'000'000, SlowBy::kKernel, {}, 0});
  Score score;
  score.Add(Analyse(spec), spec);
  score.Add(Analyse(same_rank), same_rank);
  EXPECT_EQ(score.right, score.all);
}

TEST(PlantedCausesTest, ChronicPeriodicAndOneOffAreToldApart) {
  for (const WaitPattern pattern : {WaitPattern::kChronic, WaitPattern::kPeriodic, WaitPattern::kOneOff}) {
    TraceSpec spec = SmallJob(4);
    spec.step_count = 12;
    PlantedStraggler planted{2, 12'000'000, SlowBy::kCheckpoint, {}, 0};
    if (pattern == WaitPattern::kPeriodic) planted.step = 1, planted.every = 4;
    if (pattern == WaitPattern::kOneOff) planted.step = 5;
    spec.stragglers.push_back(planted);
    const Answer answer = Analyse(spec);
    ASSERT_TRUE(IsFound(answer, planted, 1)) << WaitPatternName(pattern) << ": " << Describe(answer);
    const RootCauseRow& row = answer.causes()[0];
    EXPECT_EQ(row.pattern, pattern) << Describe(answer);
    if (pattern == WaitPattern::kPeriodic) {
      EXPECT_EQ(row.period_steps, 4);
      EXPECT_THAT(row.steps, ::testing::ElementsAre(11, 15, 19));
    }
    if (pattern == WaitPattern::kOneOff) {
      EXPECT_THAT(row.steps, ::testing::ElementsAre(15));
    }
  }
}

TEST(PlantedCausesTest, ASlowLinkIsToldFromALateRank) {
  TraceSpec spec = ThreeKindsOfGroups(5);
  spec.stragglers.push_back({6, 1'500'000, SlowBy::kLink, {}, 0});
  const Answer answer = Analyse(spec);
  EXPECT_TRUE(IsFound(answer, spec.stragglers[0], 1)) << Describe(answer);
}

TEST(PlantedCausesTest, WithoutACommonClockAGroupsOwnDurationsTell) {
  TraceSpec spec = ThreeKindsOfGroups(6);
  spec.gradient_norm = false;  // nothing but messages joins the stages
  spec.stragglers.push_back({3, 12'000'000, SlowBy::kLoader, {}, 0});
  const Answer answer = Analyse(spec);
  EXPECT_TRUE(IsFound(answer, spec.stragglers[0], 1)) << Describe(answer);
}

/// A job of any shape, of 8 to 256 ranks.
TraceSpec AnyJob(std::mt19937_64* random) {
  TraceSpec spec;
  spec.seed = (*random)();
  const auto one_of = [&](std::vector<int32_t> values) { return values[(*random)() % values.size()]; };
  spec.rank_count = one_of({8, 16, 32, 64, 128, 256});
  spec.step_count = 8;
  spec.layer_count = 2 * one_of({1, 2});
  spec.bucket_layers = one_of({1, 2});
  spec.tensor_parallel = one_of({1, 2, 4});
  spec.pipeline_parallel = one_of({1, 2});
  spec.gradient_norm = true;
  spec.sharded = spec.pipeline_parallel == 1 && (*random)() % 4 == 0;
  spec.overlap_ratio = (*random)() % 2 == 0 ? 1.0 : 0.0;
  for (int32_t rank = 0; rank < spec.rank_count; ++rank) {
    spec.offset_ns.push_back(rank / spec.ranks_per_host * 1'700'000);  // hosts' clocks differ
  }
  return spec;
}

PlantedStraggler AnyCause(const TraceSpec& spec, std::mt19937_64* random) {
  PlantedStraggler planted;
  planted.rank = static_cast<int32_t>((*random)() % static_cast<uint64_t>(spec.rank_count));
  planted.by = kEveryCause[(*random)() % std::size(kEveryCause)];
  planted.delay_ns = 6'000'000 + static_cast<int64_t>((*random)() % 12'000'000);
  switch ((*random)() % 3) {
    case 1: planted.step = static_cast<int32_t>((*random)() % 8); break;
    case 2: planted.step = static_cast<int32_t>((*random)() % 2), planted.every = 3; break;
    default: break;
  }
  return planted;
}

/// A sweep runs all of its jobs, or those whose seeds LOCKSTEP_SEEDS names, as it printed them.
bool IsChosen(const TraceSpec& spec) {
  const char* seeds = std::getenv("LOCKSTEP_SEEDS");
  return seeds == nullptr || std::string(seeds).find(std::to_string(spec.seed)) != std::string::npos;
}

TEST(PlantedCausesTest, SweepFindsNineteenOfTwenty) {
  std::mt19937_64 random(7);
  Score one;
  Score two;
  for (int trial = 0; trial < 150; ++trial) {
    TraceSpec spec = AnyJob(&random);
    spec.stragglers.push_back(AnyCause(spec, &random));
    if (trial % 3 == 2) {
      spec.stragglers.push_back(AnyCause(spec, &random));
      if (spec.stragglers[1].rank == spec.stragglers[0].rank) spec.stragglers.pop_back();
    }
    if (!IsChosen(spec)) continue;
    (spec.stragglers.size() == 1 ? one : two).Add(Analyse(spec), spec);
    printf("after %d jobs: one planted %d of %d; two at a time %d of %d\n", trial + 1, one.right, one.all, two.right,
           two.all);
    fflush(stdout);
  }
  EXPECT_GE(100 * one.right, 95 * one.all);
  EXPECT_GE(100 * two.right, 95 * two.all);
}

TEST(PlantedCausesTest, SweepOf200BalancedJobsBlamesNobody) {
  std::mt19937_64 random(11);
  int blamed = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const TraceSpec spec = AnyJob(&random);
    if (!IsChosen(spec)) continue;
    const Answer answer = Analyse(spec);
    if (trial % 10 == 9) {
      printf("balanced jobs with blame: %d before job %d\n", blamed, trial + 1);
      fflush(stdout);
    }
    if (answer.causes().empty()) continue;
    ++blamed;
    printf("blamed (seed %lu, %d ranks): %s\n", static_cast<unsigned long>(spec.seed), spec.rank_count,
           Describe(answer).c_str());
  }
  printf("balanced jobs with blame: %d of 200\n", blamed);
  EXPECT_EQ(blamed, 0);
}

TEST(PlantedCausesTest, BalancedJobsBlameNobody) {
  for (uint64_t seed = 300; seed < 320; ++seed) {
    const Answer answer = Analyse(seed % 2 == 0 ? SmallJob(seed) : ThreeKindsOfGroups(seed));
    EXPECT_TRUE(answer.causes().empty()) << seed << ": " << Describe(answer);
  }
}

}  // namespace
}  // namespace lockstep
