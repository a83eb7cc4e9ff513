#include "model/log_line/compressed_log.h"

#include "base/text_scan.h"

namespace lockstep::logs {
namespace {

constexpr std::string_view kCommentWords = "lockstep inode ";

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

}  // namespace

std::string CompressedFromComment(uint64_t inode) { return std::string(kCommentWords) + std::to_string(inode); }

std::optional<uint64_t> CompressedFrom(std::string_view gzip_head) {
  // RFC 1952: magic, method, flags, time, extra flags, system; then the optional parts in this order.
  constexpr size_t kFixedBytes = 10;
  constexpr uint8_t kHasExtra = 4, kHasName = 8, kHasComment = 16;
  if (gzip_head.size() < kFixedBytes || !gzip_head.starts_with("\x1f\x8b\x08")) return std::nullopt;
  const uint8_t flags = ByteAt(gzip_head, 3);
  if ((flags & kHasComment) == 0) return std::nullopt;
  gzip_head.remove_prefix(kFixedBytes);
  if ((flags & kHasExtra) != 0) {
    if (gzip_head.size() < 2) return std::nullopt;
    const size_t length = 2 + ByteAt(gzip_head, 0) + 256 * size_t{ByteAt(gzip_head, 1)};
    if (gzip_head.size() < length) return std::nullopt;
    gzip_head.remove_prefix(length);
  }
  if ((flags & kHasName) != 0) {
    const size_t end = gzip_head.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    gzip_head.remove_prefix(end + 1);
  }
  const size_t end = gzip_head.find('\0');
  if (end == std::string_view::npos || !gzip_head.starts_with(kCommentWords)) return std::nullopt;
  return WholeNumber<uint64_t>(gzip_head.substr(kCommentWords.size(), end - kCommentWords.size()));
}

}  // namespace lockstep::logs
