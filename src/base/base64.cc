#include "base/base64.h"

#include <array>
#include <cstdint>

namespace lockstep {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 0xff;

constexpr std::array<uint8_t, 256> MakeValues() {
  std::array<uint8_t, 256> values{};
  values.fill(kNone);
  for (size_t i = 0; i < kAlphabet.size(); ++i) values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  return values;
}
constexpr std::array<uint8_t, 256> kValues = MakeValues();

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  for (size_t i = 0; i < bytes.size(); i += 3, out += 4) {
    const auto byte = [&](size_t k) -> uint32_t { return k < bytes.size() ? static_cast<uint8_t>(bytes[k]) : 0U; };
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out[0] = kAlphabet[group >> 18];
    out[1] = kAlphabet[group >> 12 & 63];
    if (i + 1 < bytes.size()) out[2] = kAlphabet[group >> 6 & 63];
    if (i + 2 < bytes.size()) out[3] = kAlphabet[group & 63];
  }
  return text;
}

void WriteBase64(std::string_view bytes, std::ostream& out) {
  constexpr size_t kPartBytes = size_t{3} * 4096;  // Whole groups: only the last part has padding.
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kPartBytes);
    bytes.remove_prefix(part.size());
    out << EncodeBase64(part);
  }
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t missing = i + 4 == text.size() ? padding : 0;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const uint8_t value = k < 4 - missing ? kValues[static_cast<uint8_t>(text[i + k])] : uint8_t{0};
      if (value == kNone) return std::nullopt;
      group = group << 6 | value;
    }
    if ((group & ((1U << (8 * missing)) - 1)) != 0) return std::nullopt;  // Bits that stand for nothing.
    for (size_t k = 0; k < 3 - missing; ++k) bytes += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  return bytes;
}

}  // namespace lockstep
