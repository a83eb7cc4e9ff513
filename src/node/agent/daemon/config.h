#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http/http_server.h"
#include "base/nanoseconds.h"
#include "base/result.h"
#include "node/agent/engines/engine_endpoint.h"
#include "node/agent/history/history_settings.h"
#include "node/agent/sensors/series_limit.h"

namespace lockstep::agent {

/// What a caller may do; each may do what those before it may.
enum class Role : uint8_t {
  kNone,     ///< Ask whether the daemon is healthy.
  kRead,     ///< See processes without their command lines, the state, the metrics.
  kCapture,  ///< Trace one user's processes, see and fetch those traces.
  kAdmin,    ///< The same for all users' processes.
};
const char* RoleName(Role role);  ///< "none", "read", "capture", "admin".

/// Of a file with a token, and of the header that brings one.
inline constexpr size_t kMostTokenBytes = 4096;

/// The identity behind a token or a client certificate.
struct Credential {
  std::string name;  ///< For the audit; of a certificate: its common name.
  Role role = Role::kRead;
  std::string user = {};             ///< Whose processes it may trace; required by kCapture.
  std::optional<uint32_t> uid = {};  ///< Of `user`.
  std::string token_file = {};       ///< Of a token.
  std::string token_digest = {};     ///< SHA-256 of the token, 32 bytes. Compared in constant time.
};

struct ListenAddress {
  std::string address;  ///< IPv4 or IPv6, without brackets.
  uint16_t port = 0;    ///< 0 = any free one.
  bool is_loopback() const;
};

/// "127.0.0.1:9476", "[::1]:9476". Errors: kInvalidArgument.
Result<ListenAddress> ParseListenAddress(std::string_view text);

/// What is looked at besides the daemon itself: docs/daemon-metrics.md.
struct SensorSettings {
  bool gpu = true;
  std::string nvml_library = "libnvidia-ml.so.1";
  std::optional<uint32_t> gpus_expected = {};  ///< Unset: the most that were ever seen.
  int64_t gpu_retry_s = 300;                   ///< After a call of the driver that hung.
  bool host = false;                           ///< Processors, memory and network of the node.
  std::string sysfs = "/sys";                  ///< Where InfiniBand and AMD's GPUs are looked for.
  bool find_engines = false;                   ///< Inference engines that listen on the loopback.
  int64_t engine_period_s = 5;                 ///< How often engines are asked.
  bool logs = true;                            ///< Logs of ranks.
  SeriesLimits series;
  bool operator==(const SensorSettings&) const = default;
};

/// Objectives of serving; unset: none.
struct ServingObjectives {
  std::optional<double> request_s = {};      ///< From begin to end.
  std::optional<double> first_token_s = {};  ///< From begin to first output.
  std::optional<double> inter_token_s = {};  ///< Between outputs.
  bool operator==(const ServingObjectives&) const = default;
};

struct DaemonConfig {
  std::string unix_socket;  ///< Path.
  std::vector<ListenAddress> listen;
  std::optional<http::TlsFiles> tls;  ///< On every address of `listen`.
  bool insecure_no_auth = false;
  std::vector<std::string> host_names;  ///< That a Host header may say, besides the loopback's.

  std::string capture_group = "lockstep";  ///< Its members are admins over the local socket; empty: none.
  std::vector<Credential> tokens;
  std::vector<Credential> certificates;

  std::string kineto_name = "dynolog";  ///< Abstract socket; empty: none.
  std::vector<std::string> kineto_directories;

  std::string output_folder;
  std::string state_folder;
  uint64_t trace_quota_bytes = uint64_t{64} << 30;
  int64_t keep_ns = 24 * kHourNs;
  bool allow_unsafe_captures = false;

  bool dynolog_rpc = false;
  std::vector<std::string> dynolog_addresses = {"127.0.0.1", "::1"};
  uint16_t dynolog_port = 1778;  ///< 0 = any free one.
  std::vector<std::string> dynolog_output_folders = {"/tmp"};

  SensorSettings sensors;
  std::vector<EngineEndpoint> engines;
  ServingObjectives serving;
  HistorySettings history;
  std::vector<std::string> log_paths;  ///< Patterns of logs that are followed besides those of ranks.

  std::string log_level = "info";
  std::string log_file;  ///< Empty: standard error.

  // By flag only.
  std::string config_file;  ///< Where this comes from; empty: defaults and flags.
  std::string lease_file;   ///< The daemon ends when no process holds a lock on this file.
};

/// Where things lie for this user on this host: docs/capture.md#paths.
DaemonConfig DefaultConfig();

/// Puts what a configuration file says on top. `file` is for messages. Errors: kInvalidArgument with file, line and
/// column: not TOML, an unknown key (with the nearest), a value of the wrong type or out of range.
Status ApplyToml(std::string_view text, const std::string& file, DaemonConfig* config);

/// The same from a file, which must be root's or this user's, and no one else's to write. Errors: kNotFound, kIo,
/// kPermissionDenied, kInvalidArgument.
Status ApplyFile(const std::string& file, DaemonConfig* config);

/// Reads tokens, looks users up and checks that the settings fit together; the result can be served. Errors:
/// kInvalidArgument, kPermissionDenied (a token file that others may read), kNotFound, kIo.
Status ResolveConfig(DaemonConfig* config);

}  // namespace lockstep::agent
