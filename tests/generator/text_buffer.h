#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "generator/byte_sink.h"

namespace lockstep::tracegen {

/// Text on its way to a sink. Writes after Reserve(n) may put n bytes without a check each.
class TextBuffer {
 public:
  explicit TextBuffer(ByteSink* sink) : sink_(sink), data_(new char[kCapacity]) {}

  /// Makes room for `bytes`; passes text on when the buffer is full.
  void Reserve(size_t bytes) {
    if (used_ + bytes > kCapacity) Flush();
  }
  void Flush() {
    uint64_t count = used_;
    if (written_ + count > limit_) count = limit_ > written_ ? limit_ - written_ : 0;
    if (count > 0) sink_->Write(std::string_view(data_.get(), count));
    written_ += used_;
    used_ = 0;
  }
  /// Bytes past this one are dropped.
  void set_limit(uint64_t limit) { limit_ = limit; }
  uint64_t limit() const { return limit_; }
  /// Bytes put so far, dropped ones included.
  uint64_t size() const { return written_ + used_; }

  void Put(std::string_view text) {
    if (!text.empty())
      std::memcpy(data_.get() + used_, text.data(), text.size());  // data() of an empty view may be null.
    used_ += text.size();
  }
  void Put(char c) { data_[used_++] = c; }
  void PutInt(int64_t value) {
    if (value < 0) {
      Put('-');
      PutUnsigned(~static_cast<uint64_t>(value) + 1);
    } else {
      PutUnsigned(static_cast<uint64_t>(value));
    }
  }
  void PutUnsigned(uint64_t value) {
    char digits[20];
    size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) data_[used_++] = digits[--count];
  }
  /// Nanoseconds as microseconds with three decimals.
  void PutMicros(int64_t value_ns) {
    PutInt(value_ns / 1000);
    const auto fraction = static_cast<uint32_t>(value_ns % 1000);
    Put('.');
    Put(static_cast<char>('0' + fraction / 100));
    Put(static_cast<char>('0' + fraction / 10 % 10));
    Put(static_cast<char>('0' + fraction % 10));
  }
  /// The same with trailing zeros dropped but one, as scripts print doubles.
  void PutShortMicros(int64_t value_ns) {
    PutMicros(value_ns);
    for (int i = 0; i < 2 && data_[used_ - 1] == '0'; ++i) --used_;
  }

 private:
  static constexpr size_t kCapacity = size_t{512} << 10;
  ByteSink* sink_;
  std::unique_ptr<char[]> data_;
  size_t used_ = 0;
  uint64_t written_ = 0;
  uint64_t limit_ = UINT64_MAX;
};

}  // namespace lockstep::tracegen
