#include <fmt/format.h>

#include <memory>
#include <utility>

#include "ingest/bytes/archive_reader.h"
#include "ingest/bytes/file_names.h"
#include "ingest/bytes/file_source.h"
#include "ingest/bytes/trace_files.h"

namespace lockstep::ingest {
namespace {

// The data of the member that a reader stands at.
class MemberSource final : public ByteSource {
 public:
  MemberSource(std::shared_ptr<ArchiveReader> archive, uint64_t size_bytes)
      : archive_(std::move(archive)), size_bytes_(size_bytes) {}

  Result<size_t> Read(std::span<char> window) override {
    auto got = archive_->Read(window);
    if (got) consumed_ += *got;
    return got;
  }

  uint64_t consumed_bytes() const override { return consumed_; }
  uint64_t total_bytes() const override { return size_bytes_; }
  Compression compression() const override { return archive_->compression(); }

 private:
  std::shared_ptr<ArchiveReader> archive_;  // Shared with the TraceOpener, which goes on with it afterwards.
  uint64_t size_bytes_;
  uint64_t consumed_ = 0;
};

}  // namespace

std::string TraceFile::DisplayName() const {
  return in_archive ? PrintableName(path) + "!" + member : PrintableName(path);
}

Result<std::unique_ptr<ByteSource>> TraceOpener::Open(const TraceFile& file) {
  if (!file.in_archive) return OpenFile(file.path, limits_);
  const bool goes_on = archive_ && archive_path_ == file.path && file.in_order_only &&
                       archive_->passed_member_count() <= file.member_idx;
  if (!goes_on) {
    ASSIGN_OR_RETURN(archive_, ArchiveReader::Open(file.path, limits_, file.member_position));
    archive_path_ = file.path;
  }
  // A plain tar is opened at the member itself; everything else is counted through.
  while (true) {
    auto next = archive_->Next();
    if (!next) {
      archive_.reset();
      return std::move(next).error();
    }
    if (!*next) break;
    if (file.member_position != 0 || (*next)->idx == file.member_idx) {
      if ((*next)->name != file.member) break;
      return Decode(std::make_unique<MemberSource>(archive_, file.size_bytes), file.DisplayName(), limits_);
    }
    if ((*next)->idx > file.member_idx) break;
  }
  archive_.reset();
  return Error{.code = ErrorCode::kNotFound,
               .message = "is no longer in the archive, which changed while it was being read; run again",
               .file = file.DisplayName()};
}

Result<std::unique_ptr<ByteSource>> OpenTraceFile(const TraceFile& file, const ByteLimits& limits) {
  return TraceOpener(limits).Open(file);
}

}  // namespace lockstep::ingest
