#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::local {

/// "2.13.0+cpu" as numbers; major 0: not known.
struct TorchVersion {
  int major = 0;
  int minor = 0;
  std::string text;
  bool IsBetween(int first_minor, int last_minor) const {
    return major == 2 && minor >= first_minor && minor <= last_minor;
  }
};
TorchVersion ParseTorchVersion(const std::string& text);

/// A running process that has PyTorch mapped, as /proc shows it.
struct TorchProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  uid_t uid = 0;
  uint64_t start_ticks = 0;  ///< Field 22 of /proc/PID/stat.
  double age_s = 0;
  std::string command;  ///< Its arguments, at most 120 characters.
  TorchVersion torch;
  bool has_device_build = false;  ///< Its PyTorch is built for CUDA or ROCm.
  bool environment_is_readable = false;
  std::map<std::string, std::string> kineto;  ///< Its variables that begin with KINETO_, as it was started.
  bool has_endpoint = false;  ///< It holds a socket of Kineto's client: it asks, or would ask, a daemon.
  bool same_network = true;   ///< Its abstract sockets are those that the caller's processes see.
  std::string root;           ///< "/proc/PID/root": its files, where they are the caller's to look at.
};

/// Of all users that the caller may look at; ordered by pid. Bounded: at most 4,096 processes.
std::vector<TorchProcess> FindTorchProcesses();

}  // namespace lockstep::local
