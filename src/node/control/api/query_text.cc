#include "node/control/api/query_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <system_error>

#include "base/ascii.h"
#include "base/split.h"
#include "base/utf8.h"

namespace lockstep::control {
namespace {

bool IsUnreserved(char c) { return IsAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~'; }

std::optional<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
    if (error != std::errc() || end != text.data() + i + 3) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace

std::string EncodeQueryValue(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

Status ReadQueryText(std::string_view text,
                     const std::function<Status(std::string_view name, const std::string& value)>& take) {
  while (!text.empty()) {
    const std::string_view part = TakePart(&text, '&');
    if (part.empty()) continue;
    const std::string_view name = part.substr(0, part.find('='));
    const std::optional<std::string> value =
        Decoded(part.size() > name.size() ? part.substr(name.size() + 1) : std::string_view());
    if (!value) return Error{ErrorCode::kInvalidArgument, fmt::format("{}: a bad escape", Printable(name))};
    RETURN_IF_ERROR(take(name, *value));
  }
  return {};
}

Result<int64_t> ReadQueryNumber(std::string_view name, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: '{}' is not a whole number", name, Printable(text))};
  }
  return value;
}

Result<uint64_t> ReadQueryNumber(std::string_view name, std::string_view text, uint64_t least, uint64_t most) {
  ASSIGN_OR_RETURN(const int64_t value, ReadQueryNumber(name, text));
  const auto number = static_cast<uint64_t>(value);
  if (number >= least && number <= most) return number;
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} is {}, outside {} .. {}", name, number, least, most)};
}

}  // namespace lockstep::control
