#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/aggregate.h"
#include "base/column.h"
#include "base/result.h"

namespace lockstep {

/// Converts values to bytes and back, between processes of one program on machines of one kind: byte order and layout
/// are the machine's, and there is no version. Not for files.
/// What it takes: numbers, enumerations, ids, strings, pair, optional, array, vector, map, set, Column, and every plain
/// struct of such members, without a listing of them (base/aggregate.h). A class with private members has
/// `template <typename Archive> void Fields(Archive& archive, T& value)` in its namespace, which hands on what it
/// holds; Archive::kReads tells which way.
namespace archive_internal {

template <typename T>
struct IsPair : std::false_type {};
template <typename A, typename B>
struct IsPair<std::pair<A, B>> : std::true_type {};

template <typename T, template <typename...> typename Container>
struct IsA : std::false_type {};
template <template <typename...> typename Container, typename... Args>
struct IsA<Container<Args...>, Container> : std::true_type {};

template <typename T>
struct IsArray : std::false_type {};
template <typename T, size_t kSize>
struct IsArray<std::array<T, kSize>> : std::true_type {};

/// Values whose bytes are all there is to them.
template <typename T>
inline constexpr bool kIsPlain = (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_enum_v<T>;
template <typename T>
requires(std::is_aggregate_v<T>&& requires { typename T::ValueType; } &&
         sizeof(T) == sizeof(typename T::ValueType)) inline constexpr bool kIsPlain<T> =
    kIsPlain<typename T::ValueType>;  // base/ids.h

template <typename T, typename Archive>
concept HasFields = requires(Archive& archive, T& value) {
  Fields(archive, value);
};

}  // namespace archive_internal

/// Appends values to a string of bytes.
class ArchiveWriter {
 public:
  static constexpr bool kReads = false;

  template <typename... Ts>
  void operator()(const Ts&... values) {
    (Write(values), ...);
  }
  std::string TakeBytes() { return std::move(bytes_); }

 private:
  void WriteBytes(const void* from, size_t count) {
    if (count != 0) bytes_.append(static_cast<const char*>(from), count);
  }
  void WriteCount(size_t count) {
    const uint64_t wide = count;
    WriteBytes(&wide, sizeof(wide));
  }

  template <typename T>
  void Write(const T& value) {
    namespace in = archive_internal;
    if constexpr (std::is_same_v<T, bool>) {
      bytes_.push_back(value ? 1 : 0);
    } else if constexpr (in::kIsPlain<T>) {
      WriteBytes(&value, sizeof(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      WriteCount(value.size());
      bytes_ += value;
    } else if constexpr (in::IsPair<T>::value) {
      (*this)(value.first, value.second);
    } else if constexpr (in::IsA<T, std::optional>::value) {
      Write(value.has_value());
      if (value) Write(*value);
    } else if constexpr (in::IsArray<T>::value) {
      for (const auto& element : value) Write(element);
    } else if constexpr (in::IsA<T, std::vector>::value || in::IsA<T, Column>::value) {
      WriteCount(value.size());
      using Element = std::decay_t<decltype(value[0])>;
      if constexpr (in::kIsPlain<Element>) {
        WriteBytes(value.data(), value.size() * sizeof(Element));
      } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
        for (const bool element : value) Write(element);
      } else {
        for (const auto& element : value) Write(element);
      }
    } else if constexpr (in::IsA<T, std::map>::value || in::IsA<T, std::set>::value) {
      WriteCount(value.size());
      for (const auto& element : value) Write(element);
    } else if constexpr (in::HasFields<T, ArchiveWriter>) {
      Fields(*this, const_cast<T&>(value));  // One listing serves both ways; this one only reads.
    } else {
      static_assert(std::is_aggregate_v<T>, "this type needs a Fields() of its own: base/archive.h");
      VisitMembers(value, [&](const auto&... members) { (Write(members), ...); });
    }
  }

  std::string bytes_;
};

/// Reads values from bytes that an ArchiveWriter of the same types made. If the bytes end too early, the remaining
/// values are left as they were, and Finish() returns an error.
class ArchiveReader {
 public:
  static constexpr bool kReads = true;

  /// `bytes` outlives the reader.
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {}

