#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep {

/// Bytes of a regular file, or of all regular files below a folder. Links are not followed; what cannot be read counts
/// nothing.
uint64_t BytesBelow(const std::filesystem::path& path);

}  // namespace lockstep
