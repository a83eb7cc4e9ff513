#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "inside/log_write/rotated_compressor.h"

namespace lockstep::logs {

struct RotatingFileOptions {
  std::string path;
  uint64_t max_bytes = 100'000'000;  ///< Of each file; a longer line has one to itself.
  int file_count = 5;                ///< In all, the one that is written among them; 1 to 999.
  bool compresses = false;           ///< Rotated ones become PATH.1.gz and so on (rotated_compressor.h).
};

/// A file of whole lines: when it is full it becomes PATH.1, what was PATH.1 becomes PATH.2 (compressed ones too), and
/// the oldest goes. What Write has returned from survives the death of the process. Never leaves half a line behind
/// where the system lets it. Not thread-safe.
class RotatingFile {
 public:
  /// Makes the folder and a new file, "PATH" with "-2" and so on where that is taken. Errors: kIo, kPermissionDenied.
  static Result<RotatingFile> Create(RotatingFileOptions options);

  /// Appends lines, each with its end. Errors: kIo (a full disk, say): some of the first lines were written; the
  /// others can be tried again. `written_bytes`, where it is not null: how much was.
  Status Write(std::string_view lines, size_t* written_bytes = nullptr);

  const std::string& path() const { return options_.path; }

 private:
  RotatingFile(RotatingFileOptions options, UniqueFd fd);
  Status Rotate();
  /// Every file becomes one older, this one PATH.1.
  Status MakeWay();
  /// As many whole lines as can be; `written` grows by them.
  Status WriteWhole(std::string_view lines, size_t* written);

  RotatingFileOptions options_;
  UniqueFd fd_;
  uint64_t size_bytes_ = 0;
  std::unique_ptr<RotatedCompressor> compressor_;  ///< Null: rotated files stay as they are.
  bool has_cut_line_ = false;                      ///< The file ends in half a line that could not be taken back.
};

}  // namespace lockstep::logs
