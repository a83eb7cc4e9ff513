#include "ingest/bytes/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "ingest/bytes/file_names.h"
#include "ingest/bytes/file_source.h"
#include "ingest/bytes/output_limit.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kArchiveBlockBytes = size_t{128} << 10;

// More members than any real job has; a hostile archive may hold any number of empty ones.
constexpr uint32_t kMaxMembers = 1'000'000;

struct FreeArchive {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
using ArchiveHandle = std::unique_ptr<archive, FreeArchive>;

enum class Kind { kPlainTar, kCompressedTar, kZip };

// Feeds libarchive with what a source decompresses, and keeps the source's error, which says more than a return code.
struct Feed {
  std::unique_ptr<ByteSource> source;
  std::unique_ptr<char[]> block = std::make_unique_for_overwrite<char[]>(kArchiveBlockBytes);
  std::optional<Error> error = {};
};

la_ssize_t ReadFeed(archive* handle, void* context, const void** block) {
  auto* feed = static_cast<Feed*>(context);
  *block = feed->block.get();
  auto got = feed->source->Read({feed->block.get(), kArchiveBlockBytes});
  if (got) return static_cast<la_ssize_t>(*got);
  feed->error = std::move(got).error();
  archive_set_error(handle, EIO, "%s", feed->error->message.c_str());
  return ARCHIVE_FATAL;
}

class LibArchiveReader final : public ArchiveReader {
 public:
  LibArchiveReader(std::string path, const ByteLimits& limits, Kind kind, uint64_t position)
      : path_(std::move(path)), kind_(kind), base_position_(position), limit_(limits, path_) {}

  Status OpenHandle(OpenedFile file, const ByteLimits& limits) {
    file_bytes_ = file.size_bytes;
    handle_.reset(archive_read_new());
    if (!handle_)
      return Error{.code = ErrorCode::kIo, .message = "not enough memory to read an archive", .file = path_};
    if (kind_ == Kind::kZip) {
      archive_read_support_format_zip(handle_.get());
    } else {
      archive_read_support_format_tar(handle_.get());
      // Names are bytes to us: without this, names outside the locale's characters would be lost.
      archive_read_set_options(handle_.get(), "tar:hdrcharset=BINARY");
    }
    int code = ARCHIVE_OK;
    if (kind_ == Kind::kCompressedTar) {
      ASSIGN_OR_RETURN(feed_.source, OpenFile(path_, limits));
      code = archive_read_open2(handle_.get(), &feed_, nullptr, ReadFeed, nullptr, nullptr);
    } else {
      file_ = std::move(file);
      if (base_position_ != 0) ::lseek(file_.fd.get(), static_cast<off_t>(base_position_), SEEK_SET);
      code = archive_read_open_fd(handle_.get(), file_.fd.get(), kArchiveBlockBytes);
    }
    if (code != ARCHIVE_OK) return Failure();
    return {};
  }

  bool has_random_access() const override { return kind_ != Kind::kCompressedTar; }
  bool has_positions() const override { return kind_ == Kind::kPlainTar; }
  Compression compression() const override {
    if (kind_ == Kind::kZip) return Compression::kGzip;
    return feed_.source ? feed_.source->compression() : Compression::kNone;
  }
  uint32_t passed_member_count() const override { return passed_; }

