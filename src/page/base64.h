#pragma once

#include <ostream>
#include <string_view>

namespace lockstep::page {

/// Writes bytes as base64 (RFC 4648, padded, no line breaks).
void WriteBase64(std::string_view bytes, std::ostream& out);

}  // namespace lockstep::page
