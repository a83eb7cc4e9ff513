#include "page/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::page {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

void WriteBase64(std::string_view bytes, std::ostream& out) {
  constexpr size_t kGroups = 4096;
  std::array<char, 4 * kGroups> text;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, std::min(bytes.size(), 3 * kGroups));
    bytes.remove_prefix(part.size());
    size_t used = 0;
    for (size_t i = 0; i < part.size(); i += 3) {
      const auto byte = [&](size_t k) -> uint32_t { return k < part.size() ? static_cast<uint8_t>(part[k]) : 0u; };
      const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
      text[used++] = kDigits[group >> 18];
      text[used++] = kDigits[group >> 12 & 63];
      text[used++] = i + 1 < part.size() ? kDigits[group >> 6 & 63] : '=';
      text[used++] = i + 2 < part.size() ? kDigits[group & 63] : '=';
    }
    out.write(text.data(), static_cast<std::streamsize>(used));
  }
}

}  // namespace lockstep::page
