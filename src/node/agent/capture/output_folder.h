#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/agent/capture/capture_manager.h"
#include "node/agent/capture/file_observation.h"
#include "node/control/api/process.h"

namespace lockstep::agent {

/// The folder that one process writes one trace to. It lies in the process's own view of the file system (a container's
/// /tmp is not ours), belongs to the process's user with mode 0700, and has a random part in its name. Everything is
/// done through descriptors that follow no symbolic link, and with no more rights than the user's own wherever the user
/// could change names meanwhile. Thread-safe.
class OutputFolder {
 public:
  struct Made {
    std::shared_ptr<OutputFolder> folder;  ///< Shared: watched by the manager's thread, read by those that send it.
    std::string problem;                   ///< For Problems(): the usual place could not be used; empty: it could.
  };

  /// Makes `BASE/CAPTURE-RANDOM`, with BASE from `base` ("/tmp/lockstep"), or below the process's
  /// KINETO_ONDEMAND_TRACE_DIR, or in /tmp: PyTorch 2.14 and later writes nowhere else. A BASE that does not belong to
  /// us, or is a link, is passed over: the folder is then made beside it.
  /// Errors: kPermissionDenied (not our user, and we are not root), kFailedPrecondition (no safe place; says why), kIo.
  static Result<Made> Make(const control::Process& process, const std::string& capture_id, const std::string& base);

  /// A folder that an earlier daemon made, or used. Errors: kNotFound, kPermissionDenied (no longer the user's own).
  static Result<std::shared_ptr<OutputFolder>> Reopen(const control::Process& process, const std::string& path,
                                                      bool foreign);

  /// A folder that another program made for the process to write to; neither it nor its content is ever removed.
  /// Errors: kInvalidArgument (of characters that Kineto cannot be told), kFailedPrecondition (not there, a symbolic
  /// link on the way, or a place that the process's PyTorch refuses).
  static Result<std::shared_ptr<OutputFolder>> Foreign(const control::Process& process, const std::string& path);

  /// As the process sees it: absolute, of safe characters, no ".json" in it.
  const std::string& path() const { return path_; }

  /// What is there of the trace `name`. Cost: a few system calls.
  FileObservation Observe(const std::string& name) const;

  /// Removes what a dropped request has left of the trace `name`; not in a foreign folder. What cannot be removed is
  /// left.
  void RemoveUnfinished(const std::string& name) const;

  /// The finished trace: a regular file of the process's user with one name, no link anywhere.
  /// Errors: kNotFound; kPermissionDenied (something else has that name); kIo.
  Result<OpenTrace> Open(const std::string& name) const;

  /// Removes the folder with all in it; what cannot be removed is left.
  void Remove();

 private:
  OutputFolder() = default;
  UniqueFd OpenParent() const;
  UniqueFd OpenFolder() const;

  // Constant after construction.
  std::string path_;
  uint32_t uid_ = 0;
  uint32_t gid_ = 0;
  bool foreign_ = false;
  // Held only where paths of ours do not lead there: a container's mounts go with its last process, an open folder
  // stays.
  UniqueFd held_parent_;
  UniqueFd held_folder_;
};

/// Where the process may write, by its PyTorch's rules: {"/tmp/lockstep", ours to make} or its
/// KINETO_ONDEMAND_TRACE_DIR. Errors: kFailedPrecondition when that variable holds a path that Kineto's configuration
/// cannot carry.
struct OutputBase {
  std::string path;
  bool given = false;  ///< By the process's environment: used as it is, never made.
};
Result<OutputBase> OutputBaseOf(const std::optional<std::string>& ondemand_trace_dir, const std::string& torch_version,
                                const std::string& base);

}  // namespace lockstep::agent
