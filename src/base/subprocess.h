#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep {

/// A child process, started without a shell and in a process group of its own (a terminal's Ctrl-C does not reach it).
/// Move-only; one that still runs when this ends is killed, with its group, and reaped.
class ChildProcess {
 public:
  /// What a child's standard streams become; -1: /dev/null. Borrowed for the call; all its other descriptors are
  /// closed.
  struct Streams {
    int input = -1;
    int output = -1;
    int error = -1;
  };

  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { End(0); }

  /// `arguments[0]` is looked for in PATH. `environment`: "NAME=value" entries; unset: this process's own.
  /// Errors: kNotFound (no such program), kPermissionDenied, kInvalidArgument (no or empty program), kIo.
  static Result<ChildProcess> Start(const std::vector<std::string>& arguments, const Streams& streams,
                                    const std::optional<std::vector<std::string>>& environment = std::nullopt);

  /// The same, in this process's environment, for one that must not outlive this program: it is killed when the thread
  /// that called this has ended, however that came about. So call it from the main thread.
  static Result<ChildProcess> StartTied(const std::vector<std::string>& arguments, const Streams& streams);

  bool running() const { return pid_ > 0; }  ///< Started and not reaped yet, by what this knows.
  pid_t pid() const { return pid_; }

  /// Its wait status (see waitpid) once it has ended, nullopt before; after that the child is gone from here.
  std::optional<int> Poll();
  /// Waits for its end at most `grace_ns`, then kills it and its group. Returns its wait status, nullopt when there was
  /// no child.
  std::optional<int> End(int64_t grace_ns);
  /// Releases it: the caller ends and reaps it. For a child that even SIGKILL may not end soon.
  [[nodiscard]] pid_t Release() { return std::exchange(pid_, -1); }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;
};

struct CommandOptions {
  int64_t timeout_ns = 10'000'000'000;  ///< For all of it; then it is killed.
  int64_t grace_ns = 0;  ///< Before that, SIGTERM and this much time, for a process that must end others.
  size_t output_bytes_limit = size_t{16} << 20;  ///< Of its output and of its errors, each; then it is killed.
  std::optional<std::vector<std::string>> environment = {};  ///< "NAME=value"; unset: this process's own.
};

struct CommandOutput {
  int exit_status = 0;  ///< As a shell has it: 128 + n where signal n ended it.
  std::string output;
  std::string error;
};

/// Runs a command to its end, without a shell and with nothing on its standard input. That it fails is not an error
/// here: see exit_status. Thread-safe. Errors: ChildProcess::Start's, kCancelled (ran past its time), kLimitExceeded
/// (printed too much).
Result<CommandOutput> RunCommand(const std::vector<std::string>& arguments, const CommandOptions& options = {});

/// This process's environment without the variables whose names begin with one of `prefixes`.
std::vector<std::string> EnvironmentWithout(const std::vector<std::string>& prefixes);

}  // namespace lockstep
