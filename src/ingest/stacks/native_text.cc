#include <algorithm>

#include "base/text_scan.h"
#include "base/utf8.h"
#include "ingest/stacks/formats.h"

namespace lockstep::ingest {
namespace {

using evidence::StackFrame;
using evidence::ThreadStack;

/// `TID 4711:`.
std::optional<int64_t> ReadTid(std::string_view line) {
  TextCursor cursor(line);
  if (!cursor.Skip("TID ")) return std::nullopt;
  const auto tid = cursor.Number();
  return tid && cursor.rest() == ":" ? tid : std::nullopt;
}

/// Behind `#0  0x00007f...`: blanks or ` - 1`, the symbol, ` - module`.
std::optional<StackFrame> ReadEuFrame(std::string_view line) {
  TextCursor cursor(line);
  if (!cursor.Skip("#") || !cursor.Number()) return std::nullopt;
  cursor.SkipBlanks();
  if (!cursor.Skip("0x") || !cursor.Number<uint64_t>(16)) return std::nullopt;
  cursor.Skip(" - 1");
  cursor.SkipBlanks();
  StackFrame frame;
  const size_t module = cursor.rest().rfind(" - ");
  frame.function = ValidUtf8(cursor.rest().substr(0, module));
  if (module != std::string_view::npos) frame.file = ValidUtf8(cursor.rest().substr(module + 3));
  while (!frame.function.empty() && frame.function.back() == ' ') frame.function.pop_back();
  return frame;
}

/// `Thread 3 (Thread 0x7f12 (LWP 1236) "name"):`, `Thread 1 (LWP 12):`, `Thread 1 (process 12):`.
bool ReadGdbHead(std::string_view line, ThreadStack* thread) {
  TextCursor cursor(line);
  if (!cursor.Skip("Thread ")) return false;
  const auto number = cursor.Number();
  if (!number || !cursor.Skip(" (") || !line.ends_with("):")) return false;
  TextCursor id(cursor.rest());
  if (id.SkipPast("LWP ") || id.Skip("process ")) thread->tid = id.Number().value_or(0);
  TextCursor name(cursor.rest());
  if (name.SkipPast("\"")) thread->name = ValidUtf8(name.rest().substr(0, name.rest().find('"')));
  thread->is_main = *number == 1;
  thread->source = "gdb";
  return true;
}

/// `Frame 0x7f12, for file /x/train.py, line 12, in main (a=1)` as python-gdb shows an interpreter's frame.
std::optional<StackFrame> ReadPythonFrame(std::string_view line) {
  TextCursor cursor(line);
  if (!cursor.SkipPast("Frame 0x") || !cursor.SkipPast(", for file ")) return std::nullopt;
  const auto file = cursor.Until(", line ");
  const auto number = cursor.Number<int32_t>();
  if (!file || !number || !cursor.Skip(", in ")) return std::nullopt;
  const std::string_view function = cursor.rest().substr(0, cursor.rest().find(" ("));
  return StackFrame{ValidUtf8(function), ValidUtf8(*file), *number};
}

/// `#1  0x00007f12 in poll (fds=...) from /lib/libc.so.6`, `#2  main (argc=1) at a.c:3`.
std::optional<StackFrame> ReadGdbFrame(std::string_view line) {
  TextCursor cursor(line);
  if (!cursor.Skip("#") || !cursor.Number()) return std::nullopt;
  cursor.SkipBlanks();
  if (cursor.Skip("0x")) {
    if (!cursor.Number<uint64_t>(16) || !cursor.Skip(" in ")) return std::nullopt;
  }
  StackFrame frame;
  // "operator() (...)" and "(anonymous namespace)::f (...)": the arguments are the first " (" at depth 0.
  const std::string_view rest = cursor.rest();
  int depth = 0;
  size_t end = rest.size();
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '(' || rest[i] == '<') {
      if (rest[i] == '(' && depth == 0 && i > 0 && rest[i - 1] == ' ') {
        end = i - 1;
        break;
      }
      ++depth;
    } else if (rest[i] == ')' || rest[i] == '>') {
      depth = std::max(0, depth - 1);
    }
  }
  frame.function = ValidUtf8(rest.substr(0, end));
  const std::string_view place = rest.substr(end);
  const size_t at = place.rfind(") at ");
  const size_t from = place.rfind(") from ");
  if (at != std::string_view::npos) {
    SplitPlace(place.substr(at + 5), &frame);
  } else if (from != std::string_view::npos) {
    frame.file = ValidUtf8(place.substr(from + 7));
  }
  return frame;
}

}  // namespace

bool IsEuStackHead(std::string_view line) { return ReadTid(line).has_value(); }

bool IsGdbHead(std::string_view line) {
  ThreadStack thread;
  return ReadGdbHead(line, &thread);
}

std::vector<ThreadStack> ReadEuStack(std::string_view text) {
  std::vector<ThreadStack> threads;
  std::optional<int64_t> process;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    TextCursor cursor(line);
    if (cursor.Skip("PID ")) {
      if (const auto pid = cursor.Number()) {
        process = pid;
        threads.clear();
      }
    } else if (const auto tid = ReadTid(line)) {
      if (threads.size() >= kMaxStackThreads) break;
      ThreadStack& thread = threads.emplace_back();
      thread.tid = *tid;
      thread.is_main = process ? *process == *tid : threads.size() == 1;
      thread.source = "eu-stack";
    } else if (!threads.empty()) {
      std::vector<StackFrame>& frames = threads.back().native;
      if (auto frame = ReadEuFrame(line)) {
        AddFrame(std::move(*frame), &frames);
      } else if (line.starts_with("    ") && !frames.empty()) {
        TextCursor place(line);
        place.SkipBlanks();
        SplitPlace(place.rest(), &frames.back());
      }
    }
  }
  return threads;
}

std::vector<ThreadStack> ReadGdb(std::string_view text) {
  std::vector<ThreadStack> threads;
  bool main_seen = false;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    ThreadStack thread;
    if (ReadGdbHead(line, &thread)) {
      // Threads come from the newest to number 1: one after that belongs to the next dump.
      if (main_seen) threads.clear();
      if (threads.size() >= kMaxStackThreads) break;
      main_seen = thread.is_main;
      threads.push_back(std::move(thread));
    } else if (!threads.empty()) {
      if (auto python = ReadPythonFrame(line)) AddFrame(std::move(*python), &threads.back().python);
      if (auto frame = ReadGdbFrame(line)) AddFrame(std::move(*frame), &threads.back().native);
    }
  }
  return threads;
}

}  // namespace lockstep::ingest
