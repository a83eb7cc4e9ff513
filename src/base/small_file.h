#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace lockstep {

/// Reads an open file to its end, or at most `limit_bytes` of it. Nullopt: nothing could be read; errno says why.
/// Bytes read before an error are returned: a process may end between two reads of its files.
std::optional<std::string> ReadSome(int fd, size_t limit_bytes);

/// ReadSome() of a file, those of /proc and /sys too, which have no size. Throws nothing, as the iterators of a
/// std::ifstream do for a folder and for a file of a process that is gone.
std::optional<std::string> ReadSmallFile(const std::string& path, size_t limit_bytes = size_t{64} << 10);

}  // namespace lockstep