  Result<std::optional<ArchiveMember>> Next() override {
    member_bytes_ = hole_bytes_ = 0;
    block_ = {};
    member_ended_ = false;
    pending_error_.reset();
    while (true) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(handle_.get(), &entry);
      if (code == ARCHIVE_EOF) return std::nullopt;
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Failure();
      if (passed_ == kMaxMembers) {
        return Error{.code = ErrorCode::kLimitExceeded,
                     .message = fmt::format("holds more than {} members; unpack it first", kMaxMembers),
                     .file = path_};
      }
      const uint32_t idx = passed_++;
      if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) continue;
      ArchiveMember member;
      // A name that cannot be had in any form leaves the member without one.
      if (const char* name = archive_entry_pathname(entry)) {
        member.name = PrintableName(name);
      } else if (const char* utf8_name = archive_entry_pathname_utf8(entry)) {
        member.name = PrintableName(utf8_name);
      }
      member.size_bytes = static_cast<uint64_t>(std::max<int64_t>(archive_entry_size(entry), 0));
      if (kind_ == Kind::kPlainTar) {
        member.position = base_position_ + static_cast<uint64_t>(archive_read_header_position(handle_.get()));
      }
      member.idx = idx;
      member.encrypted = archive_entry_is_data_encrypted(entry) != 0;
      return member;
    }
  }

  Result<size_t> Read(std::span<char> window) override {
    size_t filled = 0;
    while (filled < window.size() && !pending_error_ && !member_ended_) {
      if (hole_bytes_ == 0 && block_.empty()) NextBlock();
      const uint64_t most = std::min<uint64_t>(window.size() - filled, limit_.Headroom(member_bytes_));
      const size_t zeros = static_cast<size_t>(std::min(hole_bytes_, most));
      if (zeros > 0) std::memset(window.data() + filled, 0, zeros);
      hole_bytes_ -= zeros;
      filled += zeros;
      const size_t count = static_cast<size_t>(std::min<uint64_t>(block_.size(), most - zeros));
      if (count > 0) std::memcpy(window.data() + filled, block_.data(), count);
      block_.remove_prefix(count);
      filled += count;
      member_bytes_ += zeros + count;
      // Holes of sparse members and zip's own compression make much out of little.
      if (!pending_error_) pending_error_ = limit_.Check(member_bytes_, file_bytes_);
    }
    if (filled == 0 && pending_error_) return *pending_error_;
    return filled;
  }

 private:
  // Fetches the next piece of the member's data; a piece that lies beyond the end of the last one leaves a hole of
  // zeros.
  void NextBlock() {
    const void* data = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int code = archive_read_data_block(handle_.get(), &data, &size, &offset);
    // A warning is a checksum that does not match.
    if (code != ARCHIVE_OK && code != ARCHIVE_EOF) {
      pending_error_ = Failure();
      pending_error_->byte_offset = member_bytes_;
      return;
    }
    member_ended_ = code == ARCHIVE_EOF;
    if (offset > 0 && static_cast<uint64_t>(offset) > member_bytes_) {
      hole_bytes_ = static_cast<uint64_t>(offset) - member_bytes_;
    }
    block_ = size > 0 && !member_ended_ ? std::string_view(static_cast<const char*>(data), size) : std::string_view();
  }

  // What libarchive, or the source below it, stumbled over.
  Error Failure() const {
    if (feed_.error) return *feed_.error;
    const char* text = archive_error_string(handle_.get());
    return {.code = ErrorCode::kCorruptData,
            .message = fmt::format("the archive cannot be read any further ({}); if it was cut, copy it again",
                                   text == nullptr ? "no reason given" : PrintableName(text)),
            .file = path_};
  }

  std::string path_;
  Kind kind_;
  uint64_t base_position_;
  uint64_t file_bytes_ = 0;
  OutputLimit limit_;
  OpenedFile file_;  // Outlives handle_, which reads from it.
  Feed feed_;
  ArchiveHandle handle_;
  uint32_t passed_ = 0;
  // The present member: bytes handed out, zeros due next, then data due, which is libarchive's until the next block.
  uint64_t member_bytes_ = 0;
  uint64_t hole_bytes_ = 0;
  std::string_view block_;
  bool member_ended_ = false;
  std::optional<Error> pending_error_;
};

Kind KindOf(const OpenedFile& file) {
  std::array<char, 4> first = {};
  const ssize_t got = ::pread(file.fd.get(), first.data(), first.size(), 0);
  const std::string_view magic(first.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  // "PK\5\6" and "PK00" begin an empty and a split zip.
  if (magic.starts_with("PK\x03\x04") || magic.starts_with("PK\x05\x06") || magic.starts_with("PK00"))
    return Kind::kZip;
  // A tar begins with a member's name: letters, digits, dots, or a NUL when it is empty.
  if (magic.starts_with("\x1f\x8b") || magic.starts_with("\x28\xb5\x2f\xfd") || magic.starts_with("\xfd\x37zX") ||
      magic.starts_with("BZh") || magic.starts_with("\x04\x22\x4d\x18") || magic.ends_with("\x2a\x4d\x18")) {
    return Kind::kCompressedTar;
  }
  return Kind::kPlainTar;
}

}  // namespace

Result<std::unique_ptr<ArchiveReader>> ArchiveReader::Open(const std::string& path, const ByteLimits& limits,
                                                           uint64_t position) {
  ASSIGN_OR_RETURN(OpenedFile file, OpenRegularFile(path));
  auto reader = std::make_unique<LibArchiveReader>(path, limits, KindOf(file), position);
  RETURN_IF_ERROR(reader->OpenHandle(std::move(file), limits));
  return reader;
}

}  // namespace lockstep::ingest
