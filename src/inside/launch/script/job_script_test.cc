#include "inside/launch/script/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/testing/checkout.h"
#include "inside/launch/script/script_parts.h"
#include "inside/launch/shell_words.h"

namespace lockstep::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobRequest Job(ScriptKind kind) {
  return {.kind = kind,
          .name = "train",
          .nodes = 4,
          .gpus_per_node = 2,
          .ranks_per_node = 2,
          .cpus_per_rank = 1,
          .time_s = 300,
          .image = kind == ScriptKind::kKubernetes ? "image:1" : "",
          .claim = kind == ScriptKind::kKubernetes ? "claim" : "",
          .lockstep = "/opt/lockstep",
          .tool = "nsys",
          .ranks = *RankFilter::Parse("per-node:1"),
          .run_words = {"run", "--profile=nsys", "--ranks=per-node:1"},
          .command = {"python", "train.py", "it's"}};
}

std::string Write(const JobRequest& request) { return WriteJobScript(request).value_or("refused"); }

// qstat -f of a real PBS job of this shape: Resource_List.select and .place.
TEST(JobScriptTest, PbsAsksForWhatARecordedJobHad) {
  const std::filesystem::path root = SharedData();
  std::ifstream file(root / "schedulers/pbs/qstat-f.txt");
  if (!file)
    GTEST_SKIP() << "the recorded schedulers of the shared data are not there: LOCKSTEP_DATA names their folder";
  std::ostringstream recorded;
  recorded << file.rdbuf();
  const std::string script = Write(Job(ScriptKind::kPbs));
  const auto check = [&](const std::string& name, const std::string& directive) {
    const std::string text = recorded.str();
    const size_t at = text.find("Resource_List." + name + " = ");
    ASSERT_NE(at, std::string::npos) << name;
    const size_t value = text.find("= ", at) + 2;
    EXPECT_THAT(script,
                HasSubstr("#PBS -l " + directive + "=" + text.substr(value, text.find('\n', value) - value) + "\n"));
  };
  // Recorded as 4:ncpus=2:mpiprocs=2:ngpus=2.
  check("select", "select");
  check("place", "place");
}

TEST(JobScriptTest, SlurmStartsOneTorchrunANodeOrAllRanks) {
  JobRequest job = Job(ScriptKind::kSlurm);
  EXPECT_THAT(Write(job), HasSubstr("#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=2\n#SBATCH "
                                    "--cpus-per-task=2\n#SBATCH --time=00:05:00\n"));
  EXPECT_THAT(Write(job), HasSubstr("#SBATCH --signal=INT@75\n"));
  EXPECT_THAT(Write(job), HasSubstr("--no-python \"$LOCKSTEP\" run --profile=nsys --ranks=per-node:1 --out \"$OUT\" -- "
                                    "\\\n  python train.py 'it'\\''s'\nstatus=$?"));
  EXPECT_THAT(Write(job), HasSubstr("# Ranks under nsys: 4 of 8: 0, 2, 4, 6."));
  job.starter = RankStarter::kDirect;
  EXPECT_THAT(Write(job),
              HasSubstr("#SBATCH --ntasks-per-node=2\n#SBATCH --gpus-per-node=2\n#SBATCH --cpus-per-task=1\n"));
  EXPECT_THAT(Write(job), HasSubstr("export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID"));
  job.tool = "";
  EXPECT_THAT(Write(job), Not(HasSubstr("--signal")));
}

TEST(JobScriptTest, EachMpiHasItsWords) {
  JobRequest job = Job(ScriptKind::kPbs);
  job.starter = RankStarter::kDirect;
  EXPECT_THAT(Write(job), HasSubstr("mpiexec -n 8 --ppn 2 --hostfile \"$PBS_NODEFILE\""));
  EXPECT_THAT(Write(job), HasSubstr("RANK=$PALS_RANKID"));
  job.mpi = MpiFlavour::kMpich;
  EXPECT_THAT(Write(job), HasSubstr("mpiexec -n 8 -ppn 2 -f \"$PBS_NODEFILE\""));
  job.mpi = MpiFlavour::kOpenMpi;
  job.environment = {"NCCL_DEBUG=INFO"};
  EXPECT_THAT(Write(job), HasSubstr("mpirun -np 8 --hostfile \"$PBS_NODEFILE\" --map-by ppr:2:node"));
  EXPECT_THAT(Write(job), HasSubstr("-x TMPDIR -x NCCL_DEBUG "));
}

TEST(JobScriptTest, WhatAKindCannotHaveIsRefused) {
  const auto refused = [](ScriptKind kind, auto change) {
    JobRequest job = Job(kind);
    change(job);
    const auto script = WriteJobScript(job);
    return !script && script.error().code == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(ScriptKind::kSlurm, [](JobRequest& job) { job.filesystems = "home"; }));
  EXPECT_TRUE(refused(ScriptKind::kSlurm, [](JobRequest& job) { job.name = "a b"; }));
  EXPECT_TRUE(refused(ScriptKind::kSlurm, [](JobRequest& job) { job.queue = "x\n#SBATCH --wrap=rm"; }));
  EXPECT_TRUE(refused(ScriptKind::kSlurm, [](JobRequest& job) { job.environment = {"A B=c"}; }));
  EXPECT_TRUE(refused(ScriptKind::kSlurm, [](JobRequest& job) { job.image = "x"; }));
  EXPECT_TRUE(refused(ScriptKind::kMpi, [](JobRequest& job) { job.queue = "x"; }));
  EXPECT_TRUE(refused(ScriptKind::kMpi, [](JobRequest& job) { job.constraint = "x"; }));
  EXPECT_TRUE(refused(ScriptKind::kKubernetes, [](JobRequest& job) { job.image = ""; }));
  EXPECT_TRUE(refused(ScriptKind::kKubernetes, [](JobRequest& job) { job.claim = ""; }));
  EXPECT_TRUE(refused(ScriptKind::kKubernetes, [](JobRequest& job) { job.name = "Train"; }));
  EXPECT_TRUE(refused(ScriptKind::kKubernetes, [](JobRequest& job) { job.modules = {"cuda"}; }));
  EXPECT_TRUE(refused(ScriptKind::kKubernetes, [](JobRequest& job) { job.starter = RankStarter::kDirect; }));
}

TEST(JobScriptTest, TimesAndWarnings) {
  EXPECT_EQ(ClockTime(90 * 60 + 5), "01:30:05");
  EXPECT_EQ(ClockTime(100 * 3600), "100:00:00");
  JobRequest job = Job(ScriptKind::kSlurm);
  EXPECT_EQ(WarningSeconds(job), 75);
  job.time_s = 36'000;
  EXPECT_EQ(WarningSeconds(job), 120);
}

TEST(ShellWordsTest, WordsComeBackFromAShell) {
  EXPECT_EQ(ShellWord("a-b_c=1.2/x:y,z@%^+"), "a-b_c=1.2/x:y,z@%^+");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellLine({"a", "it's", "$HOME `x`"}), "a 'it'\\''s' '$HOME `x`'");
  EXPECT_EQ(ShellWord("~"), "'~'");
}

}  // namespace
}  // namespace lockstep::launch
