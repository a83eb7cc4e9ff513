#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text_scan.h"

namespace lockstep::ingest {

/// Reads a text from the left: each call takes what it names or leaves the text as it was. For lines of logs.
class Words : public TextCursor {
 public:
  using TextCursor::TextCursor;

  /// Takes a number, after blanks; a sign is taken too.
  std::optional<int64_t> TakeNumber() {
    const Words before = *this;
    SkipBlanks();
    const std::optional<int64_t> value = Number();
    if (!value) *this = before;
    return value;
  }

  /// Takes hexadecimal digits, with or without "0x"; nullopt also for NCCL documentation's "0x...".
  std::optional<uint64_t> TakeHex() {
    const Words before = *this;
    SkipBlanks();
    Skip("0x");
    const std::optional<uint64_t> value = Number<uint64_t>(16);
    if (!value) *this = before;
    return value;
  }

  /// Takes up to the next space, after blanks.
  std::string_view TakeWord() {
    SkipBlanks();
    return TakeUntil(" ");
  }

  /// Takes up to one of `stops` or the end.
  std::string_view TakeUntil(std::string_view stops) {
    const std::string_view taken = rest().substr(0, rest().find_first_of(stops));
    Skip(taken);
    return taken;
  }
};

/// Nearest int32 of a number from outside; nullopt where it does not fit.
inline std::optional<int32_t> ToInt32(std::optional<int64_t> value) {
  if (!value || *value < INT32_MIN || *value > INT32_MAX) return {};
  return static_cast<int32_t>(*value);
}

/// Calls `handle(line)` for each line, without its end.
template <typename Handler>
void ForEachLine(std::string_view text, Handler&& handle) {
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) handle(line);
}

}  // namespace lockstep::ingest
