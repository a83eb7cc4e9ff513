#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/agent/gpu/gpu_wire.h"

namespace lockstep::agent {

/// The helper's own program, `lockstepd --gpu-helper LIBRARY`: reads GPUs on requests from its standard input, and ends
/// when that closes; `argv[1]` is the library. The daemon starts itself again for it: nothing more is to be installed,
/// and the two are never of different versions.
int GpuHelperMain(int argc, char** argv);

/// What came of a request.
struct GpuAnswer {
  enum class Kind : uint8_t {
    kReading,
    kHung,     ///< A call into the driver does not return.
    kEnded,    ///< The helper has ended, or sent an invalid message.
    kStopped,  ///< Stop() was called.
  };
  Kind kind = Kind::kEnded;
  GpuReading reading = {};
  std::optional<uint32_t> gpu = {};  ///< Whose call hangs; unset: the driver's own.
  std::string trouble = {};
};

/// The process that calls the GPU driver, so that a call that hangs blocks no thread of the daemon. A helper that hangs
/// is killed; one that the kernel cannot kill (a call in uninterruptible sleep) is left and counted.
class GpuHelper {
 public:
  /// `program` is this program itself ("/proc/self/exe").
  GpuHelper(std::string program, std::string library, std::chrono::milliseconds deadline);
  ~GpuHelper();
  GpuHelper(const GpuHelper&) = delete;
  GpuHelper& operator=(const GpuHelper&) = delete;

  bool is_running() const { return pid_ > 0; }
  /// Killed helpers that are still there.
  size_t CountStuck();
  Status Start();
  /// Waits for the answer as long as the deadline allows. After anything but a reading the helper is not running.
  GpuAnswer Ask(const GpuRequest& request);
  void End();
  /// Ends a wait under way and any to come. From any thread.
  void Stop();

 private:
  GpuAnswer Wait(std::chrono::steady_clock::time_point until);
  /// False: not any more.
  bool Reap(pid_t pid);

  const std::string program_;
  const std::string library_;
  const std::chrono::milliseconds deadline_;
  UniqueFd stop_;  ///< An eventfd.
  pid_t pid_ = -1;
  UniqueFd requests_;
  UniqueFd answers_;
  FrameReader frames_;
  std::vector<pid_t> stuck_;
};

}  // namespace lockstep::agent
