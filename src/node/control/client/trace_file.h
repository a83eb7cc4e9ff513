#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/control/client/trace_window.h"

namespace lockstep::control {

/// A trace that is being brought to a folder: compressed on the way, under a temporary name until it is whole. Gone
/// without a trace when not kept.
class TraceFile {
 public:
  /// `path` without ".gz"; `compress` adds it. The temporary name begins with a dot, in the same folder.
  /// Errors: kIo, kPermissionDenied.
  static Result<std::unique_ptr<TraceFile>> Create(const std::string& path, bool compress);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  Status Write(std::string_view bytes);
  /// Checks that `expected_bytes` came and that they are a whole trace, and gives the file its name.
  /// Errors: kCorruptData, kIo.
  Result<TraceFacts> Keep(uint64_t expected_bytes);

  const std::string& path() const { return path_; }  ///< With its ending.
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Compressor;
  TraceFile();
  Status WriteOut(const char* bytes, size_t count);

  std::string path_;
  std::string temporary_path_;
  int fd_ = -1;
  uint64_t file_bytes_ = 0;
  TraceScanner scanner_;
  std::unique_ptr<Compressor> compressor_;
};

}  // namespace lockstep::control
