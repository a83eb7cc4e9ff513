#include "base/error.h"

#include <fmt/format.h>

namespace lockstep {

std::string Error::ToString() const {
  std::string text;
  if (!file.empty()) text += file + ": ";
  if (byte_offset) text += fmt::format("byte {}: ", *byte_offset);
  if (rank) text += fmt::format("rank {}: ", *rank);
  return text + message;
}

const char* ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kPermissionDenied: return "permission_denied";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kCorruptData: return "corrupt_data";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kLimitExceeded: return "limit_exceeded";
    case ErrorCode::kFailedPrecondition: return "failed_precondition";
    case ErrorCode::kCancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace lockstep
