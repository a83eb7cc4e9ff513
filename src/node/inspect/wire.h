#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep::inspect {

/// Values as bytes, from a worker (worker.h) to the process that forked it: same machine, same program.
class WireWriter {
 public:
  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  void Put(const Value& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void PutText(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what WireWriter wrote. The worker has read hostile files by then, so nothing is taken for granted: after a
/// short read everything is zero or empty and ok() is false.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <typename Value>
  requires std::is_trivially_copyable_v<Value> Value Get() {
    Value value = {};
    const std::string_view bytes = Take(sizeof(value));
    if (ok_) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  std::string GetText() { return std::string(Take(Get<uint32_t>())); }
  bool ok() const { return ok_; }
  bool done() const { return !ok_ || rest_.empty(); }

 private:
  std::string_view Take(size_t size) {
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace lockstep::inspect
