#include "ingest/flight_recorder/raw_unicode.h"

#include "base/ascii.h"
#include "base/utf8.h"

namespace lockstep::ingest {

std::string FromRawUnicodeEscape(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const size_t digits = rest.starts_with("\\u") ? 4 : rest.starts_with("\\U") ? 8 : 0;
    const auto code_point = digits > 0 ? HexNumber(rest.substr(2), digits) : std::nullopt;
    AppendUtf8(code_point.value_or(static_cast<unsigned char>(rest[0])), &decoded);
    at += code_point ? 2 + digits : 1;
  }
  return decoded;
}

}  // namespace lockstep::ingest
