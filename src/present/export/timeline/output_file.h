#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::timeline {

/// Bytes on their way to a file. Errors are kept: the first one comes from Close.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Write(std::string_view bytes) = 0;
  /// Everything is on its way to the disk. Nothing may be written afterwards.
  virtual Status Close() = 0;
};

/// A new file that replaces `path` when it is whole. Where the file system can, it has no name until Commit, so that
/// nothing is left of it however the program ends; elsewhere it is "NAME.part-PID" and removed when not committed.
class OutputFile {
 public:
  /// Errors: kIo, kPermissionDenied, kNotFound (no such folder).
  static Result<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  int fd() const { return fd_.get(); }
  /// Bytes in the file now.
  uint64_t size_bytes() const;
  Status Commit();

 private:
  OutputFile(std::string path, std::string temporary_path, bool has_name, UniqueFd fd);
  std::string path_;
  std::string temporary_path_;
  bool has_name_;  ///< temporary_path_ exists.
  UniqueFd fd_;
};

/// Buffered writes to `fd`, which stays the caller's.
std::unique_ptr<ByteSink> PlainSink(int fd, std::string name);
/// The same, as one gzip member.
std::unique_ptr<ByteSink> GzipSink(int fd, std::string name);

}  // namespace lockstep::timeline
