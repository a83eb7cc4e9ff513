#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest {

/// A regular file inside an archive. Nothing is ever unpacked to disk: `name` is only shown and read for facts, so
/// "../../etc/passwd" does no harm.
struct ArchiveMember {
  std::string name;         ///< As in the archive, with unprintable bytes escaped; may be empty.
  uint64_t size_bytes = 0;  ///< As the archive claims; 0 when it does not say.
  uint64_t position = 0;    ///< Of the header in a plain tar; 0 elsewhere.
  uint32_t idx = 0;         ///< Count of members (of any kind) before it.
  bool encrypted = false;
};

/// Reads a tar (plain, gzip, zstd) or zip archive from front to back. Compression of the archive as a whole is undone
/// by the same sources as for files, under the same limits. One reader, one thread.
class ArchiveReader {
 public:
  virtual ~ArchiveReader() = default;

  /// `position` is that of a member in a plain tar: reading begins there.
  /// Errors: those of OpenFile; kCorruptData when it is not an archive at all comes from the first Next.
  static Result<std::unique_ptr<ArchiveReader>> Open(const std::string& path, const ByteLimits& limits,
                                                     uint64_t position = 0);

  /// Whether reaching a member costs no more than reading headers; false for a compressed tar, whose members are best
  /// read in order with one reader.
  virtual bool has_random_access() const = 0;
  /// Whether `position` of its members may be given to Open.
  virtual bool has_positions() const = 0;

  /// Goes to the next regular file; links, folders and devices are passed over. Nothing at the end.
  /// Errors: kCorruptData, kIo, kLimitExceeded; afterwards nothing more can be read.
  virtual Result<std::optional<ArchiveMember>> Next() = 0;

  /// Data of the member that Next went to; as ByteSource::Read.
  virtual Result<size_t> Read(std::span<char> window) = 0;

  /// Compression of the archive as a whole, or of the members of a zip (taken to be gzip's).
  virtual Compression compression() const = 0;

  /// How many members of any kind Next has seen.
  virtual uint32_t passed_member_count() const = 0;
};

}  // namespace lockstep::ingest
