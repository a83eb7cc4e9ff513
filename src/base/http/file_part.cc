#include "base/http/file_part.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace lockstep::http {

Result<FilePart> OpenFilePart(const Response& response, std::string_view range_header) {
  FilePart part;
  part.file = response.descriptor;
  if (!part.file) {
    // Not blocking, should it be a pipe.
    part.file = std::make_shared<UniqueFd>(::open(response.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  }
  struct stat about = {};
  if (!part.file->valid() || ::fstat(part.file->get(), &about) != 0) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = fmt::format("The file cannot be read: {}", std::generic_category().message(errno))};
  }
  if (!S_ISREG(about.st_mode)) return Error{.code = ErrorCode::kNotFound, .message = "This is not a regular file"};
  part.file_bytes = static_cast<uint64_t>(about.st_size);
  part.range = {0, part.file_bytes};
  if (!range_header.empty()) part.kind = ReadRange(range_header, part.file_bytes, &part.range);
  return part;
}

}  // namespace lockstep::http
