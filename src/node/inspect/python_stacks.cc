// Which source is asked for Python frames, and by which process.
#include <fmt/format.h>

#include <algorithm>

#include "base/subprocess.h"
#include "ingest/stacks/stacks.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/python_frames.h"
#include "node/inspect/wire.h"
#include "node/inspect/worker.h"

namespace lockstep::inspect {
namespace {

using evidence::StackFrame;
using evidence::ThreadStack;

enum class PythonMessage : uint8_t { kThread, kProblem };

std::string PackProblem(std::string_view text) {
  WireWriter writer;
  writer.Put(PythonMessage::kProblem);
  writer.PutText(text);
  return writer.bytes();
}

std::string PackThread(const ThreadStack& thread) {
  WireWriter writer;
  writer.Put(PythonMessage::kThread);
  writer.Put(thread.tid);
  writer.Put(thread.holds_gil);
  for (const StackFrame& frame : thread.python) {
    writer.PutText(frame.function);
    writer.PutText(frame.file);
    writer.Put(frame.line);
  }
  return writer.bytes();
}

ThreadStack UnpackThread(WireReader* reader) {
  ThreadStack thread;
  thread.tid = reader->Get<int64_t>();
  thread.holds_gil = reader->Get<uint8_t>() != 0;
  thread.source = "cpython";
  while (!reader->done()) {
    StackFrame frame;
    frame.function = reader->GetText();
    frame.file = reader->GetText();
    frame.line = reader->Get<int32_t>();
    if (reader->ok()) thread.python.push_back(std::move(frame));
  }
  return thread;
}

/// The files that tell where the interpreter is are read by a child with the process's user's rights; its memory is
/// read with ours.
void ReadPythonInWorker(pid_t pid, const WorkerPipe& pipe, int64_t deadline_ns) {
  const WorkerOutcome found = RunWorker(
      [&](const WorkerPipe& answer) {
        WireWriter writer;
        writer.Put(FindPython(pid));
        answer.Send(writer.bytes());
      },
      deadline_ns);
  PythonSymbols symbols;
  if (!found.messages.empty()) symbols = WireReader(found.messages[0]).Get<PythonSymbols>();
  const Result<PythonLayout> layout = ReadLayout(pid, symbols);
  if (!layout) {
    const bool refused = layout.error().code == ErrorCode::kIo;
    pipe.Send(PackProblem(refused ? ExplainPtraceRefusal().reason : layout.error().message));
    return;
  }
  const auto threads = ReadPythonThreads(pid, symbols, *layout);
  if (!threads) {
    pipe.Send(PackProblem(threads.error().message));
    return;
  }
  for (const ThreadStack& thread : *threads) pipe.Send(PackThread(thread));
}

/// py-spy, where it is installed; it reads memory only, too (--nonblocking).
bool AskPySpy(pid_t pid, int64_t deadline_ns, std::vector<ThreadStack>* threads) {
  const WorkerOutcome outcome = RunWorker(
      [&](const WorkerPipe& pipe) {
        const auto output =
            RunCommand({"py-spy", "dump", "--nonblocking", "--json", "--pid", fmt::format("{}", pid)},
                       {.timeout_ns = std::max<int64_t>(deadline_ns - MonotonicNs(), 1), .environment = std::nullopt});
        if (output && output->exit_status == 0) pipe.Send(output->output);
      },
      deadline_ns);
  if (outcome.messages.empty()) return false;
  auto read = ingest::ReadStacks(outcome.messages[0]);
  if (!read || read->empty()) return false;
  *threads = std::move(*read);
  return true;
}

}  // namespace

PythonStacks ReadPythonStacks(pid_t pid, int64_t deadline_monotonic_ns) {
  PythonStacks stacks;
  const WorkerOutcome outcome = RunWorker(
      [&](const WorkerPipe& pipe) { ReadPythonInWorker(pid, pipe, deadline_monotonic_ns); }, deadline_monotonic_ns);
  bool has_frames = false;
  for (const std::string& message : outcome.messages) {
    WireReader reader(message);
    if (reader.Get<PythonMessage>() == PythonMessage::kProblem) {
      stacks.reason = reader.GetText();
      continue;
    }
    stacks.threads.push_back(UnpackThread(&reader));
    has_frames |= !stacks.threads.back().python.empty();
  }
  if (has_frames || AskPySpy(pid, deadline_monotonic_ns, &stacks.threads)) {
    stacks.reason.clear();
    return stacks;
  }
  if (stacks.reason.empty())
    stacks.reason = outcome.out_of_time ? "reading them took too long" : "none of its threads runs Python now";
  stacks.remedy = "install py-spy on the node, or call lockstep.enable_hang_dumps() in the job";
  return stacks;
}

}  // namespace lockstep::inspect
