#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/nanoseconds.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "node/agent/kineto/registry.h"
#include "node/control/api/capture.h"

namespace lockstep::agent {

/// The caller of a request. What it may trace is decided here, separately for every process.
struct Caller {
  std::optional<uint32_t> uid;  ///< From the kernel (Unix socket, loopback) or the configuration.
  bool may_trace_all = false;   ///< Root, a member of the capture group, or a role that the configuration gives.
  std::string name;             ///< For `requested_by` and the audit: "alice (uid 1000) over the local socket".

  bool MayTrace(const control::Process& process) const { return may_trace_all || (uid && *uid == process.uid); }
};

struct CaptureManagerOptions {
  std::string state_folder;  ///< Captures' state, one file each; made with mode 0700.
  std::string host;          ///< In trace names.
  /// Where processes write, in their own view of the file system; a folder for each capture is made below it.
  std::string output_folder = "/tmp/lockstep";
  uint64_t trace_quota_bytes = uint64_t{64} << 30;  ///< Of finished traces that were not removed; the oldest go first.
  int64_t keep_ns = 24 * kHourNs;                   ///< Finished captures and their traces go after this.
  int64_t startup_wait_ns = 12'000'000'000;  ///< After a start, captures without a match wait this long at least.
  bool allow_unsafe = false;                 ///< As if every request had CaptureSpec::allow_unsafe.
  /// After a start, a request that an earlier daemon left queued waits this long: whether a process fetched it from
  /// that one shows by then, and Kineto is never handed a second request while the first is pending.
  int64_t restored_wait_ns = 5'000'000'000;
};

/// An open trace, to be sent. The descriptor is of a regular file that the traced user owns.
struct OpenTrace {
  UniqueFd fd;
  uint64_t size_bytes = 0;
};

/// A file that a foreign client named, in a folder that the administrator allows. Kineto puts the process's pid into
/// its name and writes it as the job's own user.
struct ForeignOutput {
  std::string log_file;  ///< Absolute; its folder was checked against the allowed ones, as text, by the one who asks.
};

/// What became of captures since the daemon started, and what finished traces take.
struct CaptureCounts {
  // Traced processes that were ended by a signal or with an exit status other than 0.
  uint64_t deaths_within = 0;    ///< A capture of theirs was under way.
  uint64_t deaths_after = 0;     ///< Or had ended not longer ago than control::kWatchedAfterNs.
  uint64_t disk_full_count = 0;  ///< Traces that could not be written as the disk was full.
  uint64_t evicted_bytes = 0;    ///< Of traces removed for their age, their number or the quota.
  uint64_t stored_bytes = 0;     ///< Of those that are there.
};

/// Captures of one node: made, followed to their files, kept on disk so that a restart loses none. Thread-safe.
class CaptureManager {
 public:
  /// Reads the state folder, continues unfinished captures, starts its thread. `registry` is borrowed.
  static Result<std::unique_ptr<CaptureManager>> Create(const CaptureManagerOptions& options, Registry* registry);
  virtual ~CaptureManager() = default;

  /// Errors: kInvalidArgument (spec; a lead that would lose ranks, with the least that works in the message), kNotFound
  /// (no process matches and wait_ns is over; says what is registered), kPermissionDenied (matches, none of them the
  /// caller's), kFailedPrecondition (all that match are busy with another capture).
  virtual Result<control::Capture> Start(const control::CaptureSpec& spec, const Caller& caller) = 0;
  /// The same with the trace where a foreign client wants it, for all targets: no folder is made, and neither Cancel,
  /// expiry nor the quota removes the file; it can be opened here under a name of ours as well. Further errors:
  /// kInvalidArgument (a name that Kineto cannot be told), kFailedPrecondition (no such folder in the process's view, a
  /// symbolic link on the way, the file or its .tmp is there already, or this PyTorch refuses the place).
  virtual Result<control::Capture> Start(const control::CaptureSpec& spec, const Caller& caller,
                                         const ForeignOutput& output) = 0;
  /// Captures whose targets the caller may trace, newest first.
  virtual std::vector<control::Capture> List(const Caller& caller) const = 0;
  virtual Result<control::Capture> Get(const std::string& id, const Caller& caller) const = 0;
  /// Cancels a queued request (a running window ends by itself), and removes the traces of a finished capture.
  virtual Result<control::Capture> Cancel(const std::string& id, const Caller& caller) = 0;
  virtual Result<OpenTrace> Open(const std::string& id, const std::string& trace_name, const Caller& caller) const = 0;
  /// Calls `listener` with a capture each time it changes, until the returned handle is destroyed. It must not block.
  virtual std::shared_ptr<void> Watch(const std::string& id, std::function<void(const control::Capture&)> listener) = 0;
  /// For /-/ready and the status: what is wrong with the folders, in words.
  virtual std::vector<std::string> Problems() const = 0;
  virtual CaptureCounts Counts() const = 0;
};

}  // namespace lockstep::agent
