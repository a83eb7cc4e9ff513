#include "ingest/bytes/output_limit.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::ingest {
namespace {

// Below this much output no ratio is a danger: a small file of one repeated byte compresses a thousandfold.
constexpr uint64_t kRatioFreeBytes = uint64_t{64} << 20;

}  // namespace

std::optional<Error> OutputLimit::Check(uint64_t produced_bytes, uint64_t consumed_bytes) const {
  if (produced_bytes > limits_.max_output_bytes) {
    return Error{.code = ErrorCode::kLimitExceeded,
                 .message = fmt::format("decompresses to more than {} bytes; if that is intended, raise the limit "
                                        "(--max-json-size)",
                                        limits_.max_output_bytes),
                 .file = name_,
                 .byte_offset = produced_bytes};
  }
  if (produced_bytes > kRatioFreeBytes && produced_bytes / std::max<uint64_t>(limits_.max_ratio, 1) > consumed_bytes) {
    return Error{
        .code = ErrorCode::kLimitExceeded,
        .message = fmt::format("decompresses to more than {} times its size (a decompression bomb?); if that is "
                               "no mistake, raise the limit (--max-compression-ratio) or decompress it first",
                               limits_.max_ratio),
        .file = name_,
        .byte_offset = produced_bytes};
  }
  return std::nullopt;
}

}  // namespace lockstep::ingest
