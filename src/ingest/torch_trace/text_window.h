#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest {

/// A sliding window over a ByteSource. Unread text is kept when the window moves; vector loads may touch kSlack bytes
/// before and kPadding bytes behind the text without reading text that is not there (the padding is zeros).
class TextWindow {
 public:
  static constexpr size_t kSlack = 64;
  static constexpr size_t kPadding = 2048;

  TextWindow(ByteSource& source, size_t window_bytes);

  const char* begin() const { return cursor_; }
  const char* end() const { return end_; }
  bool at_end_of_data() const { return at_end_; }
  /// Offset of `position` in the decompressed data.
  uint64_t OffsetOf(const char* position) const { return end_offset_ - static_cast<uint64_t>(end_ - position); }
  /// Everything before `position` was read.
  void ConsumeTo(const char* position) { cursor_ = position; }

  /// Reads more text behind what is unread. Grows when the window is full of unread text. False at the end of the data
  /// or on an error, which stream_error() then tells.
  bool Refill();
  const std::optional<Error>& stream_error() const { return stream_error_; }
  uint64_t total_bytes() const { return end_offset_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  void Allocate(size_t capacity);

  ByteSource& source_;
  std::unique_ptr<char, Free> memory_;
  size_t capacity_ = 0;  // Text bytes that fit between slack and padding.
  const char* cursor_ = nullptr;
  const char* end_ = nullptr;
  uint64_t end_offset_ = 0;
  bool at_end_ = false;
  std::optional<Error> stream_error_;
};

}  // namespace lockstep::ingest
