#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace lockstep::proc {

/// Where a process's NCCL profiler plugin keeps its ring, by what /proc says of it.
struct RingPlace {
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  int32_t own_pid = 0;      ///< As the process sees itself: in a container another.
  std::string folder;       ///< As the process sees it: LOCKSTEP_NCCL_DIR, else /dev/shm.
  bool is_named = false;    ///< Its environment names the folder, or the plugin.
  std::string environment;  ///< All of it, at most 1 MiB.
};
/// Nullopt: it may not be read, or has gone. Blocks as long as /proc does.
std::optional<RingPlace> FindRingPlace(int32_t pid);

/// A ring, open for reading. A file can be cut while it is read, so that it is never mapped.
class RingFile {
 public:
  RingFile(UniqueFd file, std::string name, uint64_t size_bytes)
      : file_(std::move(file)), name_(std::move(name)), size_bytes_(size_bytes) {}
  /// All of `into` from `offset` on, or false.
  bool ReadAt(uint64_t offset, std::span<char> into) const;
  const std::string& name() const { return name_; }
  uint64_t size_bytes() const { return size_bytes_; }  ///< When it was opened.

 private:
  UniqueFd file_;
  std::string name_;
  uint64_t size_bytes_;
};

/// The ring of the process itself: of those with its pid in their names the newest that it has mapped; nullopt: there
/// is none yet. In a folder that hosts or containers share there are others' of the same pid, and of processes that had
/// it before, and only the map tells. Opened with no more rights than the process's user has, never out of the
/// process's root and never through a link at its end; a regular file of that user's of a size that rings have.
std::optional<RingFile> OpenRing(const RingPlace& place);

/// All rings of the same user's and host's in that folder, the process's own among them, at most `limit`.
std::vector<RingFile> OpenRings(const RingPlace& place, size_t limit);

}  // namespace lockstep::proc
