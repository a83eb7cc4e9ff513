#include "base/bytes_below.h"

#include <system_error>

namespace lockstep {

namespace fs = std::filesystem;

uint64_t BytesBelow(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(fs::symlink_status(path, error))) {
    const uint64_t bytes = fs::file_size(path, error);
    return error ? 0 : bytes;
  }
  uint64_t sum = 0;
  for (fs::recursive_directory_iterator each(path, error), end; !error && each != end; each.increment(error)) {
    std::error_code ignored;
    if (!fs::is_regular_file(each->symlink_status(ignored))) continue;
    const uint64_t bytes = each->file_size(ignored);
    if (!ignored) sum += bytes;
  }
  return sum;
}

}  // namespace lockstep
