#include "node/inspect/proc_files.h"

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "base/small_file.h"
#include "base/timespec.h"
#include "base/utf8.h"
#include "node/inspect/read_number.h"

namespace lockstep::inspect {
namespace {

/// Takes the next word off `text`; empty at its end.
std::string_view NextWord(std::string_view* text) {
  const size_t begin = text->find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) {
    *text = {};
    return {};
  }
  text->remove_prefix(begin);
  const std::string_view word = text->substr(0, text->find_first_of(" \t\n"));
  text->remove_prefix(word.size());
  return word;
}

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

std::optional<StatFields> ParseStat(std::string_view text) {
  // The name may hold anything, brackets too: what counts begins after the last one.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  StatFields stat;
  stat.name = Printable(text.substr(open + 1, std::min<size_t>(close - open - 1, 64)));
  std::string_view rest = text.substr(close + 1);
  for (int field = 3; field <= 22; ++field) {
    const std::string_view word = NextWord(&rest);
    if (word.empty()) return std::nullopt;
    uint64_t number = 0;
    if (field == 3) stat.state = word[0];
    if (field != 14 && field != 15 && field != 22) continue;
    if (!ReadNumber(word, &number)) return std::nullopt;
    if (field == 22) {
      stat.start_ticks = number;
    } else {
      stat.cpu_ticks += number;
    }
  }
  return stat;
}

std::map<std::string, std::string, std::less<>> ParseFields(std::string_view text) {
  std::map<std::string, std::string, std::less<>> fields;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t end = line.find_first_of(": \t");
    if (end == std::string_view::npos || end == 0) continue;
    std::string_view value = line.substr(end + 1);
    const size_t begin = value.find_first_not_of(" \t");
    value = begin == std::string_view::npos ? std::string_view() : value.substr(begin);
    fields.emplace(line.substr(0, end), value);
  }
  return fields;
}

std::optional<int64_t> LeadingNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<int64_t> NumberOf(const std::map<std::string, std::string, std::less<>>& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::nullopt : LeadingNumber(found->second);
}

std::optional<BlockedCall> ParseBlockedCall(std::string_view text) {
  BlockedCall call;
  if (!ReadNumber(NextWord(&text), &call.number)) return std::nullopt;  // "running".
  std::vector<std::string_view> words;
  for (std::string_view word = NextWord(&text); !word.empty() && words.size() < 9; word = NextWord(&text))
    words.push_back(word);
  if (words.size() != 8 && words.size() != 2) return std::nullopt;
  if (!ReadMemoryAddress(words[words.size() - 2], &call.stack_pointer) ||
      !ReadMemoryAddress(words[words.size() - 1], &call.program_counter))
    return std::nullopt;
  return call;
}

}  // namespace lockstep::inspect
