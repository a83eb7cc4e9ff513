#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::agent {

/// What files of the kernel say; what is odd in them is left out. Times of theirs are in ticks of USER_HZ.

/// "400 Gb/sec (4X NDR)": bytes per second.
std::optional<double> ParsePortRate(std::string_view text);
/// "4: ACTIVE": true.
bool IsActivePort(std::string_view state);

/// Resident pages by /proc/PID/statm; what stat says of them may lag behind.
std::optional<uint64_t> ParseResidentPages(std::string_view statm);
/// Value behind "NAME:" of a line, as in /proc/PID/io and /proc/meminfo (there in kB: as it stands).
std::optional<uint64_t> ValueOfLine(std::string_view text, std::string_view name);

/// Ticks of all processors by mode ("user", "idle", ...), from /proc/stat.
std::vector<std::pair<const char*, uint64_t>> ParseCpuTicks(std::string_view stat);

/// Microseconds by kind ("some", "full"), from a file of /proc/pressure.
std::vector<std::pair<const char*, uint64_t>> ParsePressure(std::string_view text);

struct InterfaceBytes {
  std::string name;
  uint64_t received = 0;
  uint64_t transmitted = 0;
};
/// /proc/net/dev without the loopback; at most 64 interfaces, names printable.
std::vector<InterfaceBytes> ParseInterfaces(std::string_view text);

}  // namespace lockstep::agent
