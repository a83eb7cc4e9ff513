#include "ingest/bytes/folder_entries.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "ingest/bytes/natural_order.h"

namespace lockstep::ingest {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

Result<std::vector<FolderEntry>> EntriesOf(const std::string& path) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) return Error{ErrorCode::kIo, std::generic_category().message(errno)};
  std::vector<FolderEntry> entries;
  while (const dirent* found = ::readdir(folder.get())) {
    FolderEntry entry{.name = found->d_name, .path = {}};
    if (entry.name.empty() || entry.name.front() == '.') continue;
    entry.path = path.ends_with('/') ? path + entry.name : path + "/" + entry.name;
    if (::stat(entry.path.c_str(), &entry.status) != 0) entry.error = errno;
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, NaturalLess, &FolderEntry::name);
  return entries;
}

}  // namespace lockstep::ingest
