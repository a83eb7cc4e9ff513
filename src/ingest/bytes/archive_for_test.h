#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <string>
#include <vector>

/// Archives for tests, in memory.
namespace lockstep::ingest::test {

struct Entry {
  std::string name;
  std::string data = {};
  unsigned type = AE_IFREG;
  std::string link_target = {};
};

enum class Format { kTar, kZip };

inline std::string MakeArchive(Format format, const std::vector<Entry>& entries) {
  std::string bytes;
  archive* out = archive_write_new();
  if (format == Format::kZip) {
    archive_write_set_format_zip(out);
  } else {
    archive_write_set_format_pax_restricted(out);
  }
  archive_write_set_bytes_per_block(out, 0);
  archive_write_open2(
      out, &bytes, nullptr,
      [](archive*, void* context, const void* data, size_t size) -> la_ssize_t {
        static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
        return static_cast<la_ssize_t>(size);
      },
      nullptr, nullptr);
  for (const Entry& entry : entries) {
    archive_entry* header = archive_entry_new();
    archive_entry_set_pathname(header, entry.name.c_str());
    archive_entry_set_filetype(header, entry.type);
    archive_entry_set_perm(header, 0644);
    if (entry.type == AE_IFREG) archive_entry_set_size(header, static_cast<la_int64_t>(entry.data.size()));
    if (entry.type == AE_IFLNK) archive_entry_set_symlink(header, entry.link_target.c_str());
    if (entry.type == AE_IFREG && !entry.link_target.empty()) {
      archive_entry_set_hardlink(header, entry.link_target.c_str());
      archive_entry_unset_size(header);
    }
    archive_write_header(out, header);
    if (!entry.data.empty()) archive_write_data(out, entry.data.data(), entry.data.size());
    archive_entry_free(header);
  }
  archive_write_close(out);
  archive_write_free(out);
  return bytes;
}

}  // namespace lockstep::ingest::test
