#include "base/text_scan.h"
#include "base/utf8.h"
#include "ingest/stacks/formats.h"

namespace lockstep::ingest {
namespace {

using evidence::StackFrame;
using evidence::ThreadStack;

constexpr std::string_view kHeadEnd = "(most recent call first):";

/// `Current thread 0x00007fd51753b6c0 [dumper] (most recent call first):`; the name is Python 3.14's.
/// `Stack (most recent call first):` is what dump_traceback(all_threads=False) writes.
struct Head {
  std::string id;
  std::string name;
  bool native = false;  ///< "Current thread's C stack trace", 3.14.
};

std::optional<Head> ReadHead(std::string_view line) {
  if (!line.ends_with(kHeadEnd)) return std::nullopt;
  TextCursor cursor(line);
  Head head;
  if (cursor.rest().starts_with("Stack (most recent")) return head;
  if (cursor.rest().starts_with("Current thread's C stack trace (")) {
    head.native = true;
    return head;
  }
  if (!cursor.Skip("Current thread ") && !cursor.Skip("Thread ")) return std::nullopt;
  if (!cursor.rest().starts_with("0x")) return std::nullopt;
  head.id = ValidUtf8(*cursor.Until(" "));
  if (cursor.Skip("[")) {
    // A name may hold a bracket of its own.
    const size_t end = cursor.rest().rfind("] (");
    if (end != std::string_view::npos) head.name = ValidUtf8(cursor.rest().substr(0, end));
  }
  return head;
}

/// `  File "/home/user/train.py", line 52 in next_batch`.
std::optional<StackFrame> ReadFrame(std::string_view line) {
  TextCursor cursor(line);
  if (!cursor.Skip("  File \"")) return std::nullopt;
  const auto file = cursor.Until("\", line ");
  if (!file) return std::nullopt;
  StackFrame frame;
  frame.file = ValidUtf8(*file);
  frame.line = cursor.Number<int32_t>().value_or(0);  // "???" where it was lost.
  if (cursor.SkipPast(" in ")) frame.function = ValidUtf8(cursor.rest());
  return frame;
}

/// `  Binary file "/lib/libc.so.6", at gsignal+0x12 [0x7f...]`.
std::optional<StackFrame> ReadNativeFrame(std::string_view line) {
  TextCursor cursor(line);
  if (!cursor.Skip("  Binary file \"")) return std::nullopt;
  const auto file = cursor.Until("\"");
  if (!file) return std::nullopt;
  StackFrame frame;
  frame.file = ValidUtf8(*file);
  if (cursor.Skip(", at ")) frame.function = ValidUtf8(cursor.rest().substr(0, cursor.rest().find_first_of("+ [")));
  return frame;
}

/// The dump does not say which thread is the main one: it runs the script, and is the oldest, which comes last.
void MarkMain(std::vector<ThreadStack>* threads) {
  ThreadStack* found = nullptr;
  for (ThreadStack& thread : *threads) {
    if (thread.python.empty()) continue;
    const std::string& outermost = thread.python.back().function;
    if (outermost == "<module>" || (outermost != "_bootstrap" && found == nullptr)) found = &thread;
  }
  if (found == nullptr && threads->size() == 1) found = &threads->front();
  if (found != nullptr) found->is_main = true;
}

}  // namespace

bool IsFaulthandlerHead(std::string_view line) { return ReadHead(line).has_value(); }

std::vector<ThreadStack> ReadFaulthandler(std::string_view text) {
  std::vector<ThreadStack> threads;
  std::vector<StackFrame>* frames = nullptr;
  size_t current = SIZE_MAX;  // Who asked for the dump, or crashed: that it holds the lock says nothing.
  bool after_blank = false;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    if (const auto head = ReadHead(line)) {
      if (head->native) {
        frames = current < threads.size() ? &threads[current].native : nullptr;
        continue;
      }
      // Threads of one dump have a blank line between them, dumps have not.
      if (!after_blank) {
        threads.clear();
        current = SIZE_MAX;
      }
      if (threads.size() >= kMaxStackThreads) break;
      if (line.starts_with("Current")) current = threads.size();
      ThreadStack& thread = threads.emplace_back();
      thread.name = head->name.empty() ? head->id : head->name;
      thread.source = "faulthandler";
      frames = &thread.python;
    } else if (frames != nullptr) {
      if (auto frame = ReadFrame(line)) {
        AddFrame(std::move(*frame), frames);
      } else if (auto native = ReadNativeFrame(line)) {
        AddFrame(std::move(*native), frames);
      }
    }
    after_blank = line.empty();
  }
  MarkMain(&threads);
  return threads;
}

}  // namespace lockstep::ingest
