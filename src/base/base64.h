#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Base64 (RFC 4648, padded, no line breaks).
std::string EncodeBase64(std::string_view bytes);
/// The bytes; nullopt for anything that EncodeBase64 would not have written.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace lockstep
