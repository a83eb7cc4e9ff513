#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest {

/// A regular file opened for reading, and its size.
struct OpenedFile {
  UniqueFd fd;
  uint64_t size_bytes = 0;
};

/// Opens a regular file. Never blocks: FIFOs, sockets and devices are refused, not waited for.
/// Errors: kNotFound, kPermissionDenied, kInvalidArgument (not a regular file), kIo.
Result<OpenedFile> OpenRegularFile(const std::string& path);

/// The bytes of a file as they are, from its beginning, or from `offset`.
Result<std::unique_ptr<ByteSource>> OpenRawFile(const std::string& path, uint64_t offset = 0);

/// The bytes of `bytes` as they are.
std::unique_ptr<ByteSource> RawMemory(std::string bytes);

/// Puts the decoder that the first bytes of `raw` ask for on top of it; `name` is used in errors.
/// Errors: those of reading; kUnsupported for a compression that is known and not read (bzip2, lz4, zip).
Result<std::unique_ptr<ByteSource>> Decode(std::unique_ptr<ByteSource> raw, const std::string& name,
                                           const ByteLimits& limits);

}  // namespace lockstep::ingest
