#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lockstep::ingest::perfetto {

/// Reads a varint at the beginning of `bytes`. Returns its length, 0 when the bytes end inside it or it is too long.
inline size_t ReadVarint(std::string_view bytes, uint64_t* value) {
  uint64_t read = 0;
  for (size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    read |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      *value = read;
      return i + 1;
    }
  }
  return 0;
}

/// Walks the fields of one protobuf message without knowing its schema. Nothing is copied; every length is checked.
///   FieldWalker fields(bytes);
///   while (fields.Next()) switch (fields.number()) { case 8: time = fields.value(); ... }
///   if (fields.broken()) ...
class FieldWalker {
 public:
  explicit FieldWalker(std::string_view bytes) : rest_(bytes) {}

  /// Goes to the next field. False at the end, or where the bytes are not message.
  bool Next() {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    const size_t length = ReadVarint(rest_, &tag);
    if (length == 0 || tag >> 3 == 0 || tag >> 3 > kLargestNumber) return Break();
    rest_.remove_prefix(length);
    number_ = static_cast<uint32_t>(tag >> 3);
    text_ = {};
    switch (tag & 7) {
      case 0: {
        const size_t size = ReadVarint(rest_, &value_);
        if (size == 0) return Break();
        rest_.remove_prefix(size);
        return true;
      }
      case 1: return Fixed<uint64_t>();
      case 5: return Fixed<uint32_t>();
      case 2: {
        uint64_t size = 0;
        const size_t head = ReadVarint(rest_, &size);
        if (head == 0 || size > rest_.size() - head) return Break();
        text_ = rest_.substr(head, size);
        rest_.remove_prefix(head + size);
        value_ = 0;
        return true;
      }
      default: return Break();
    }
  }

  uint32_t number() const { return number_; }
  uint64_t value() const { return value_; }                              ///< Varint or fixed; 0 for text.
  int64_t signed_value() const { return static_cast<int64_t>(value_); }  ///< int32, int64.
  double double_value() const { return std::bit_cast<double>(value_); }
  std::string_view text() const { return text_; }  ///< String, bytes or message.
  bool broken() const { return broken_; }

 private:
  static constexpr uint64_t kLargestNumber = (uint64_t{1} << 29) - 1;

  template <typename Value>
  bool Fixed() {
    if (rest_.size() < sizeof(Value)) return Break();
    Value value = 0;
    std::memcpy(&value, rest_.data(), sizeof(Value));  // Little-endian, as the machines that this runs on.
    value_ = value;
    rest_.remove_prefix(sizeof(Value));
    return true;
  }
  bool Break() {
    broken_ = true;
    rest_ = {};
    return false;
  }

  std::string_view rest_;
  std::string_view text_;
  uint64_t value_ = 0;
  uint32_t number_ = 0;
  bool broken_ = false;
};

}  // namespace lockstep::ingest::perfetto
