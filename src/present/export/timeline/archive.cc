#include "present/export/timeline/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "present/export/timeline/json_text.h"
#include "present/export/timeline/writers.h"

namespace lockstep::timeline {
namespace {

struct ArchiveCloser {
  void operator()(::archive* out) const { archive_write_free(out); }
};
using ArchiveWriter = std::unique_ptr<::archive, ArchiveCloser>;

struct EntryCloser {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

Error ArchiveError(::archive* out, const std::string& path) {
  const char* const text = archive_error_string(out);
  return {.code = ErrorCode::kIo,
          .message = fmt::format("the archive cannot be written: {}", text == nullptr ? "unknown error" : text),
          .file = path};
}

Status StartMember(::archive* out, const std::string& path, const std::string& name, uint64_t size_bytes) {
  const std::unique_ptr<archive_entry, EntryCloser> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size_bytes));
  if (archive_write_header(out, entry.get()) != ARCHIVE_OK) return ArchiveError(out, path);
  return {};
}

Status CopyMember(::archive* out, const std::string& path, const OutputFile& from, const std::string& member) {
  std::vector<char> block(size_t{256} << 10);
  for (uint64_t offset = 0;;) {
    const ssize_t got = ::pread(from.fd(), block.data(), block.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{.code = ErrorCode::kIo, .message = std::strerror(errno), .file = member};
    if (got == 0) return {};
    if (archive_write_data(out, block.data(), static_cast<size_t>(got)) != got) return ArchiveError(out, path);
    offset += static_cast<uint64_t>(got);
  }
}

std::string MemberName(const model::RankTrace& trace, bool several_windows) {
  return several_windows ? fmt::format("rank{}_window{}.pftrace", trace.rank.value, trace.window)
                         : fmt::format("rank{}.pftrace", trace.rank.value);
}

/// Perfetto's docs/reference/perfetto-manifest.md, version 1.
std::string Manifest(const model::Run& run, const std::vector<size_t>& rank_indices,
                     const std::vector<std::string>& members) {
  std::string text = "{\"perfetto_manifest\":{\"version\":1,\"trace_time\":{\"clock\":\"BOOTTIME\",\"file\":";
  AppendQuoted(members.front(), &text);
  text += "},\n\"attributes\":{\"lockstep.format\":\"lockstep.timeline/1\"},\n\"files\":[";
  for (size_t i = 0; i < members.size(); ++i) {
    text += i == 0 ? "\n{\"path\":" : ",\n{\"path\":";
    AppendQuoted(members[i], &text);
    const std::string& host = run.ranks[rank_indices[i]].host;
    if (!host.empty()) {
      text += ",\"machine\":{\"name\":";
      AppendQuoted(host, &text);
      text += '}';
    }
    // Files of one machine share its clocks as they are; those of others need to be told that theirs are the same.
    if (host != run.ranks[rank_indices.front()].host) {
      text += ",\"clocks\":{\"clock\":\"BOOTTIME\",\"sync_to\":{\"file\":";
      AppendQuoted(members.front(), &text);
      text += ",\"clock\":\"BOOTTIME\"},\"offset_ns\":0}";
    }
    text += '}';
  }
  return text + "\n]}}\n";
}

}  // namespace

Status WriteArchive(const OutputFile& file, const std::string& path, const TimelineContent& content, Summary* summary) {
  const model::Run& run = content.run();
  bool several_windows = false;
  for (const model::RankTrace& trace : run.ranks) several_windows = several_windows || trace.window > 0;
  std::vector<std::string> members;
  for (const size_t i : content.rank_indices()) members.push_back(MemberName(run.ranks[i], several_windows));

  const ArchiveWriter out(archive_write_new());
  if (out == nullptr) return Error{.code = ErrorCode::kIo, .message = "no memory for an archive", .file = path};
  archive_write_set_format_pax_restricted(out.get());
  archive_write_set_bytes_in_last_block(out.get(), 1);
  if (archive_write_open_fd(out.get(), file.fd()) != ARCHIVE_OK) return ArchiveError(out.get(), path);

  const std::string manifest = Manifest(run, content.rank_indices(), members);
  RETURN_IF_ERROR(StartMember(out.get(), path, "perfetto_manifest.json", manifest.size()));
  if (archive_write_data(out.get(), manifest.data(), manifest.size()) != static_cast<la_ssize_t>(manifest.size()))
    return ArchiveError(out.get(), path);

  for (size_t i = 0; i < members.size(); ++i) {
    ASSIGN_OR_RETURN(const OutputFile member, OutputFile::Create(path + "." + members[i]));
    const std::unique_ptr<ByteSink> sink = PlainSink(member.fd(), path);
    const std::unique_ptr<EventWriter> writer = MakePerfettoWriter(run.names, sink.get());
    content.Begin(writer.get());
    content.WriteRank(content.rank_indices()[i], writer.get(), summary);
    writer->Finish();
    RETURN_IF_ERROR(sink->Close());
    RETURN_IF_ERROR(StartMember(out.get(), path, members[i], member.size_bytes()));
    RETURN_IF_ERROR(CopyMember(out.get(), path, member, members[i]));
  }
  if (archive_write_close(out.get()) != ARCHIVE_OK) return ArchiveError(out.get(), path);
  return {};
}

}  // namespace lockstep::timeline
