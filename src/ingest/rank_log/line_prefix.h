#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ingest {

/// A log's line without what launchers put before it.
struct PrefixedLine {
  std::optional<int32_t> rank;  ///< Global; local ranks ("[default3]:") are none.
  bool is_weak = false;         ///< "3: " alone, which other text may begin with too.
  std::string_view text;
};

/// Takes off any of "[rank3]: " (PyTorch), "[default3]:" (torchrun), "3: " (srun --label), "[1,3]<stderr>:" (Open MPI),
/// "[pod/name/container] " (kubectl), in any order.
PrefixedLine TakePrefixes(std::string_view line);

/// The line without terminal control sequences; `storage` holds it when there were some.
std::string_view WithoutColour(std::string_view line, std::string* storage);

/// "2026-11-21 03:35:23[.5|,5]" or with 'T' within the line's first 96 bytes, with "Z" or "+01:00" where it says so;
/// also torchrun's "2026-11-21_03:35:23".
std::optional<int64_t> TimeOfLine(std::string_view line);

/// glog's "E1121 03:35:23.123456789", PyTorch's "E507 16:21:20.185053341": its letter, and the time given a year;
/// nullopt = the line has none.
struct GlogHead {
  char level = 'I';
  int month = 0;
  int day = 0;
  int64_t time_of_day_ns = 0;
};
std::optional<GlogHead> ReadGlogHead(std::string_view text);

}  // namespace lockstep::ingest