  template <typename... Ts>
  void operator()(Ts&... values) {
    (Read(values), ...);
  }
  bool failed() const { return failed_; }
  /// Errors: kCorruptData when the bytes ended early, or when some are left.
  Status Finish() const {
    if (failed_) return Error{ErrorCode::kCorruptData, "the bytes of another process end inside a value"};
    if (!rest_.empty()) return Error{ErrorCode::kCorruptData, "bytes of another process are left over"};
    return {};
  }

 private:
  bool ReadBytes(void* to, size_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      return false;
    }
    if (count != 0) std::memcpy(to, rest_.data(), count);
    rest_.remove_prefix(count);
    return true;
  }
  /// 0 when there cannot be so many: an element takes a byte at least.
  size_t ReadCount() {
    uint64_t count = 0;
    if (!ReadBytes(&count, sizeof(count))) return 0;
    if (count > rest_.size()) {
      failed_ = true;
      return 0;
    }
    return static_cast<size_t>(count);
  }

  template <typename T>
  void Read(T& value) {
    namespace in = archive_internal;
    if constexpr (std::is_same_v<T, bool>) {
      char byte = 0;
      if (ReadBytes(&byte, 1)) value = byte != 0;
    } else if constexpr (in::kIsPlain<T>) {
      ReadBytes(&value, sizeof(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      value.resize(ReadCount());
      ReadBytes(value.data(), value.size());
    } else if constexpr (in::IsPair<T>::value) {
      (*this)(value.first, value.second);
    } else if constexpr (in::IsA<T, std::optional>::value) {
      bool has_value = false;
      Read(has_value);
      T made;
      if (has_value && !failed_) Read(made.emplace());
      value = std::move(made);
    } else if constexpr (in::IsArray<T>::value) {
      for (auto& element : value) Read(element);
    } else if constexpr (in::IsA<T, std::vector>::value || in::IsA<T, Column>::value) {
      ReadList(value);
    } else if constexpr (in::IsA<T, std::map>::value) {
      value.clear();
      const size_t count = ReadCount();
      for (size_t i = 0; i < count && !failed_; ++i) {
        std::pair<typename T::key_type, typename T::mapped_type> element{};
        Read(element);
        if (!failed_) value.emplace_hint(value.end(), std::move(element));
      }
    } else if constexpr (in::IsA<T, std::set>::value) {
      value.clear();
      const size_t count = ReadCount();
      for (size_t i = 0; i < count && !failed_; ++i) {
        typename T::key_type element{};
        Read(element);
        if (!failed_) value.insert(value.end(), std::move(element));
      }
    } else if constexpr (in::HasFields<T, ArchiveReader>) {
      Fields(*this, value);
    } else {
      static_assert(std::is_aggregate_v<T>, "this type needs a Fields() of its own: base/archive.h");
      VisitMembers(value, [&](auto&... members) { (Read(members), ...); });
    }
  }

  template <typename List>
  void ReadList(List& list) {
    using Element = std::conditional_t<std::is_same_v<List, std::vector<bool>>, bool, std::decay_t<decltype(list[0])>>;
    list.clear();
    const size_t count = ReadCount();
    if constexpr (archive_internal::kIsPlain<Element>) {
      if (count > rest_.size() / sizeof(Element)) {
        failed_ = true;
        return;
      }
      list.resize(count);
      ReadBytes(list.data(), count * sizeof(Element));
    } else {
      list.reserve(std::min(count, rest_.size() / sizeof(Element) + 1));
      for (size_t i = 0; i < count && !failed_; ++i) {
        Element element{};
        Read(element);
        if (!failed_) list.push_back(std::move(element));
      }
    }
  }

  std::string_view rest_;
  bool failed_ = false;
};

template <typename T>
std::string ToBytes(const T& value) {
  ArchiveWriter writer;
  writer(value);
  return writer.TakeBytes();
}

/// Errors: kCorruptData when `bytes` are not a T.
template <typename T>
Result<T> FromBytes(std::string_view bytes) {
  T value{};
  ArchiveReader reader(bytes);
  reader(value);
  RETURN_IF_ERROR(reader.Finish());
  return value;
}

}  // namespace lockstep
