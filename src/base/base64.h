#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace lockstep {

/// Base64 (RFC 4648, padded, no line breaks).
std::string EncodeBase64(std::string_view bytes);
/// The same to a stream, in parts: for what is large.
void WriteBase64(std::string_view bytes, std::ostream& out);
/// The bytes; nullopt for anything that EncodeBase64 would not have written.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace lockstep
