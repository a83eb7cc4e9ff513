#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest::nsight {

/// Lines of a stream, one after another. One that is longer than 256 MiB is left out and counted.
class LineReader {
 public:
  explicit LineReader(ByteSource& source) : source_(source), window_(size_t{1} << 20) {}

  /// Goes to the next line that is not empty; false at the end. A damaged stream ends at its damage, which is cut().
  /// Errors: those of the source but kCorruptData.
  Result<bool> Next();
  /// Without its end; there are `padding` bytes behind it that may be read.
  std::string_view line() const { return std::string_view(line_).substr(0, size_); }
  static constexpr size_t kPadding = 64;

  uint64_t byte_count() const { return byte_count_; }
  uint64_t too_long_count() const { return too_long_count_; }
  const std::optional<Error>& cut() const { return cut_; }

 private:
  Status Fill();

  ByteSource& source_;
  std::vector<char> window_;
  size_t at_ = 0;
  size_t end_ = 0;
  bool is_at_end_ = false;
  std::string line_;
  size_t size_ = 0;
  uint64_t byte_count_ = 0;
  uint64_t too_long_count_ = 0;
  std::optional<Error> cut_;
};

}  // namespace lockstep::ingest::nsight
