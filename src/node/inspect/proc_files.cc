#include "node/inspect/proc_files.h"

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/small_file.h"
#include "base/split.h"
#include "base/text_scan.h"
#include "base/timespec.h"
#include "base/utf8.h"

namespace lockstep::inspect {
namespace {

/// An address as the kernel writes it: "0x" and hexadecimal digits.
bool ReadMemoryAddress(std::string_view word, uint64_t* address) {
  if (word.starts_with("0x")) word.remove_prefix(2);
  return ReadNumber(word, address, 16);
}

}  // namespace

int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }
int64_t UnixNs() { return ClockNs(CLOCK_REALTIME); }

std::optional<std::string> ReadProcFile(pid_t pid, std::string_view name, size_t limit_bytes) {
  return ReadSmallFile(fmt::format("/proc/{}/{}", pid, name), limit_bytes);
}

std::string ReadProcLink(pid_t pid, std::string_view name) {
  std::array<char, 4096> target;
  const ssize_t size = ::readlink(fmt::format("/proc/{}/{}", pid, name).c_str(), target.data(), target.size());
  return size <= 0 ? std::string() : std::string(target.data(), static_cast<size_t>(size));
}

std::vector<int64_t> ListNumbers(const std::string& folder, size_t limit) {
  std::vector<int64_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) return numbers;
  while (const dirent* entry = ::readdir(entries.get())) {
    int64_t number = 0;
    if (ReadNumber(std::string_view(entry->d_name), &number) && number >= 0) numbers.push_back(number);
    if (numbers.size() >= limit) break;
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::map<std::string, std::string, std::less<>> ParseFields(std::string_view text) {
  std::map<std::string, std::string, std::less<>> fields;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    const size_t end = line.find_first_of(": \t");
    if (end == std::string_view::npos || end == 0) continue;
    std::string_view value = line.substr(end + 1);
    const size_t begin = value.find_first_not_of(" \t");
    value = begin == std::string_view::npos ? std::string_view() : value.substr(begin);
    fields.emplace(line.substr(0, end), value);
  }
  return fields;
}

std::optional<int64_t> NumberOf(const std::map<std::string, std::string, std::less<>>& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::nullopt : LeadingNumber(found->second);
}

std::optional<BlockedCall> ParseBlockedCall(std::string_view text) {
  BlockedCall call;
  const std::vector<std::string_view> words = SplitAt(text, " \t\n");
  if (words.empty() || !ReadNumber(words[0], &call.number)) return std::nullopt;  // "running".
  if (words.size() != 9 && words.size() != 3) return std::nullopt;
  if (!ReadMemoryAddress(words[words.size() - 2], &call.stack_pointer) ||
      !ReadMemoryAddress(words[words.size() - 1], &call.program_counter))
    return std::nullopt;
  return call;
}

}  // namespace lockstep::inspect
