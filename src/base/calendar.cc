#include "base/calendar.h"

#include <fmt/format.h>

#include "base/nanoseconds.h"

namespace lockstep {

int64_t DaysFromEpoch(int64_t year, int64_t month, int64_t day) {
  // Years from March: the leap day is a year's last.
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = y / 400;
  const int64_t of_era = y - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

std::tm Utc(int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / kSecondNs);
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

std::string UtcName(int64_t unix_ns) {
  const std::tm t = Utc(unix_ns);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min,
                     t.tm_sec);
}

}  // namespace lockstep
