#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

namespace lockstep::ingest::test {

/// Writes a pickle as PyTorch's writer does: protocol 2, texts numbered by value when they first occur.
class PickleWriter {
 public:
  PickleWriter() { bytes_ = "\x80\x02"; }

  PickleWriter& Op(uint8_t opcode) {
    bytes_ += static_cast<char>(opcode);
    return *this;
  }
  PickleWriter& Mark() { return Op('('); }
  PickleWriter& Dict() { return Op('}').Mark(); }
  PickleWriter& EndDict() { return Op('u'); }
  PickleWriter& List() { return Op(']').Mark(); }
  PickleWriter& EndList() { return Op('e'); }
  PickleWriter& None() { return Op('N'); }
  PickleWriter& Bool(bool value) { return Op(value ? 0x88 : 0x89); }

  PickleWriter& Int(int64_t value) {
    if (value >= 0 && value <= UINT8_MAX) return Op('K').Raw(static_cast<uint8_t>(value));
    if (value >= 0 && value <= UINT16_MAX) return Op('M').Raw(static_cast<uint16_t>(value));
    if (value >= INT32_MIN && value <= INT32_MAX) return Op('J').Raw(static_cast<int32_t>(value));
    return Op(0x8a).Raw(uint8_t{8}).Raw(value);
  }
  PickleWriter& Float(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return Op('G').Raw(__builtin_bswap64(bits));
  }
  PickleWriter& Text(const std::string& text) {
    if (const auto known = memo_.find(text); known != memo_.end()) return Get(known->second);
    Op('X').Raw(static_cast<uint32_t>(text.size()));
    bytes_ += text;
    memo_.emplace(text, memo_size_);
    Put();
    return *this;
  }

  /// Numbers what was written last, as is done with frames; the number.
  uint32_t Put() {
    if (memo_size_ <= UINT8_MAX) {
      Op('q').Raw(static_cast<uint8_t>(memo_size_));
    } else {
      Op('r').Raw(memo_size_);
    }
    return memo_size_++;
  }
  PickleWriter& Get(uint32_t number) {
    if (number <= UINT8_MAX) return Op('h').Raw(static_cast<uint8_t>(number));
    return Op('j').Raw(number);
  }

  template <typename T>
  requires std::is_arithmetic_v<T> PickleWriter& Raw(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  PickleWriter& Raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }

  std::string Take() { return std::move(Op('.').bytes_); }

 private:
  std::string bytes_;
  std::unordered_map<std::string, uint32_t> memo_;
  uint32_t memo_size_ = 0;
};

}  // namespace lockstep::ingest::test
