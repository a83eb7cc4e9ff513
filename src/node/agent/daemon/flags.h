#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/agent/daemon/config.h"

namespace lockstep::agent {

/// What the command line says; each overrides the configuration file.
struct DaemonFlags {
  std::string config_file;
  bool check = false;
  std::optional<std::string> socket;
  std::optional<std::string> port;  ///< A number, or "none".
  std::vector<std::string> listen;
  bool insecure_no_auth = false;
  std::optional<std::string> state;
  std::optional<std::string> output;
  bool allow_unsafe = false;
  std::optional<std::string> kineto_name;
  std::vector<std::string> kineto_directories;
  bool dynolog_rpc = false;
  std::optional<uint16_t> dynolog_port;
  std::string lease_file;
  std::string log_level;
  std::string log_file;
};

/// Reads the command line. Unset: `exit_status` is what the program ends with; help, version or the error were printed.
std::optional<DaemonFlags> ReadFlags(int argc, char** argv, int* exit_status);

/// Defaults, then the file (--config, or root's /etc/lockstep/lockstep.toml where there is one), then flags; resolved.
Result<DaemonConfig> LoadConfig(const DaemonFlags& flags);

}  // namespace lockstep::agent
