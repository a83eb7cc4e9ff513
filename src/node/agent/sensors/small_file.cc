#include "node/agent/sensors/small_file.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/small_file.h"
#include "base/text_scan.h"

namespace lockstep::agent {

std::optional<std::string> SmallFiles::Text(const std::string& path) {
  std::optional<std::string> text = ReadSmallFile(path);
  if (!text) {
    if (errno != ENOENT && errno != ENOTDIR) ++skipped_count_;
    return std::nullopt;
  }
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return text;
}

std::optional<uint64_t> SmallFiles::Number(const std::string& path) {
  const std::optional<std::string> text = Text(path);
  if (!text) return std::nullopt;
  const std::optional<uint64_t> number = WholeNumber<uint64_t>(*text);
  if (!number) ++skipped_count_;
  return number;
}

std::vector<std::string> NamesIn(const std::string& folder, size_t most) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), ::closedir);
  if (opened == nullptr) return names;
  while (const dirent* const entry = ::readdir(opened.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  if (names.size() > most) names.resize(most);
  return names;
}

}  // namespace lockstep::agent
