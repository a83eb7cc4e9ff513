#include "node/agent/capture/process_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/unique_fd.h"

namespace lockstep::agent {
namespace {

std::optional<std::string> ReadProc(const std::string& path, size_t limit) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::string text;
  while (text.size() < limit) {
    const size_t before = text.size();
    text.resize(std::min(limit, before + 16384));
    const ssize_t count = read(file.get(), text.data() + before, text.size() - before);
    if (count < 0 && errno == EINTR) {
      text.resize(before);
      continue;
    }
    text.resize(before + (count > 0 ? count : 0));
    if (count < 0) return std::nullopt;
    if (count == 0) break;
  }
  return text;
}

struct Stat {
  char state = '?';
  int32_t parent = 0;
  uint64_t start_ticks = 0;
};

// The command's name stands in parentheses and may hold any byte, so fields are counted from the last ')'.
std::optional<Stat> ReadStat(int32_t pid) {
  const auto text = ReadProc(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return std::nullopt;
  const size_t close = text->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  Stat stat;
  std::string_view rest = std::string_view(*text).substr(close + 1);
  for (int field = 3; field <= 22; ++field) {
    const size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(begin);
    const std::string_view word = rest.substr(0, rest.find_first_of(" \n"));
    if (field == 3) stat.state = word.empty() ? '?' : word.front();
    if (field == 4) std::from_chars(word.data(), word.data() + word.size(), stat.parent);
    if (field == 22) std::from_chars(word.data(), word.data() + word.size(), stat.start_ticks);
    rest.remove_prefix(word.size());
  }
  return stat;
}

}  // namespace

std::optional<bool> HasEnded(const control::Process& process) {
  if (process.pid <= 0) return std::nullopt;
  const auto stat = ReadStat(process.pid);
  if (!stat) {
    struct ::stat entry;
    if (::stat(fmt::format("/proc/{}", process.pid).c_str(), &entry) != 0 && errno == ENOENT) return true;
    return std::nullopt;
  }
  return stat->start_ticks != process.start_ticks || stat->state == 'Z' || stat->state == 'X';
}

std::vector<int32_t> AncestorsOf(int32_t pid) {
  std::vector<int32_t> ancestors;
  while (pid > 1 && ancestors.size() < 64) {
    const auto stat = ReadStat(pid);
    if (!stat || stat->parent <= 0) break;
    pid = stat->parent;
    ancestors.push_back(pid);
  }
  return ancestors;
}

bool HasOtherFileView(int32_t pid) {
  if (pid <= 0) return false;
  struct ::stat ours, theirs;
  const auto differs = [&](const char* name) {
    return ::stat(fmt::format("/proc/self/{}", name).c_str(), &ours) == 0 &&
           ::stat(fmt::format("/proc/{}/{}", pid, name).c_str(), &theirs) == 0 &&
           (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
  };
  return differs("ns/mnt") || differs("root");
}

std::optional<std::string> EnvironmentOf(int32_t pid, const std::string& name) {
  if (pid <= 0) return std::nullopt;
  const auto text = ReadProc(fmt::format("/proc/{}/environ", pid), size_t{4} << 20);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry.size() > name.size() + 1 && entry[name.size()] == '=' && entry.substr(0, name.size()) == name) {
      return std::string(entry.substr(name.size() + 1));
    }
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return std::nullopt;
}

std::optional<std::pair<int32_t, int32_t>> TorchRelease(const std::string& torch_version) {
  const char* end = torch_version.data() + torch_version.size();
  int32_t major = 0, minor = 0;
  const auto first = std::from_chars(torch_version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return std::nullopt;
  return std::pair(major, minor);
}

}  // namespace lockstep::agent
