#include "base/json_object.h"
#include "base/text_scan.h"
#include "base/utf8.h"
#include "ingest/stacks/formats.h"
#include "model/evidence/parse_json.h"

namespace lockstep::ingest {
namespace {

using evidence::StackFrame;
using evidence::ThreadStack;

/// With --native the two kinds of frame are mixed; Python's are those of a Python file.
bool IsPythonFile(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyx") || file.starts_with("<");
}

void AddPySpyFrame(StackFrame frame, ThreadStack* thread) {
  std::vector<StackFrame>* frames = IsPythonFile(frame.file) ? &thread->python : &thread->native;
  AddFrame(std::move(frame), frames);
}

/// `Thread 4711 (idle): "MainThread"`, `Thread 0x7F12 (active+gil)`.
bool ReadHead(std::string_view line, ThreadStack* thread) {
  TextCursor cursor(line);
  if (!cursor.Skip("Thread ")) return false;
  const bool pthread = cursor.Skip("0x");
  const auto id = cursor.Number<uint64_t>(pthread ? 16 : 10);
  if (!id || !cursor.Skip(" (")) return false;
  const auto state = cursor.Until(")");
  if (!state || (!state->starts_with("idle") && !state->starts_with("active"))) return false;
  if (!pthread && *id <= INT32_MAX) thread->tid = static_cast<int64_t>(*id);
  thread->holds_gil = state->find("gil") != std::string_view::npos;
  if (cursor.Skip(": \"")) {
    const size_t end = cursor.rest().rfind('"');
    thread->name = ValidUtf8(cursor.rest().substr(0, end));
  }
  thread->is_main = thread->name == "MainThread";
  thread->source = "py-spy";
  return true;
}

/// `    wait (threading.py:320)`, `    __poll (libc.so.6)`.
std::optional<StackFrame> ReadPySpyFrame(std::string_view line) {
  if (!line.starts_with("    ") || line.starts_with("     ") || !line.ends_with(")")) return std::nullopt;
  const size_t open = line.rfind(" (");
  if (open == std::string_view::npos || open < 4) return std::nullopt;
  StackFrame frame;
  frame.function = ValidUtf8(line.substr(4, open - 4));
  SplitPlace(line.substr(open + 2, line.size() - open - 3), &frame);
  return frame;
}

}  // namespace

bool IsPySpyHead(std::string_view line) {
  ThreadStack thread;
  return ReadHead(line, &thread);
}

std::vector<ThreadStack> ReadPySpyText(std::string_view text) {
  std::vector<ThreadStack> threads;
  std::optional<int64_t> process;
  bool skip = false;  // A child of the process (--subprocesses).
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    TextCursor cursor(line);
    if (cursor.Skip("Process ")) {
      const auto pid = cursor.Number();
      if (!pid || !cursor.Skip(":")) continue;
      skip = process.has_value() && *process != *pid;
      if (!skip) threads.clear();
      if (!process) process = pid;
      continue;
    }
    if (skip) continue;
    ThreadStack thread;
    if (ReadHead(line, &thread)) {
      if (threads.size() >= kMaxStackThreads) break;
      if (!thread.is_main && process && thread.tid == *process) thread.is_main = true;
      threads.push_back(std::move(thread));
    } else if (!threads.empty()) {
      if (auto frame = ReadPySpyFrame(line)) AddPySpyFrame(std::move(*frame), &threads.back());
    }
  }
  return threads;
}

Result<std::vector<ThreadStack>> ReadPySpyJson(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonTree tree, evidence::ParseJson(text));
  const JsonValue document = tree.root();
  if (!document.IsArray()) return Error{.code = ErrorCode::kCorruptData, .message = "no array of threads"};
  if (document.size() > kMaxStackThreads) {
    return Error{.code = ErrorCode::kLimitExceeded, .message = "more threads than are read"};
  }
  std::vector<ThreadStack> threads;
  std::optional<int64_t> process;
  for (size_t i = 0; i < document.size(); ++i) {
    const std::string path = "[" + std::to_string(i) + "]";
    if (!document[i].IsObject()) return Error{ErrorCode::kCorruptData, path + ": expected an object"};
    JsonObject object(document[i], path);
    ThreadStack thread;
    std::optional<int64_t> pid;
    object.Read("pid", &pid);
    object.Read("os_thread_id", &thread.tid);
    object.Read("thread_name", &thread.name);
    object.Read("owns_gil", &thread.holds_gil);
    object.Objects("frames", size_t{1} << 20, [&](JsonObject& row) {
      StackFrame frame;
      row.Read("name", &frame.function);
      row.Read("filename", &frame.file);
      row.Read("line", &frame.line);
      AddPySpyFrame(std::move(frame), &thread);
    });
    RETURN_IF_ERROR(object.status());
    if (!process) process = pid;
    if (pid != process) continue;
    thread.is_main = thread.name == "MainThread" || (pid && thread.tid == *pid);
    thread.source = "py-spy";
    threads.push_back(std::move(thread));
  }
  return threads;
}

}  // namespace lockstep::ingest
