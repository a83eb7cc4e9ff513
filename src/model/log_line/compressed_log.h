#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::logs {

/// The comment in the header of a log's gzip file: the inode number of the plain file, so that a reader of the plain
/// file recognises it.
std::string CompressedFromComment(uint64_t inode);

/// The inode, from the first bytes of a gzip file; nullopt: it says none.
std::optional<uint64_t> CompressedFrom(std::string_view gzip_head);
inline constexpr size_t kCompressedHeadBytes = 512;  ///< So many are enough.

}  // namespace lockstep::logs
