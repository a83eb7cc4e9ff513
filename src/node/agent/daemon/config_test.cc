#include "node/agent/daemon/config.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string name = (std::filesystem::temp_directory_path() / "config_test_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    config_ = DefaultConfig();
  }
  ~ConfigTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  Status Apply(const std::string& text) { return ApplyToml(text, "x.toml", &config_); }

  std::filesystem::path folder_;
  DaemonConfig config_;
};

TEST_F(ConfigTest, EveryKeyArrives) {
  ASSERT_TRUE(Apply(R"(
socket = "/run/x.sock"
listen = ["0.0.0.0:9000", "[::1]:9001"]
host_names = ["n1"]
insecure_no_auth = true
capture_group = "tracers"
state = "/var/lib/x"
[tls]
certificate = "/c"
key = "/k"
client_authority = "/a"
requires_client_certificate = true
[[token]]
name = "ops"
file = "/t"
role = "admin"
[[certificate]]
name = "ci"
role = "capture"
user = "root"
[kineto]
name = "other"
directories = ["/run/kineto"]
[capture]
output = "/scratch"
quota_gibibytes = 2
keep_hours = 3
[dynolog_rpc]
enabled = true
addresses = ["127.0.0.1"]
port = 17
output_folders = ["/data"]
[sensors]
gpu = false
nvml_library = "/opt/libnvidia-ml.so.1"
gpus_expected = 8
gpu_retry_seconds = 60
host = true
sysfs = "/host/sys"
[history]
keep = "90s"
coarse_keep = "2d"
coarse_every = "1m"
limit_mebibytes = 4
[log]
level = "debug"
file = "/l"
)"));
  EXPECT_EQ(config_.unix_socket, "/run/x.sock");
  ASSERT_EQ(config_.listen.size(), 2u);
  EXPECT_EQ(config_.listen[0].port, 9000);
  EXPECT_FALSE(config_.listen[0].is_loopback());
  EXPECT_EQ(config_.listen[1].address, "::1");
  EXPECT_TRUE(config_.listen[1].is_loopback());
  EXPECT_THAT(config_.host_names, ElementsAre("n1"));
  EXPECT_TRUE(config_.insecure_no_auth);
  EXPECT_EQ(config_.capture_group, "tracers");
  EXPECT_EQ(config_.state_folder, "/var/lib/x");
  ASSERT_TRUE(config_.tls);
  EXPECT_EQ(config_.tls->certificate, "/c");
  EXPECT_EQ(config_.tls->key, "/k");
  EXPECT_EQ(config_.tls->client_authority, "/a");
  EXPECT_TRUE(config_.tls->requires_client_certificate);
  ASSERT_EQ(config_.tokens.size(), 1u);
  EXPECT_EQ(config_.tokens[0].name, "ops");
  EXPECT_EQ(config_.tokens[0].token_file, "/t");
  EXPECT_EQ(config_.tokens[0].role, Role::kAdmin);
  ASSERT_EQ(config_.certificates.size(), 1u);
  EXPECT_EQ(config_.certificates[0].user, "root");
  EXPECT_EQ(config_.kineto_name, "other");
  EXPECT_THAT(config_.kineto_directories, ElementsAre("/run/kineto"));
  EXPECT_EQ(config_.output_folder, "/scratch");
  EXPECT_EQ(config_.trace_quota_bytes, uint64_t{2} << 30);
  EXPECT_EQ(config_.keep_ns, 3 * 3600 * 1'000'000'000LL);
  EXPECT_TRUE(config_.dynolog_rpc);
  EXPECT_THAT(config_.dynolog_addresses, ElementsAre("127.0.0.1"));
  EXPECT_EQ(config_.dynolog_port, 17);
  EXPECT_THAT(config_.dynolog_output_folders, ElementsAre("/data"));
  EXPECT_FALSE(config_.sensors.gpu);
  EXPECT_EQ(config_.sensors.nvml_library, "/opt/libnvidia-ml.so.1");
  EXPECT_EQ(config_.sensors.gpus_expected, 8u);
  EXPECT_EQ(config_.sensors.gpu_retry_s, 60);
  EXPECT_TRUE(config_.sensors.host);
  EXPECT_EQ(config_.sensors.sysfs, "/host/sys");
  EXPECT_EQ(config_.history.keep_ns, 90 * 1'000'000'000LL);
  EXPECT_EQ(config_.history.coarse_keep_ns, 48 * 3600 * 1'000'000'000LL);
  EXPECT_EQ(config_.history.coarse_every_ns, 60 * 1'000'000'000LL);
  EXPECT_EQ(config_.history.limit_bytes, uint64_t{4} << 20);
  EXPECT_EQ(config_.log_level, "debug");
  EXPECT_EQ(config_.log_file, "/l");
}

TEST_F(ConfigTest, WrongTextsAreRefusedWithLineAndAdvice) {
  const std::pair<const char*, const char*> texts[] = {
      {"listne = []", "x.toml:1:1: unknown key 'listne'; did you mean 'listen'?"},
      {"\n[tls]\ncertificat = \"/c\"", "x.toml:3:1: unknown key 'tls.certificat'; did you mean 'certificate'?"},
      {"zzzzzzzz = 1", "unknown key 'zzzzzzzz'"},
      {"[history]\nkeep = \"15\"", "x.toml:2:8: history.keep is '15', and no time such as 90s, 15m, 6h or 0"},
      {"[history]\nkeep = 15", "history.keep is not a string"},
      {"[history]\nkeep = \"-1m\"", "no time such as"},
      {"[history]\ncoarse_every = \"0\"", "history.coarse_every is 0, outside 1s .. 3600s"},
      {"[history]\nlimit_mebibytes = 0", "is 0, outside 1 .. 1024"},
      {"socket = 5", "x.toml:1:10: socket is not a string"},
      {"insecure_no_auth = \"yes\"", "neither true nor false"},
      {"insecure_no_auth = 1", "neither true nor false"},
      {"listen = \"127.0.0.1:1\"", "not a list of strings"},
      {"listen = [\"localhost:1\"]", "'localhost:1' is not an IP address"},
      {"listen = [\"127.0.0.1\"]", "not an IP address with a port"},
      {"listen = [\"127.0.0.1:65536\"]", "not an IP address with a port"},
      {"listen = [\"::1:80\"]", "not an IP address with a port"},
      {"[capture]\nkeep_hours = 0", "capture.keep_hours is 0, outside 1"},
      {"[capture]\nkeep_hours = 1.5", "not a whole number"},
      {"[log]\nlevel = \"loud\"", "not one of debug, info"},
      {"[tls]\nkey = \"/k\"", "tls needs certificate and key"},
      {"tls = 5", "tls is not a section"},
      {"[token]\nname = \"x\"", "write [[token]]"},
      {"[[token]]\nname = \"x\"\nrole = \"read\"", "[[token]] needs file"},
      {"[[token]]\nname = \"x\"\nfile = \"/t\"", "[[token]] needs role"},
      {"[[certificate]]\nrole = \"read\"", "[[certificate]] needs name"},
      {"[[certificate]]\nname = \"x\"\nrole = \"root\"", "not one of read, capture, admin"},
      {"[[certificate]]\nname = \"x\"\nfile = \"/t\"\nrole = \"read\"", "unknown key 'certificate.file'"},
      {"[[token]]\nname='x'\nfile='/a'\nrole='read'\n[[token]]\nname='x'\nfile='/b'\nrole='read'", "two [[token]]"},
      {"a = ", "x.toml:1:"},
      {"socket = \"a\"\nsocket = \"b\"", "x.toml:2:"},
      {"\xff", "x.toml:1:"},
  };
  for (const auto& [text, said] : texts) {
    const Status status = Apply(text);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(status.error().message, HasSubstr(said)) << text;
  }
}

TEST_F(ConfigTest, DeepTextsAreRefused) { EXPECT_FALSE(Apply("listen = " + std::string(100'000, '['))); }

TEST_F(ConfigTest, DefaultsListenOnTheLoopbackAndServe) {
  EXPECT_TRUE(config_.listen.at(0).is_loopback());
  EXPECT_TRUE(ResolveConfig(&config_));
}

TEST_F(ConfigTest, TheNetworkIsRefusedWithoutEncryptionAndCallers) {
  config_.listen = {{"0.0.0.0", 1}};
  Status status = ResolveConfig(&config_);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("needs [tls]"));
  config_.tls = http::TlsFiles{"/c", "/k"};
  status = ResolveConfig(&config_);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("[[token]]"));
  config_.certificates = {{"ci", Role::kAdmin}};
  EXPECT_FALSE(ResolveConfig(&config_));  // Nothing that a certificate could be verified against.
  config_.tls->client_authority = "/a";
  EXPECT_TRUE(ResolveConfig(&config_));
  config_.tls.reset();
  config_.insecure_no_auth = true;
  EXPECT_TRUE(ResolveConfig(&config_));
}

TEST_F(ConfigTest, TokensAreReadAndMustBePrivateAndLong) {
  const std::string good(64, 'a');
  config_.tokens = {{"ops", Role::kAdmin, "", {}, Write("t", good + "\n")}};
  ASSERT_TRUE(ResolveConfig(&config_));
  EXPECT_EQ(config_.tokens[0].token_digest.size(), 32u);
  const auto refused = [&](const std::string& file) {
    config_.tokens[0].token_file = file;
    const Status status = ResolveConfig(&config_);
    return status ? ErrorCode::kIo : status.error().code;
  };
  EXPECT_EQ(refused(Write("open", good, 0640)), ErrorCode::kPermissionDenied);
  EXPECT_EQ(refused(Write("open2", good, 0604)), ErrorCode::kPermissionDenied);
  EXPECT_EQ(refused(Write("short", std::string(42, 'a'))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(Write("two", good + "\n" + good)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(Write("long", std::string(5000, 'a'))), ErrorCode::kLimitExceeded);
  EXPECT_EQ(refused(Write("empty", "")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused((folder_ / "none").string()), ErrorCode::kNotFound);
  EXPECT_EQ(refused(folder_.string()), ErrorCode::kInvalidArgument);
  config_.tokens = {{"a", Role::kAdmin, "", {}, Write("t", good)}, {"b", Role::kRead, "", {}, Write("u", good)}};
  EXPECT_FALSE(ResolveConfig(&config_));  // The same token for two.
}

TEST_F(ConfigTest, EnginesAndObjectives) {
  const auto read = [&](const std::string& text) {
    config_ = DefaultConfig();
    Status status = ApplyToml(text, "c.toml", &config_);
    return status ? ResolveConfig(&config_) : status;
  };
  const std::string token = Write("t", "short-is-fine");
  ASSERT_TRUE(
      read("[serving]\nslo_request_seconds = 10\nslo_first_token_seconds = 0.5\n[[engines]]\nurl = "
           "\"http://127.0.0.1:8000\"\nkind = \"vllm\"\ntoken_file = \"" +
           token + "\"\n[[engines]]\nurl = \"https://far:30000/m\"\nkind = \"sglang\"\njob = \"j\"\nmodel = \"m\"\n"));
  EXPECT_EQ(config_.serving, (ServingObjectives{10, 0.5, {}}));
  ASSERT_EQ(config_.engines.size(), 2u);
  EXPECT_EQ(config_.engines[0].url, "http://127.0.0.1:8000/metrics");
  EXPECT_EQ(config_.engines[0].token, "short-is-fine");
  EXPECT_THAT(config_.engines[0].job, testing::EndsWith(":8000"));
  EXPECT_EQ(config_.engines[1].kind, EngineKind::kSglang);
  EXPECT_EQ(config_.engines[1].job, "j");
  const std::string one = "[[engines]]\nurl = \"http://127.0.0.1:8000\"\nkind = \"vllm\"\n";
  for (const std::string& bad :
       {one + one, std::string("[[engines]]\nkind = \"vllm\"\n"), std::string("[[engines]]\nurl = \"http://a\"\n"),
        std::string("[[engines]]\nurl = \"http://a\"\nkind = \"tgi\"\n"),
        std::string("[[engines]]\nurl = \"ftp://a\"\nkind = \"vllm\"\n"),
        "[[engines]]\nurl = \"http://far\"\nkind = \"vllm\"\ntoken_file = \"" + token + "\"\n",
        one + "job = \"a\\u0007\"\n", std::string("[serving]\nslo_request_seconds = 0\n"),
        std::string("[serving]\nslo_request_seconds = inf\n"),
        std::string("[serving]\nslo_request_seconds = \"1\"\n")}) {
    EXPECT_FALSE(read(bad)) << bad;
  }
}

TEST_F(ConfigTest, RolesSayWhoseProcesses) {
  config_.certificates = {{"ci", Role::kCapture}};
  EXPECT_FALSE(ResolveConfig(&config_));
  config_.certificates = {{"ci", Role::kAdmin, "root"}};
  EXPECT_FALSE(ResolveConfig(&config_));
  config_.certificates = {{"ci", Role::kCapture, "root"}};
  ASSERT_TRUE(ResolveConfig(&config_));
  EXPECT_EQ(config_.certificates[0].uid, 0u);
  config_.certificates[0].user = "4242";
  ASSERT_TRUE(ResolveConfig(&config_));
  EXPECT_EQ(config_.certificates[0].uid, 4242u);
  config_.certificates[0].user = "no-such-user-here";
  EXPECT_FALSE(ResolveConfig(&config_));
}

TEST_F(ConfigTest, PathsAreAbsoluteAndFit) {
  for (std::string DaemonConfig::*path :
       {&DaemonConfig::unix_socket, &DaemonConfig::state_folder, &DaemonConfig::output_folder}) {
    DaemonConfig config = DefaultConfig();
    config.*path = "relative";
    EXPECT_FALSE(ResolveConfig(&config));
  }
  config_.unix_socket = "/" + std::string(107, 'a');
  EXPECT_FALSE(ResolveConfig(&config_));
  config_ = DefaultConfig();
  config_.kineto_directories = {"/" + std::string(54, 'a')};
  EXPECT_FALSE(ResolveConfig(&config_));
  config_.kineto_directories = {};
  config_.kineto_name = "";
  EXPECT_FALSE(ResolveConfig(&config_));
}

TEST_F(ConfigTest, AFileThatOthersMayWriteIsRefused) {
  EXPECT_TRUE(ApplyFile(Write("ok.toml", "capture_group = \"x\"", 0644), &config_));
  EXPECT_EQ(config_.capture_group, "x");
  const Status status = ApplyFile(Write("bad.toml", "", 0666), &config_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace lockstep::agent
