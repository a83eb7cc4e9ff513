// Generated jobs with a known cause on a known rank: the first cause and its rank come out; balanced jobs blame nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyze.h"
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
  const std::vector<RootCauseRow>& causes() const { return result.wait_states.causes; }
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

TEST(PlantedCausesTest, BalancedJobsBlameNobody) {
  for (uint64_t seed = 300; seed < 310; ++seed) {
    const Answer answer = Analyse(seed % 2 == 0 ? SmallJob(seed) : ThreeKindsOfGroups(seed));
    EXPECT_TRUE(answer.causes().empty()) << seed << ": " << Describe(answer);
  }
}

}  // namespace
}  // namespace lockstep
