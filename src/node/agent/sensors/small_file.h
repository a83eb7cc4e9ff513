#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

/// Reads files of /proc and /sys: small, often not there, sometimes not to be read.
class SmallFiles {
 public:
  /// Without the line end behind it; nullopt: there is none, or it cannot be read. At most 64 KiB of it.
  std::optional<std::string> Text(const std::string& path);
  /// The whole number that is all of it; nullopt also where it says something else ("N/A (no PMA)").
  std::optional<uint64_t> Number(const std::string& path);
  /// Files that are there and gave nothing.
  size_t skipped_count() const { return skipped_count_; }

 private:
  size_t skipped_count_ = 0;
};

/// Names in a folder, sorted, without those that begin with a dot; at most `most`. Empty: there is none.
std::vector<std::string> NamesIn(const std::string& folder, size_t most = 256);

}  // namespace lockstep::agent
