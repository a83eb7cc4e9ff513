// Verdicts on every set of the shared flight-recorder data, against its truth.json or ground_truth.txt, and on the
// shared cases, against what their README says is right.

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "analysis/hang/diagnosis.h"
#include "base/testing/checkout.h"
#include "ingest/evidence/evidence_files.h"

namespace lockstep::hang {
namespace {

using ::testing::ElementsAreArray;

struct Sample {
  std::string folder;           ///< In the shared flight records, or "cases/...".
  std::set<VerdictKind> kinds;  ///< Any of them: a truth file may be coarser than our kinds.
  std::vector<int32_t> culprits;
};

const std::set<VerdictKind> kControlFlow = {VerdictKind::kSkippedCollective, VerdictKind::kExtraCollective,
                                            VerdictKind::kWrongOrder, VerdictKind::kOperationMismatch};

const std::vector<Sample> kSamples = {
    {"nvrx_megatron_16rank/gpu_error_1st", {VerdictKind::kDeviceStalled}, {12, 14}},
    {"nvrx_megatron_16rank/lock_gil_2nd", {VerdictKind::kStuckOutsideCollective}, {10, 15}},
    {"gloo_torch_2_14/basic_healthy", {VerdictKind::kHealthy}, {}},
    {"gloo_torch_2_14/basic_hook", {VerdictKind::kStuckOutsideCollective, VerdictKind::kSkippedCollective}, {1}},
    {"gloo_torch_2_14/basic_ring", {VerdictKind::kStuckOutsideCollective, VerdictKind::kSkippedCollective}, {3}},
    {"gloo_torch_2_14/basic_subgroups", {VerdictKind::kStuckOutsideCollective}, {3}},
    {"gloo_torch_2_14/crash_4", {VerdictKind::kCrash}, {1}},
    {"gloo_torch_2_14/healthy_4", {VerdictKind::kHealthy}, {}},
    {"gloo_torch_2_14/p2p_hook_4", {VerdictKind::kUnmatchedP2p}, {2}},
    {"gloo_torch_2_14/rank0_in_checkpoint_4", {VerdictKind::kStuckOutsideCollective}, {0}},
    {"gloo_torch_2_14/skipped_collective_4", {VerdictKind::kSkippedCollective}, {2}},
    {"gloo_torch_2_14/slow_rank_4", {VerdictKind::kStraggler}, {2}},
    {"gloo_torch_2_14/stuck_loader_4", {VerdictKind::kStuckOutsideCollective}, {3}},
    {"gloo_torch_2_14/wrong_order_4", kControlFlow, {1}},
    {"gloo_torch_2_14/wrong_shape_4", {VerdictKind::kSizeMismatch}, {1}},
    {"cases/hang_detail_mismatch_logs", {VerdictKind::kOperationMismatch}, {2}},
    {"cases/hang_device_stalled_8ranks", {VerdictKind::kDeviceStalled}, {5}},
    {"cases/hang_dumps_and_torchrun_abort", {VerdictKind::kStuckOutsideCollective}, {0}},
    {"cases/hang_dump_names_with_host", {VerdictKind::kStuckOutsideCollective}, {5}},
    {"cases/hang_extra_collective_8ranks", {VerdictKind::kExtraCollective}, {3}},
    {"cases/hang_one_json_all_ranks", {VerdictKind::kStuckOutsideCollective}, {2}},
    {"cases/hang_pickle_protocol_4", {VerdictKind::kStuckOutsideCollective}, {2}},
    {"cases/hang_pytorch_names_the_rank", {VerdictKind::kStuckOutsideCollective}, {2}},
    {"cases/hang_skip_and_missing_dump_4ranks", {VerdictKind::kSkippedCollective}, {1}},
    {"cases/hang_watchdog_alone", {VerdictKind::kStuckOutsideCollective}, {0}},
};

std::filesystem::path FolderOf(const Sample& sample) {
  const bool is_case = sample.folder.starts_with("cases/");
  return (is_case ? SharedData().parent_path() : SharedData() / "flight_recorder") / sample.folder;
}

class SampleTest : public ::testing::TestWithParam<Sample> {
 protected:
  void SetUp() override {
    folder_ = FolderOf(GetParam());
    if (!std::filesystem::exists(folder_)) {
      GTEST_SKIP() << folder_ << " is not there";
    }
    Result<evidence::JobEvidence> job = ingest::ReadEvidence({folder_.string()});
    ASSERT_TRUE(job.has_value()) << job.error().message;
    job_ = std::move(*job);
  }
  std::filesystem::path folder_;
  evidence::JobEvidence job_;
};

void Print(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  printf("%s %.2f: %s\n", VerdictKindName(verdict.kind), verdict.confidence, verdict.explanation.c_str());
  for (const CodeSite& site : verdict.sites) {
    printf("  %s rank %d.. (%zu) %s %s:%d %s\n", site.role.c_str(), site.ranks.front(), site.ranks.size(),
           site.what.c_str(), site.file.c_str(), site.line, site.function.c_str());
  }
  for (const Verdict& other : diagnosis.context) {
    printf("  also %s %.2f: %s\n", VerdictKindName(other.kind), other.confidence, other.explanation.c_str());
  }
  for (const EvidenceItem& item : diagnosis.evidence) {
    printf("  %s %s: %s\n", item.contradicts ? "AGAINST" : "for", item.source.c_str(), item.fact.c_str());
  }
  for (const evidence::MissingEvidence& missing : diagnosis.missing) {
    printf("  missing %s of %d: %s; %s\n", missing.what.c_str(), missing.rank.value_or(-1), missing.reason.c_str(),
           missing.remedy.c_str());
  }
}

TEST_P(SampleTest, GivesTheKindAndCulpritsOfItsTruthFile) {
  const Diagnosis diagnosis = Diagnose(job_);
  Print(diagnosis);
  EXPECT_TRUE(GetParam().kinds.contains(diagnosis.verdict.kind)) << VerdictKindName(diagnosis.verdict.kind);
  EXPECT_THAT(diagnosis.verdict.culprit_ranks, ElementsAreArray(GetParam().culprits));
  EXPECT_GE(diagnosis.verdict.confidence, 0.5);
}

TEST_P(SampleTest, IsTheSameHoweverManyThreadsRead) {
  const Diagnosis one = Diagnose(job_, {.thread_count = 1});
  const Diagnosis four = Diagnose(job_, {.thread_count = 4});
  EXPECT_EQ(one.verdict.explanation, four.verdict.explanation);
  EXPECT_EQ(one.evidence.size(), four.evidence.size());
}

INSTANTIATE_TEST_SUITE_P(All, SampleTest, ::testing::ValuesIn(kSamples), [](const auto& of) {
  std::string name = of.param.folder;
  for (char& letter : name) {
    letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  }
  return name;
});

TEST(PipelineWithoutStacks, IsUndecidableAndAsksForThem) {
  const std::filesystem::path folder = SharedData() / "flight_recorder" / "gloo_torch_2_14" / "p2p_hook_4";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << folder << " is not there";
  }
  Result<evidence::JobEvidence> job = ingest::ReadEvidence({folder.string()});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  for (evidence::RankEvidence& rank : job->ranks) {
    rank.stacks.clear();
  }
  const Diagnosis diagnosis = Diagnose(*job);
  Print(diagnosis);
  EXPECT_EQ(diagnosis.verdict.kind, VerdictKind::kUndecidable);
  EXPECT_TRUE(diagnosis.verdict.culprit_ranks.empty());
  ASSERT_FALSE(diagnosis.missing.empty());
  EXPECT_EQ(diagnosis.missing.front().what, "python_stacks");
  EXPECT_EQ(diagnosis.missing.front().rank, 0);
}

}  // namespace
}  // namespace lockstep::hang
