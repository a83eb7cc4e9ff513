#include "agent/sensors/small_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/unique_fd.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMostBytes = size_t{64} << 10;

}  // namespace

std::optional<uint64_t> WholeNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> SmallFiles::Text(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno != ENOENT && errno != ENOTDIR) ++skipped_count_;
    return std::nullopt;
  }
  std::string text(kMostBytes, '\0');
  size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      ++skipped_count_;
      return std::nullopt;
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  text.resize(used);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<uint64_t> SmallFiles::Number(const std::string& path) {
  const std::optional<std::string> text = Text(path);
  if (!text) return std::nullopt;
  const std::optional<uint64_t> number = WholeNumber(*text);
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
