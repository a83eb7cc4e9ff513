#include "programs/cli/node_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace lockstep::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class NodeFlagsTest : public testing::Test {
 protected:
  NodeFlagsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-flags-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ::unsetenv("LOCKSTEP_SOCKET");
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  ~NodeFlagsTest() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("LOCKSTEP_SOCKET");
    std::filesystem::remove_all(folder_);
  }

  static Result<jobs::Nodes> Find(std::vector<std::string> words) {
    CLI::App app;
    NodeFlags flags;
    flags.Declare(app);
    std::reverse(words.begin(), words.end());
    app.parse(words);
    return flags.Find();
  }
  static jobs::Nodes Found(std::vector<std::string> words) {
    Result<jobs::Nodes> nodes = Find(std::move(words));
    EXPECT_TRUE(nodes) << nodes.error().message;
    return nodes ? *nodes : jobs::Nodes{};
  }
  static ErrorCode CodeOf(std::vector<std::string> words) {
    const Result<jobs::Nodes> nodes = Find(std::move(words));
    EXPECT_FALSE(nodes);
    return nodes ? ErrorCode::kIo : nodes.error().code;
  }

  std::filesystem::path folder_;
};

TEST_F(NodeFlagsTest, HostsMayBeListedAndHavePorts) {
  const jobs::Nodes nodes = Found({"--host", "n[1-2],login:9000,10.0.0.7"});
  ASSERT_EQ(nodes.endpoints.size(), 4U);
  EXPECT_EQ(nodes.endpoints[0].host, "n1");
  EXPECT_EQ(nodes.endpoints[1].address, "n2");
  EXPECT_EQ(nodes.endpoints[1].port, control::kDefaultPort);
  EXPECT_EQ(nodes.endpoints[2].address, "login");
  EXPECT_EQ(nodes.endpoints[2].port, 9000);
  EXPECT_EQ(nodes.endpoints[3].address, "10.0.0.7");
  EXPECT_FALSE(nodes.is_local);
  EXPECT_FALSE(nodes.is_whole_job);
  EXPECT_EQ(Found({"--host", "::1", "--port", "7"}).endpoints.at(0).address, "::1");
  EXPECT_EQ(Found({"--hosts", "n[1-2]"}).endpoints.size(), 2U);
  for (const char* bad : {"n1:", "n1:0", "n1:x", ":80", "n1:70000", ","}) {
    EXPECT_EQ(CodeOf({"--host", bad}), ErrorCode::kInvalidArgument) << bad;
  }
}

TEST_F(NodeFlagsTest, AHostfileNamesNodesAndTheJobOnlyItsProcesses) {
  const std::string path = (folder_ / "hosts").string();
  std::ofstream(path) << "a slots=4\nb port=9000\n";
  const jobs::Nodes nodes = Found({"--hostfile", path, "--job", "77", "--port", "8000", "--parallel", "3"});
  ASSERT_EQ(nodes.endpoints.size(), 2U);
  EXPECT_EQ(nodes.endpoints[0].port, 8000);
  EXPECT_EQ(nodes.endpoints[1].port, 9000);
  EXPECT_EQ(nodes.job_id, "77");
  EXPECT_EQ(nodes.parallel, 3U);
  EXPECT_EQ(CodeOf({"--hostfile", (folder_ / "none").string()}), ErrorCode::kNotFound);
}

TEST_F(NodeFlagsTest, ATunnelRunsThisProgramOnTheNode) {
  const jobs::Nodes nodes = Found({"--host", "n1", "--via", "carry {host}", "--via-program", "/opt/lockstep"});
  EXPECT_THAT(nodes.endpoints.at(0).tunnel, ElementsAre("carry", "n1", "/opt/lockstep", "tunnel"));
  EXPECT_EQ(nodes.endpoints[0].address, "");
  const jobs::Nodes own = Found({"--host", "n1", "--via", "carry {host}", "--socket", "/s"});
  EXPECT_THAT(own.endpoints.at(0).tunnel, Contains(HasSubstr("lockstep_programs_cli_test")));
  EXPECT_EQ(own.endpoints[0].tunnel.back(), "/s");
}

TEST_F(NodeFlagsTest, CertificatesImplyTls) {
  EXPECT_FALSE(Found({"--host", "a"}).endpoints.at(0).tls);
  EXPECT_TRUE(Found({"--host", "a", "--tls"}).endpoints.at(0).tls);
  EXPECT_TRUE(Found({"--host", "a", "--ca", "ca.pem"}).endpoints.at(0).tls);
  const jobs::Nodes nodes = Found({"--host", "a", "--cert", "c.pem", "--key", "k.pem", "--token-file", "t"});
  EXPECT_TRUE(nodes.endpoints.at(0).tls);
  EXPECT_EQ(nodes.endpoints[0].certificate_file, "c.pem");
  EXPECT_EQ(nodes.endpoints[0].key_file, "k.pem");
  EXPECT_EQ(nodes.endpoints[0].token_file, "t");
}

TEST_F(NodeFlagsTest, FlagsThatMakeNoSenseTogetherAreRefused) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--host", "a", "--hostfile", "f"},
      {"--host", "a", "--socket", "/s"},
      {"--via", "ssh"},
      {"--host", "a", "--via", "ssh", "--tls"},
      {"--host", "a", "--via", "ssh", "--port", "1"},
      {"--host", "a", "--via", "ssh", "--token-file", "t"},
      {"--host", "a", "--via-program", "/x"},
      {"--host", "a", "--key", "k"},
      {"--port", "80"},
      {"--tls"},
      {"--socket", "/s", "--tls"},
      {"--host", "a", "--via", "srun"},
      {"--host", "a", "--connect-timeout", "0s"},
      {"--host", "a", "--connect-timeout", "soon"},
      {"--host", "n[2-1]"},
      {"--host", "-oProxyCommand=x", "--via", "ssh"},
  };
  for (const auto& words : wrong)
    EXPECT_EQ(CodeOf(words), ErrorCode::kInvalidArgument) << testing::PrintToString(words);
}

TEST_F(NodeFlagsTest, WithoutFlagsItIsTheDaemonOfThisNode) {
  if (std::filesystem::exists("/run/lockstep/lockstepd.sock")) GTEST_SKIP() << "a daemon runs on this machine";
  EXPECT_EQ(CodeOf({}), ErrorCode::kNotFound);
  std::filesystem::create_directory(folder_ / "lockstep");
  const std::string path = (folder_ / "lockstep" / "lockstepd.sock").string();
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(CodeOf({}), ErrorCode::kNotFound);  // The file is there, and nobody listens.
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const jobs::Nodes nodes = Found({});
  EXPECT_EQ(nodes.endpoints.at(0).unix_path, path);
  EXPECT_TRUE(nodes.is_local);
  EXPECT_EQ(Found({"--socket", "/own"}).endpoints.at(0).unix_path, "/own");
  EXPECT_EQ(Found({"--socket", "/own", "--job", "7"}).job_id, "7");
}

}  // namespace
}  // namespace lockstep::cli
