#include "ingest/torch_trace/decimal.h"

#include <charconv>

#include "base/ascii.h"
#include "base/text_scan.h"

namespace lockstep::ingest {
namespace {

/// value = value * 10 + digit, false on overflow.
bool PushDigit(int64_t* value, char digit) {
  return !__builtin_mul_overflow(*value, int64_t{10}, value) &&
         !__builtin_add_overflow(*value, int64_t{digit - '0'}, value);
}

}  // namespace

std::optional<int64_t> DecimalToInt(std::string_view text, int digits) {
  size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++i;
  const size_t int_begin = i;
  while (i < text.size() && IsDigit(text[i])) ++i;
  const std::string_view whole = text.substr(int_begin, i - int_begin);
  std::string_view fraction;
  if (i < text.size() && text[i] == '.') {
    const size_t begin = ++i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    fraction = text.substr(begin, i - begin);
  }
  if (whole.empty()) return std::nullopt;
  int exponent = 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (error != std::errc() || exponent > 30 || exponent < -400) return std::nullopt;
    i = static_cast<size_t>(end - text.data());
  }
  if (i != text.size()) return std::nullopt;

  // The digits without their point; `scale` of them (which may reach past either end) make up the result.
  const auto digit_count = static_cast<int64_t>(whole.size() + fraction.size());
  const int64_t scale = static_cast<int64_t>(whole.size()) + exponent + digits;
  const auto digit_at = [&](int64_t k) {
    if (k >= digit_count) return '0';
    const auto index = static_cast<size_t>(k);
    return index < whole.size() ? whole[index] : fraction[index - whole.size()];
  };
  int64_t value = 0;
  for (int64_t k = 0; k < scale; ++k) {
    if (!PushDigit(&value, digit_at(k))) return std::nullopt;
  }
  if (scale >= 0 && scale < digit_count && digit_at(scale) >= '5' && __builtin_add_overflow(value, int64_t{1}, &value))
    return std::nullopt;
  return negative ? -value : value;
}

std::optional<int64_t> MicrosecondsToNs(std::string_view text) { return DecimalToInt(text, 3); }

std::optional<int64_t> ParseInt64(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const char* cursor = end;
  const char* const stop = text.data() + text.size();
  if (cursor < stop && *cursor == '.') {
    ++cursor;
    while (cursor < stop && *cursor == '0') ++cursor;
  }
  if (cursor != stop) return std::nullopt;
  return value;
}

std::optional<uint64_t> ParseUint64(std::string_view text) { return WholeNumber<uint64_t>(text); }

}  // namespace lockstep::ingest
