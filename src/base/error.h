#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

enum class ErrorCode : uint8_t {
  kInvalidArgument,  ///< The caller asked for something that makes no sense.
  kNotFound,         ///< A file, rank or name does not exist.
  kPermissionDenied,
  kIo,                  ///< The operating system failed a read or write.
  kCorruptData,         ///< Bytes from outside are damaged or not of the expected format.
  kUnsupported,         ///< A format or version that is known and not read.
  kLimitExceeded,       ///< A limit on size, depth or ratio was hit.
  kFailedPrecondition,  ///< The input lacks what the question needs (no steps, no device events).
  kCancelled,
};

/// What failed, while doing what, and where. `message` says what the reader can do next.
struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;
  std::string file = {};                     ///< Path (and member inside an archive), or empty.
  std::optional<uint64_t> byte_offset = {};  ///< Offset in the decompressed bytes of `file`.
  std::optional<int32_t> rank = {};          ///< Global rank, when known.

  /// One line: "trace_rank3.json: byte 8192: rank 3: ends inside an event; ...".
  std::string ToString() const;
};

/// Stable lower-case name of a code, such as "corrupt_data".
const char* ErrorCodeName(ErrorCode code);

}  // namespace lockstep
