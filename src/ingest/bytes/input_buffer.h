#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest {

/// Compressed bytes of a raw source, held for a decoder: `data()` .. `size()` are there and not yet taken.
class InputBuffer {
 public:
  static constexpr size_t kCapacity = size_t{128} << 10;

  InputBuffer(std::unique_ptr<ByteSource> raw, std::string_view prefix)
      : raw_(std::move(raw)), buffer_(std::make_unique_for_overwrite<char[]>(kCapacity)), end_(prefix.size()) {
    std::memcpy(buffer_.get(), prefix.data(), prefix.size());
  }

  const char* data() const { return buffer_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  void Take(size_t count) {
    begin_ += count;
    taken_ += count;
  }

  /// Moves what is left to the front and reads on. Nothing is added only at the end of the raw source (or when full).
  Status Refill() {
    std::memmove(buffer_.get(), data(), size());
    end_ = size();
    begin_ = 0;
    if (end_ == kCapacity || at_end_) return {};
    auto got = raw_->Read({buffer_.get() + end_, kCapacity - end_});
    if (!got) return std::move(got).error();
    at_end_ = *got == 0;  // A short read may also be the last one before an error, which the next call brings.
    end_ += *got;
    return {};
  }

  bool exhausted() const { return at_end_ && size() == 0; }  ///< No byte is left, here or in the raw source.
  uint64_t taken_bytes() const { return taken_; }
  const ByteSource& raw() const { return *raw_; }

 private:
  std::unique_ptr<ByteSource> raw_;
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t taken_ = 0;
  bool at_end_ = false;
};

/// Whether bytes that follow the end of a compressed stream are more than padding: zeros and a few odd bytes are what
/// tapes and copy tools leave, text or a second magic number is data that would be lost silently.
bool LooksLikeData(std::string_view rest);

}  // namespace lockstep::ingest
