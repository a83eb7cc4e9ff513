// The answer of python/lockstep/_hang.py, and where its socket is.
#include <algorithm>

#include "base/split.h"
#include "base/text_scan.h"
#include "node/inspect/job_dump.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/shown_text.h"
#include "node/inspect/stack_limits.h"

namespace lockstep::inspect {
namespace {

constexpr size_t kMaxHelperFrames = 1024;

/// "hang-1234-0a1b2c3d.sock".
bool IsHelperName(std::string_view name) {
  if (!name.starts_with("hang-") || !name.ends_with(".sock")) return false;
  name = name.substr(5, name.size() - 10);
  return name.size() > 9 && name.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

}  // namespace

std::string FindHelperSocket(std::string_view unix_table, const std::vector<uint64_t>& inodes) {
  while (!unix_table.empty()) {
    std::string_view line = TakePart(&unix_table, '\n');
    // Num RefCount Protocol Flags Type St Inode Path
    const std::vector<std::string_view> words = SplitAt(line, " ");
    if (words.size() < 8) continue;
    const uint64_t inode = WholeNumber<uint64_t>(words[6]).value_or(0);
    line = line.substr(static_cast<size_t>(words[7].data() - line.data()));
    const size_t slash = line.rfind('/');
    if (inode == 0 || !line.starts_with('/') || !IsHelperName(line.substr(slash + 1))) continue;
    if (std::binary_search(inodes.begin(), inodes.end(), inode)) return std::string(line);
  }
  return {};
}

std::vector<evidence::ThreadStack> ParseHelperStacks(std::string_view text) {
  std::vector<evidence::ThreadStack> threads;
  while (!text.empty()) {
    std::string_view line = TakePart(&text, '\n');
    const std::string_view kind = TakePart(&line, ' ');
    int64_t number = 0;
    if (!ReadNumber(TakePart(&line, ' '), &number) || number < 0) continue;
    if (kind == "T" && threads.size() < kMaxThreads) {
      evidence::ThreadStack thread;
      thread.tid = number;
      thread.name = ShownText(line);
      thread.is_main = thread.name == "MainThread";
      thread.source = "helper";
      threads.push_back(std::move(thread));
    } else if (kind == "F" && !threads.empty() && threads.back().python.size() < kMaxHelperFrames) {
      const size_t tab = line.find('\t');
      if (tab == std::string_view::npos || number > INT32_MAX) continue;
      threads.back().python.push_back({.function = ShownText(line.substr(tab + 1)),
                                       .file = ShownText(line.substr(0, tab)),
                                       .line = static_cast<int32_t>(number)});
    }
  }
  return threads;
}

bool ParseHelperAnswer(std::string_view answer, JobDump* dump) {
  if (TakePart(&answer, '\n') != "lockstep.hang/1") return false;
  dump->source = "helper";
  int64_t made_unix_ns = 0;  // Of the next section.
  while (!answer.empty()) {
    std::string_view line = TakePart(&answer, '\n');
    const std::string_view name = TakePart(&line, ' ');
    if (name == "end") break;
    if (name == "error") {
      dump->reason = "its Python helper says: " + ShownText(line);
      continue;
    }
    if (name == "pid") continue;
    if (name == "time") {
      if (!ReadNumber(line, &made_unix_ns) || made_unix_ns < 0) made_unix_ns = 0;
      continue;
    }
    size_t size = 0;
    if (!ReadNumber(line, &size) || size > answer.size()) break;  // Not all of it came.
    std::string_view content = answer.substr(0, size);
    answer.remove_prefix(size);
    if (name == "facts") {
      while (!content.empty()) {
        std::string_view fact = TakePart(&content, '\n');
        const std::string_view key = TakePart(&fact, ' ');
        dump->facts[ShownText(key)] = ShownText(fact);
      }
    } else if (name == "stacks") {
      dump->threads = ParseHelperStacks(content);
    } else if (name == "record") {
      dump->record = content;  // The last one is the fullest.
      dump->format = "pickle";
      dump->record_unix_ns = made_unix_ns;
    }
  }
  return true;
}

}  // namespace lockstep::inspect
