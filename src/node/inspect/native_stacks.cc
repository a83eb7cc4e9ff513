#include "node/inspect/native_stacks.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/remote_memory.h"
#include "node/inspect/thread_snapshot.h"
#include "node/inspect/unwinder.h"
#include "node/inspect/wire.h"
#include "node/inspect/worker.h"

namespace lockstep::inspect {
namespace {

enum class NativeMessage : uint8_t { kSnapshots, kStack };

struct Found {
  ThreadSnapshot snapshot;
  Unwinder::Stack stack;
};

void SendStack(Unwinder* unwinder, const Found& found, bool with_lines, const WorkerPipe& pipe) {
  WireWriter writer;
  writer.Put(NativeMessage::kStack);
  writer.Put(int64_t{found.snapshot.tid});
  writer.Put(static_cast<uint32_t>(found.stack.addresses.size()));
  for (const uint64_t address : found.stack.addresses) {
    evidence::StackFrame frame = unwinder->Describe(address);
    if (with_lines) unwinder->AddLine(address, &frame);
    writer.PutText(frame.function);
    writer.PutText(frame.file);
    writer.Put(frame.line);
  }
  pipe.Send(writer.bytes());
}

void SendHeld(const HeldThreads& held, const WorkerPipe& pipe) {
  WireWriter writer;
  writer.Put(NativeMessage::kSnapshots);
  writer.Put(held.longest_pause_ns);
  writer.Put(static_cast<uint64_t>(held.snapshots.size()));
  writer.Put(static_cast<uint32_t>(held.refused.size()));
  for (const HeldThreads::Refused& refused : held.refused) {
    writer.Put(refused.tid);
    writer.Put(int32_t{refused.error});
  }
  pipe.Send(writer.bytes());
}

/// In the worker. All that needs rights over the process comes first, then its files are read with the rights of its
/// own user: a thread whose stack does not unwind without being held needs them again, so that is found out by a
/// second worker's unwinding of what the first one copied. One process does both, in this order: look at all sleeping
/// threads, unwind in a child that reports which are complete, hold the others.
void ReadNativeInWorker(pid_t pid, const std::vector<pid_t>& tids, int64_t longest_pause_ns, int64_t deadline_ns,
                        const WorkerPipe& pipe) {
  const std::vector<MemoryRange> ranges = ReadMaps(pid);
  std::vector<Found> found;
  std::vector<pid_t> to_hold;
  for (const pid_t tid : tids) {
    if (auto snapshot = SnapshotSleeping(pid, tid)) {
      found.push_back({.snapshot = std::move(*snapshot), .stack = {}});
    } else {
      to_hold.push_back(tid);
    }
  }
  // Which of them unwind: asked of a child, which gives its rights up before it opens a file of the process.
  const WorkerOutcome tried = RunWorker(
      [&](const WorkerPipe& answer) {
        if (!BecomeOwnerOf(pid)) return;
        const auto unwinder = Unwinder::Create(pid, ranges);
        for (const Found& one : found) {
          const bool complete = unwinder != nullptr && unwinder->Unwind(one.snapshot).complete;
          answer.Send(std::string(1, complete ? 'y' : 'n'));
        }
      },
      deadline_ns);
  for (size_t i = found.size(); i-- > 0;) {
    if (i < tried.messages.size() && tried.messages[i] == "y") continue;
    to_hold.push_back(found[i].snapshot.tid);
  }

  HeldThreads held = HoldThreads(pid, to_hold, longest_pause_ns, deadline_ns);
  SendHeld(held, pipe);
  // One that could not be held keeps what its sleep showed.
  for (ThreadSnapshot& snapshot : held.snapshots) {
    std::erase_if(found, [&](const Found& one) { return one.snapshot.tid == snapshot.tid; });
    found.push_back({.snapshot = std::move(snapshot), .stack = {}});
  }
  if (!BecomeOwnerOf(pid)) return;
  const auto unwinder = Unwinder::Create(pid, ranges);
  if (unwinder == nullptr) return;
  for (Found& one : found) {
    one.stack = unwinder->Unwind(one.snapshot);
    SendStack(unwinder.get(), one, false, pipe);
  }
  for (const Found& one : found) SendStack(unwinder.get(), one, true, pipe);
}

void TakeStack(WireReader* reader, NativeStacks* stacks) {
  const auto tid = reader->Get<int64_t>();
  const auto count = reader->Get<uint32_t>();
  std::vector<evidence::StackFrame> frames;
  for (uint32_t i = 0; i < count && reader->ok(); ++i) {
    evidence::StackFrame frame;
    frame.function = reader->GetText();
    frame.file = reader->GetText();
    frame.line = reader->Get<int32_t>();
    frames.push_back(std::move(frame));
  }
  if (reader->ok() && !frames.empty()) stacks->frames[tid] = std::move(frames);
}

void TakeHeld(WireReader* reader, NativeStacks* stacks) {
  stacks->longest_pause_ns = reader->Get<int64_t>();
  stacks->held_count = reader->Get<uint64_t>();
  const auto count = reader->Get<uint32_t>();
  std::set<int> errors;
  size_t refused_count = 0;
  for (uint32_t i = 0; i < count && reader->ok(); ++i) {
    reader->Get<pid_t>();
    const auto error = reader->Get<int32_t>();
    if (error == ESRCH) continue;  // It has ended.
    errors.insert(error);
    ++refused_count;
  }
  if (refused_count == 0) return;
  if (errors.contains(EPERM) || errors.contains(EACCES)) {
    const PtraceRefusal refusal = ExplainPtraceRefusal();
    stacks->reason = refusal.reason;
    stacks->remedy = refusal.remedy;
  } else {
    stacks->reason = fmt::format("{} of its threads did not stop in time and were released", refused_count);
    stacks->remedy = "try again; a thread that waits for a disk or a device (state D) cannot be stopped";
  }
}

}  // namespace

NativeStacks ReadNativeStacks(pid_t pid, const std::vector<pid_t>& tids, int64_t longest_pause_ns,
                              int64_t deadline_monotonic_ns) {
  NativeStacks stacks;
  if (!CanTakeSnapshots()) {
    utsname machine = {};
    ::uname(&machine);
    stacks.reason = fmt::format("native stacks are not read on {}", machine.machine);
    stacks.remedy = "use gdb or eu-stack on this node and give the text to lockstep hang";
    return stacks;
  }
  const WorkerOutcome outcome = RunWorker(
      [&](const WorkerPipe& pipe) { ReadNativeInWorker(pid, tids, longest_pause_ns, deadline_monotonic_ns, pipe); },
      deadline_monotonic_ns);
  for (const std::string& message : outcome.messages) {
    WireReader reader(message);
    switch (reader.Get<NativeMessage>()) {
      case NativeMessage::kSnapshots: TakeHeld(&reader, &stacks); break;
      case NativeMessage::kStack: TakeStack(&reader, &stacks); break;
    }
  }
  if (!stacks.reason.empty()) return stacks;
  if (!outcome.error.empty()) {
    stacks.reason = outcome.error;
  } else if (outcome.out_of_time) {
    stacks.reason = "reading its stacks took too long and was stopped";
    stacks.remedy = "give it more time (--timeout)";
  } else if (!outcome.finished) {
    stacks.reason = outcome.signal != 0 ? fmt::format("the reader of its stacks ended by signal {}", outcome.signal)
                                        : std::string("the reader of its stacks failed");
    stacks.remedy = "use gdb or eu-stack on this node and give the text to lockstep hang";
  } else if (stacks.frames.empty() && !tids.empty()) {
    stacks.reason = "its files contain no unwind information";
  }
  return stacks;
}

}  // namespace lockstep::inspect
