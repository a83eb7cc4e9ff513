#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::ingest {

/// Decimal text to an integer count of the unit that is 10^`digits` times smaller, exactly: seconds to nanoseconds with
/// 9, milliseconds with 6. Digits past that are rounded half away from zero. Absent: not a number, or outside int64.
std::optional<int64_t> DecimalToInt(std::string_view text, int digits);

/// Decimal text in microseconds to integer nanoseconds, exactly: "12.5" -> 12500, "-3" -> -3000, "1.5e3" -> 1500000.
/// Digits past the nanosecond are rounded half away from zero. Absent: not a number, or outside int64.
std::optional<int64_t> MicrosecondsToNs(std::string_view text);

/// Decimal integer text; a fraction of zeros ("5.0") is allowed. Absent: not an integer, or outside int64.
std::optional<int64_t> ParseInt64(std::string_view text);
std::optional<uint64_t> ParseUint64(std::string_view text);

}  // namespace lockstep::ingest
