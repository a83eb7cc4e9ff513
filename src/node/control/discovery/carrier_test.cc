#include "node/control/discovery/carrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

const JobNodes kSlurmJob = {.kind = JobKind::kSlurm, .job_id = "16", .state = "RUNNING", .nodes = {}};
const JobNodes kNoJob = {};

std::vector<std::string> Command(const std::string& via, const JobNode& node, const JobNodes& job = kNoJob,
                                 const std::string& lockstep = "/opt/lockstep",
                                 const std::vector<std::string>& arguments = {}) {
  const auto carrier = ParseCarrier(via);
  EXPECT_TRUE(carrier) << carrier.error().ToString();
  const auto command = TunnelCommand(*carrier, node, job, lockstep, arguments);
  EXPECT_TRUE(command) << command.error().ToString();
  return command ? *command : std::vector<std::string>();
}

TEST(CarrierTest, SrunOverlapsTheJobOnOneNode) {
  const auto command = Command("srun", {.host = "n003"}, kSlurmJob);
  EXPECT_THAT(command, IsSupersetOf({"srun", "--jobid=16", "--overlap", "--nodelist=n003", "--nodes=1", "--ntasks=1"}));
  ASSERT_GE(command.size(), 2u);
  EXPECT_EQ(command[command.size() - 2], "/opt/lockstep");
  EXPECT_EQ(command.back(), "tunnel");
}

TEST(CarrierTest, SrunKeepsErrorsOutOfTheOutput) {
  // SLURM 22.05 puts standard error among the output where --output names a task.
  EXPECT_THAT(Command("srun", {.host = "n003"}, kSlurmJob), IsSupersetOf({"--output=all", "--error=all"}));
}

TEST(CarrierTest, SrunNamesThePartOfAHeterogeneousJob) {
  EXPECT_THAT(Command("srun", {.host = "n003", .het_group = 1}, kSlurmJob), ::testing::Contains("--het-group=1"));
}

TEST(CarrierTest, SrunNeedsASlurmJob) {
  const auto command = TunnelCommand(Carrier{.kind = CarrierKind::kSrun}, {.host = "n1"}, kNoJob, "/opt/lockstep");
  ASSERT_FALSE(command);
  EXPECT_EQ(command.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(command.error().message, HasSubstr("--job"));
}

TEST(CarrierTest, SshAsksNothingAndQuotesForTheShell) {
  const auto command = Command("ssh", {.host = "n1", .address = "10.0.0.1"}, kNoJob, "/opt/my tools/lockstep",
                               {"--socket", "/tmp/it's"});
  EXPECT_THAT(command,
              ElementsAre("ssh", "-T", "-x", "-oBatchMode=yes", "-oConnectTimeout=10", "-oLogLevel=ERROR", "--",
                          "10.0.0.1", "'/opt/my tools/lockstep'", "tunnel", "--socket", "'/tmp/it'\\''s'"));
}

TEST(CarrierTest, OwnCommandGetsTheHost) {
  EXPECT_THAT(Command("kubectl exec -i '{host}' --", {.host = "pod-0"}),
              ElementsAre("kubectl", "exec", "-i", "pod-0", "--", "/opt/lockstep", "tunnel"));
  EXPECT_THAT(Command("rsh -n", {.host = "n1"}), ElementsAre("rsh", "-n", "n1", "/opt/lockstep", "tunnel"));
  EXPECT_THAT(Command("a {host}.x-{host}", {.host = "{host}"}),
              ElementsAre("a", "{host}.x-{host}", "/opt/lockstep", "tunnel"));
}

TEST(CarrierTest, WordsAreSplitAsAShellDoes) {
  const auto carrier = ParseCarrier(R"(a 'b c' "d\"e" f\ g '')");
  ASSERT_TRUE(carrier);
  EXPECT_EQ(carrier->kind, CarrierKind::kCommand);
  EXPECT_THAT(carrier->command, ElementsAre("a", "b c", "d\"e", "f g", ""));
  for (const char* text : {"", "  ", "a 'b", "a \"b", "a\\"}) {
    EXPECT_FALSE(ParseCarrier(text)) << text;
  }
}

TEST(CarrierTest, HostThatLooksLikeAnOptionIsRefused) {
  for (const char* host : {"", "-oProxyCommand=x", "a b", "a,b", "a\nb"}) {
    for (const CarrierKind kind : {CarrierKind::kSrun, CarrierKind::kSsh, CarrierKind::kMpiexec}) {
      const auto command = TunnelCommand(Carrier{.kind = kind}, {.host = host}, kSlurmJob, "/opt/lockstep");
      ASSERT_FALSE(command) << host;
      EXPECT_EQ(command.error().code, ErrorCode::kInvalidArgument);
    }
  }
  EXPECT_FALSE(TunnelCommand(Carrier{}, {.host = "n1", .address = "-x"}, kNoJob, "/opt/lockstep"));
}

// A stand-in for an mpiexec that says which MPI it is of.
class SpeakingMpiexec {
 public:
  explicit SpeakingMpiexec(const std::string& words) {
    std::string pattern = std::filesystem::temp_directory_path() / "lockstep-carrier-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(program()) << "#!/bin/sh\necho '" << words << "'\n";
    ::chmod(program().c_str(), 0755);
  }
  ~SpeakingMpiexec() { std::filesystem::remove_all(folder_); }
  std::string program() const { return folder_ / "mpiexec"; }

 private:
  std::filesystem::path folder_;
};

TEST(CarrierTest, MpiexecIsSpokenToInItsOwnWords) {
  const SpeakingMpiexec open_mpi("mpiexec (OpenRTE) 4.1.4");
  EXPECT_THAT(Command(open_mpi.program(), {.host = "n1"}),
              ElementsAre(open_mpi.program(), "--host", "n1", "-np", "1", "--stdin", "0", "--quiet", "/opt/lockstep",
                          "tunnel"));
  const SpeakingMpiexec hydra("HYDRA build details:");
  EXPECT_THAT(Command(hydra.program(), {.host = "n1"}),
              ElementsAre(hydra.program(), "-hosts", "n1", "-n", "1", "/opt/lockstep", "tunnel"));
}

TEST(CarrierTest, MissingMpiexecIsNotFound) {
  const auto command = TunnelCommand(Carrier{.kind = CarrierKind::kMpiexec, .command = {"/nonexistent/mpiexec"}},
                                     {.host = "n1"}, kNoJob, "/opt/lockstep");
  ASSERT_FALSE(command);
  EXPECT_EQ(command.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lockstep::control
