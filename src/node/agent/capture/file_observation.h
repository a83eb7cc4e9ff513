#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::agent {

/// The result of a look at a process's trace file.
struct FileObservation {
  enum class Kind : uint8_t {
    kNone,        ///< Neither name is there.
    kUnfinished,  ///< NAME.tmp: Kineto has begun.
    kFinished,    ///< NAME: whole, since Kineto renames when it is done.
    kUnusable,    ///< NAME is there and is not a regular file of the process's user.
    kNoFolder,    ///< The folder is gone, or cannot be reached (its container has ended).
  };
  Kind kind = Kind::kNone;
  uint64_t size_bytes = 0;                  ///< kUnfinished, kFinished.
  std::optional<uint64_t> free_bytes = {};  ///< Of the file system, for the user; kUnfinished.
};

}  // namespace lockstep::agent
