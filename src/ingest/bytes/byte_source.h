#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace lockstep::ingest {

enum class Compression : uint8_t { kNone, kGzip, kZstd, kXz };

struct ByteLimits {
  /// Decompression stops with kLimitExceeded past this many output bytes ...
  uint64_t max_output_bytes = uint64_t{1} << 40;
  /// ... or when the output is this many times the input (after the first 64 MiB of output): a decompression bomb.
  uint64_t max_ratio = 2000;
};

/// A stream of decompressed bytes. One reader, one thread.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Fills `window` from its beginning; short only at the end of the data. 0 = end.
  /// Errors: kIo; kCorruptData when the compressed stream is damaged or cut (what was decompressed before is returned
  /// by the calls before the error); kLimitExceeded for a bomb.
  virtual Result<size_t> Read(std::span<char> window) = 0;

  /// Compressed bytes taken so far and in all (0 when unknown): for progress.
  virtual uint64_t consumed_bytes() const = 0;
  virtual uint64_t total_bytes() const = 0;

  /// What is undone while reading: the work that reading ahead on another thread takes off the caller's.
  virtual Compression compression() const { return Compression::kNone; }
};

/// Opens a file and decides by magic bytes, never by name, whether it is plain, gzip (any number of members), zstd or
/// xz.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path, const ByteLimits& limits);

/// A source over bytes already in memory (archive members, tests); decides by magic bytes as well. Takes the bytes.
Result<std::unique_ptr<ByteSource>> OpenMemory(std::string bytes, const ByteLimits& limits);

}  // namespace lockstep::ingest
