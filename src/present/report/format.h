#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::report {

/// Numbers for people: three significant digits and a unit, at most 8 columns; an absent value is "-".
/// Rounding carries into the next unit: 999,600 ns is "1.00 ms".

/// "0", "812 ns", "1.23 us", "45.6 ms", "12.0 s", "21.3 min", "13.1 h", "20.1 d"; the sign is kept.
std::string FormatDuration(int64_t ns);
std::string FormatDuration(std::optional<int64_t> ns);
/// Of a mean or an estimate, rounded to whole nanoseconds first.
std::string FormatMeanDuration(double ns);

/// "512 B", "1.50 KiB", "12.3 MiB": powers of 1024.
std::string FormatBytes(int64_t bytes);
std::string FormatBytes(std::optional<int64_t> bytes);

/// "12.3 GB/s": powers of 1000.
std::string FormatRate(std::optional<double> bytes_per_s);

/// "1,234,567".
std::string FormatCount(uint64_t count);

/// "42 %", "3.1 %" below ten, "<0.1 %" for a small share that is not zero; `ratio` 1 = 100 %.
std::string FormatPercent(std::optional<double> ratio);
/// FormatPercent of part / whole; "-" where the whole is not above 0.
std::string FormatShare(int64_t part, int64_t whole);

/// A mean or length without unit: "2.40", "134".
std::string FormatNumber(double value);

}  // namespace lockstep::report
