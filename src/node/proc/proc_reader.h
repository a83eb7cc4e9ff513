#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/proc_stat.h"
#include "node/proc/process_details.h"

namespace lockstep::proc {

/// Reads what /proc shows of a process to this one. All reads are bounded; what is forbidden or odd stays unknown.
/// Stateless; any thread.
class ProcReader {
 public:
  explicit ProcReader(std::string root) : root_(std::move(root)) {}

  /// Everything. Nullopt: there is no such process, or one that started after `seen_boottime_ns` (0: any).
  std::optional<ProcessDetails> Read(int32_t pid, int64_t seen_boottime_ns) const;
  /// Read without the user's name, which may be asked of the network.
  std::optional<ProcessDetails> ReadWithoutUser(int32_t pid, int64_t seen_boottime_ns) const;
  /// Only what the kernel knows without touching the process's memory or files: start and ancestors.
  std::optional<ProcessDetails> ReadBriefly(int32_t pid, int64_t seen_boottime_ns) const;
  /// `known` with what may have changed since.
  std::optional<ProcessDetails> Refresh(int32_t pid, const ProcessDetails& known) const;
  /// Whether the process with this start is still there, and not only its name until its parent asks how it ended.
  bool IsAlive(int32_t pid, uint64_t start_ticks) const;
  /// When it began, in the kernel's ticks after the boot; nullopt: it is gone, or has ended.
  std::optional<uint64_t> StartOf(int32_t pid) const;

 private:
  std::optional<ProcStat> ReadStat(int32_t pid) const;
  std::string ReadFile(int32_t pid, const char* name, size_t limit_bytes) const;
  std::string FindDevice(int32_t pid) const;
  std::string FindTorchVersion(int32_t pid) const;
  std::string FindPythonVersion(int32_t pid) const;

  std::string root_;  ///< "/proc".
};

/// "/usr/bin/python3.11": 3.11; empty where the name does not say, as that of a program with Python in it.
std::string PythonVersionOf(std::string_view path);

/// "__version__ = '2.13.0+cpu'" in the text of torch/version.py: 2.13.0+cpu; empty where it does not say.
std::string ParseTorchVersion(std::string_view text);

}  // namespace lockstep::proc
