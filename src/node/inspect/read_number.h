#pragma once

#include <optional>
#include <string_view>

#include "base/text_scan.h"

namespace lockstep::inspect {

/// The whole of `text` as a number, without a sign of its base ("0x"); false where it is none.
template <typename Number>
bool ReadNumber(std::string_view text, Number* number, int base = 10) {
  const std::optional<Number> read = WholeNumber<Number>(text, base);
  if (read) *number = *read;
  return read.has_value();
}

}  // namespace lockstep::inspect
