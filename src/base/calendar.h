#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace lockstep {

/// Days from 1970-01-01 to a date of the Gregorian calendar; `year` is not negative. A day that the month does not have
/// is one of the next.
int64_t DaysFromEpoch(int64_t year, int64_t month, int64_t day);

/// Date and time of day in UTC.
std::tm Utc(int64_t unix_ns);

/// "20261123T021503Z": as a part of file names.
std::string UtcName(int64_t unix_ns);

}  // namespace lockstep
