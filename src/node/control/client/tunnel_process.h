#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"

namespace lockstep::control {

/// A command whose standard input and output are a socket: "srun ... lockstep tunnel", "ssh HOST lockstep
/// tunnel". It runs in a process group of its own, so that Ctrl-C meant for the caller does not reach it, with none of
/// the caller's other files and with every signal as usual. What it says on standard error is kept, its end that is:
/// banners come first. Not thread-safe.
class TunnelProcess {
 public:
  /// `socket` is lent for the call. Errors: kNotFound when the program is not there, kPermissionDenied, kIo.
  static Result<std::unique_ptr<TunnelProcess>> Spawn(const std::vector<std::string>& command, int socket);
  /// Ends the whole process group: SIGTERM, SIGKILL half a second later.
  ~TunnelProcess();
  TunnelProcess(const TunnelProcess&) = delete;
  TunnelProcess& operator=(const TunnelProcess&) = delete;

  /// To be called now and then, so that a talkative command does not block on a full pipe. Never blocks.
  void DrainErrors();
  /// Why it ended, waiting for that up to `wait_ns`: "'ssh n001 lockstep tunnel' ended with status 255: ssh: connect to
  /// host n001 port 22: No route to host". Printable text is the reader's business.
  std::string Describe(int64_t wait_ns);
  bool ended() const { return !ending_.empty(); }  ///< As of the last Describe().
  /// What it said last, at most 4 KiB.
  const std::string& errors() const { return errors_; }

 private:
  TunnelProcess(std::string command, ChildProcess child, UniqueFd errors)
      : command_(std::move(command)), child_(std::move(child)), error_pipe_(std::move(errors)) {}
  bool HasEnded();

  const std::string command_;
  ChildProcess child_;
  UniqueFd error_pipe_;
  std::string errors_;
  std::string ending_;  // Empty while it runs.
};

}  // namespace lockstep::control
