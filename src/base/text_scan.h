#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace lockstep {

/// The lines of a text, without their ends (\n or \r\n); the last one needs none.
class LineScanner {
 public:
  explicit LineScanner(std::string_view text) : rest_(text) {}
  /// False at the end.
  bool Next(std::string_view* line) {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    *line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
    ++number_;
    return true;
  }
  uint64_t number() const { return number_; }  ///< Of the last line, from 1.
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  uint64_t number_ = 0;
};

/// Takes text apart from its beginning; what does not match leaves it as it was.
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : rest_(text) {}
  std::string_view rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }

  bool Skip(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void SkipBlanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  /// Goes behind the first `word`, wherever it is.
  bool SkipPast(std::string_view word) {
    const size_t at = rest_.find(word);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + word.size());
    return true;
  }
  /// What stands before the first `word`, and goes behind it.
  std::optional<std::string_view> Until(std::string_view word) {
    const size_t at = rest_.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = rest_.substr(0, at);
    rest_.remove_prefix(at + word.size());
    return before;
  }
  /// `base`: of whole numbers.
  template <typename T = int64_t>
  requires std::is_arithmetic_v<T> std::optional<T> Number(int base = 10) {
    T value{};
    std::from_chars_result read;
    if constexpr (std::is_integral_v<T>) {
      read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    } else {
      read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    }
    if (read.ec != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(read.ptr - rest_.data()));
    return value;
  }

 private:
  std::string_view rest_;
};

/// The number that `text` begins with.
template <typename T = int64_t>
std::optional<T> LeadingNumber(std::string_view text, int base = 10) {
  return TextCursor(text).Number<T>(base);
}

/// The whole of `text` as a number.
template <typename T = int64_t>
std::optional<T> WholeNumber(std::string_view text, int base = 10) {
  TextCursor cursor(text);
  const std::optional<T> value = cursor.Number<T>(base);
  return value && cursor.empty() ? value : std::nullopt;
}

/// The same into a variable, which stays where it is none.
template <typename T>
bool ReadNumber(std::string_view text, T* number, int base = 10) {
  const std::optional<T> read = WholeNumber<T>(text, base);
  if (read) *number = *read;
  return read.has_value();
}

}  // namespace lockstep
