#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/http/http_message.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::http {

/// An open file and what of it is to be sent.
struct FilePart {
  std::shared_ptr<UniqueFd> file;
  uint64_t file_bytes = 0;
  RangeKind kind = RangeKind::kWhole;
  ByteRange range = {};  ///< For kWhole the whole file.
};

/// The response's `descriptor` or `file`, and the part of it that a Range header asks for; an empty one asks for all.
/// Error: it cannot be opened, or is not a regular file.
Result<FilePart> OpenFilePart(const Response& response, std::string_view range_header);

}  // namespace lockstep::http
