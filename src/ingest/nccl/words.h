#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::ingest {

/// Reads a text from the left: each call takes what it names or leaves the text as it was. For lines of logs.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view rest() const { return text_; }
  bool empty() const { return text_.empty(); }

  /// Takes this text, if it stands here.
  bool Take(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }

  /// Goes behind the next `expected`, if there is one.
  bool SkipPast(std::string_view expected) {
    const size_t at = text_.find(expected);
    if (at == std::string_view::npos) return false;
    text_.remove_prefix(at + expected.size());
    return true;
  }

  void SkipSpaces() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t')) text_.remove_prefix(1);
  }

  /// Takes a number, after spaces; a sign is taken too.
  std::optional<int64_t> TakeNumber() {
    const Words before = *this;
    SkipSpaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) {
      *this = before;
      return {};
    }
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }

  /// Takes hexadecimal digits, with or without "0x"; nullopt also for NCCL documentation's "0x...".
  std::optional<uint64_t> TakeHex() {
    const Words before = *this;
    SkipSpaces();
    Take("0x");
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value, 16);
    if (error != std::errc()) {
      *this = before;
      return {};
    }
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }

  /// Takes up to the next space, after spaces.
  std::string_view TakeWord() {
    SkipSpaces();
    const size_t end = text_.find(' ');
    const std::string_view word = text_.substr(0, end);
    text_.remove_prefix(word.size());
    return word;
  }

  /// Takes up to one of `stops` or the end.
  std::string_view TakeUntil(std::string_view stops) {
    const std::string_view taken = text_.substr(0, text_.find_first_of(stops));
    text_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view text_;
};

/// Nearest int32 of a number from outside; nullopt where it does not fit.
inline std::optional<int32_t> ToInt32(std::optional<int64_t> value) {
  if (!value || *value < INT32_MIN || *value > INT32_MAX) return {};
  return static_cast<int32_t>(*value);
}

/// Calls `handle(line)` for each line, without its end.
template <typename Handler>
void ForEachLine(std::string_view text, Handler&& handle) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    handle(line);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace lockstep::ingest
