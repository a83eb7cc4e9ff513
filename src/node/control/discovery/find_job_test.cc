#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "node/control/discovery/hosts.h"
#include "node/control/discovery/recorded_data.h"

namespace lockstep::control {
namespace {

using ::testing::HasSubstr;

// The schedulers' commands are not to be had in a unit test: stand-ins, named recorded_..., print what was recorded or
// what the test says. They are all that PATH leads to. (SLURM's real ones: tests/cluster.)
class FindJobTest : public ::testing::Test {
 protected:
  FindJobTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "lockstep-find-job-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    const char* path = std::getenv("PATH");
    path_ = path != nullptr ? path : "";
    ::setenv("PATH", folder_.c_str(), 1);
  }
  ~FindJobTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  // `script` is sh, with PATH of no use to it.
  void Install(const std::string& name, const std::string& script) {
    const std::filesystem::path file = folder_ / ("recorded_" + name);
    std::ofstream(file) << "#!/bin/sh\necho \"$@\" >>'" << (folder_ / "asked").string() << "'\n" << script << "\n";
    ::chmod(file.c_str(), 0755);
    std::filesystem::create_symlink(file, folder_ / name);
  }

  std::string Asked() const {
    std::ifstream file(folder_ / "asked");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::string FileWith(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return "'" + (folder_ / name).string() + "'";
  }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(FindJobTest, WithoutAnySchedulerSaysWhatWasLookedFor) {
  const auto job = FindJob("12");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(job.error().message, HasSubstr("squeue (SLURM), qstat (PBS), kubectl (Kubernetes)"));
  EXPECT_THAT(FindJob("pbs:12").error().message, HasSubstr("looked for qstat (PBS) in PATH"));
}

TEST_F(FindJobTest, AsksQstat) {
  const auto json = recorded::File("pbs/qstat-job.json");
  if (!json) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  Install("qstat", "/bin/cat " + FileWith("reply", *json));
  for (const char* id : {"11", "pbs:11.head"}) {
    const auto job = FindJob(id);
    ASSERT_TRUE(job) << job.error().ToString();
    EXPECT_EQ(job->kind, JobKind::kPbs);
    EXPECT_EQ(job->nodes.size(), 4u);
  }
  EXPECT_EQ(Asked(), "-f -F json 11\n-f -F json 11.head\n");
}

TEST_F(FindJobTest, QstatsRefusalsAreToldApart) {
  Install("qstat", "echo 'qstat: Unknown Job Id 99999.head' >&2; exit 153");
  EXPECT_EQ(FindJob("99999").error().code, ErrorCode::kNotFound);
}

TEST_F(FindJobTest, FinishedPbsJobHasEnded) {
  Install("qstat",
          "echo 'qstat: 15.head Job has finished, use -x or -H to obtain historical job information' >&2; exit 35");
  const auto job = FindJob("15.head");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(job.error().message, HasSubstr("has ended"));
}

TEST_F(FindJobTest, CommandThatFailsIsQuoted) {
  Install("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1");
  const auto job = FindJob("slurm:11");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kIo);
  EXPECT_THAT(job.error().message, HasSubstr("Unable to contact slurm controller"));
}

TEST_F(FindJobTest, TheSchedulerThatKnowsTheJobWins) {
  Install("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  const auto json = recorded::File("pbs/qstat-job.json");
  if (!json) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  Install("qstat", "/bin/cat " + FileWith("reply", *json));
  const auto job = FindJob("11");
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->kind, JobKind::kPbs);
  // And with none, each says why not.
  const auto unknown = FindJob("12");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("SLURM has no job 12"));
  EXPECT_THAT(unknown.error().message, HasSubstr("PBS has no job 12"));
}

TEST_F(FindJobTest, SchedulerThatCannotBeAskedIsNotHeardBesideOneThatAnswered) {
  Install("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  Install("kubectl", "echo 'E1122 log line' >&2; echo 'The connection to the server was refused' >&2; exit 1");
  const auto job = FindJob("12");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(job.error().message, ::testing::Not(HasSubstr("kubectl")));
  EXPECT_EQ(FindJob("k8s:12").error().message,
            "kubectl failed with status 1: The connection to the server was refused");
}

TEST_F(FindJobTest, SlurmsFiltersInTheEnvironmentDoNotHideTheJob) {
  Install("squeue", "[ -z \"$SQUEUE_STATES\" ] && [ \"$1\" != -s ] && echo '11|11|RUNNING|n[1-2]|None'; exit 0");
  ::setenv("SQUEUE_STATES", "PD", 1);
  const auto job = FindJob("11");
  ::unsetenv("SQUEUE_STATES");
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->nodes.size(), 2u);
}

TEST_F(FindJobTest, AsksKubectlUnderEachOperatorsLabel) {
  const auto json = recorded::File("kubernetes/constructed-pytorchjob-v1-pods.json");
  if (!json) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  Install("kubectl", "case \"$*\" in *jobset-name=*) /bin/cat " + FileWith("reply", *json) +
                         ";; *) echo '{\"kind\": \"List\", \"items\": []}';; esac");
  const auto job = FindJob("k8s:ml/llm-pretrain");
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->nodes.size(), 2u);
  EXPECT_THAT(Asked(), HasSubstr("get pods -o json --request-timeout=8s -n ml -l training.kubeflow.org/job-name="));
}

TEST_F(FindJobTest, UnknownPodsAreNotFound) {
  Install(
      "kubectl",
      "case \"$*\" in *' -l '*) echo '{\"kind\": \"List\", \"items\": []}';; *) echo 'Error from server (NotFound): "
      "pods \"x\" not found' >&2; exit 1;; esac");
  const auto job = FindJob("x");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(job.error().message, HasSubstr("no job and no pod \"x\" in the present namespace"));
}

TEST_F(FindJobTest, RefusesNoIdAndTheWrongScheduler) {
  EXPECT_EQ(FindJob("").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(FindJob("slurm:").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(FindJob("slurm:12", JobKind::kPbs).error().code, ErrorCode::kInvalidArgument);
  Install("squeue", "exit 0");
  EXPECT_EQ(FindJob("not-a-number").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::control
