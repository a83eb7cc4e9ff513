#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::logs {

/// What the header of a gzip file that a log became says as its comment: the number that the plain file had, so that
/// who reads that one knows it again.
std::string CompressedFromComment(uint64_t inode);

/// The inode, from the first bytes of a gzip file; nullopt: it says none.
std::optional<uint64_t> CompressedFrom(std::string_view gzip_head);
inline constexpr size_t kCompressedHeadBytes = 512;  ///< So many are enough.

}  // namespace lockstep::logs
