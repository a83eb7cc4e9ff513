#include "node/inspect/facts.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "base/timespec.h"
#include "node/inspect/job_files.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/proc_state.h"
#include "node/inspect/wire.h"
#include "node/inspect/worker.h"
#include "node/proc/proc_reader.h"

namespace lockstep::inspect {
namespace {

using evidence::InspectedProcess;
using evidence::ProcessState;
using evidence::SocketState;
using evidence::ThreadStack;

enum class FactsMessage : uint8_t { kIdentity, kState, kThreads, kLog };

constexpr size_t kLogTailBytes = size_t{64} << 10;

void SleepUntil(int64_t monotonic_ns) {
  const timespec until = Timespec(monotonic_ns);
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

template <typename Value>
void PutOptional(WireWriter* writer, const std::optional<Value>& value) {
  writer->Put(value.has_value());
  writer->Put(value.value_or(Value{}));
}
template <typename Value>
void GetOptional(WireReader* reader, std::optional<Value>* value) {
  const auto known = reader->Get<uint8_t>();
  const auto number = reader->Get<Value>();
  if (known != 0) *value = number;
}

std::string PackIdentity(const proc::ProcessDetails& details) {
  WireWriter writer;
  writer.Put(FactsMessage::kIdentity);
  PutOptional(&writer, details.rank);
  PutOptional(&writer, details.local_rank);
  PutOptional(&writer, details.world_size);
  writer.PutText(details.job_id);
  writer.PutText(details.command);
  writer.PutText(details.torch_version);
  return writer.bytes();
}

void UnpackIdentity(WireReader* reader, InspectedProcess* process) {
  GetOptional(reader, &process->rank);
  GetOptional(reader, &process->local_rank);
  GetOptional(reader, &process->world_size);
  process->job_id = reader->GetText();
  process->command = reader->GetText();
  process->torch_version = reader->GetText();
}

std::string PackState(const ProcessState& state) {
  WireWriter writer;
  writer.Put(FactsMessage::kState);
  writer.Put(state.state);
  writer.Put(state.window_ns);
  PutOptional(&writer, state.cpu_ns);
  PutOptional(&writer, state.context_switches);
  PutOptional(&writer, state.read_bytes);
  PutOptional(&writer, state.write_bytes);
  PutOptional(&writer, state.resident_bytes);
  PutOptional(&writer, state.memory_limit_bytes);
  PutOptional(&writer, state.oom_kill_count);
  for (const SocketState& socket : state.sockets) {
    writer.PutText(socket.local);
    writer.PutText(socket.remote);
    writer.PutText(socket.state);
    writer.Put(socket.send_queue_bytes);
    writer.Put(socket.receive_queue_bytes);
  }
  return writer.bytes();
}

ProcessState UnpackState(WireReader* reader) {
  ProcessState state;
  state.state = reader->Get<char>();
  state.window_ns = reader->Get<int64_t>();
  GetOptional(reader, &state.cpu_ns);
  GetOptional(reader, &state.context_switches);
  GetOptional(reader, &state.read_bytes);
  GetOptional(reader, &state.write_bytes);
  GetOptional(reader, &state.resident_bytes);
  GetOptional(reader, &state.memory_limit_bytes);
  GetOptional(reader, &state.oom_kill_count);
  while (!reader->done()) {
    SocketState socket;
    socket.local = reader->GetText();
    socket.remote = reader->GetText();
    socket.state = reader->GetText();
    socket.send_queue_bytes = reader->Get<uint64_t>();
    socket.receive_queue_bytes = reader->Get<uint64_t>();
    if (reader->ok()) state.sockets.push_back(std::move(socket));
  }
  return state;
}

std::string PackThreads(const std::vector<ThreadStack>& threads) {
  WireWriter writer;
  writer.Put(FactsMessage::kThreads);
  for (const ThreadStack& thread : threads) {
    writer.Put(thread.tid);
    writer.Put(thread.is_main);
    writer.Put(thread.state);
    writer.PutText(thread.name);
    writer.PutText(thread.wait_channel);
    writer.PutText(thread.syscall);
  }
  return writer.bytes();
}

std::vector<ThreadStack> UnpackThreads(WireReader* reader) {
  std::vector<ThreadStack> threads;
  while (!reader->done()) {
    ThreadStack thread;
    thread.tid = reader->Get<int64_t>();
    thread.is_main = reader->Get<uint8_t>() != 0;
    thread.state = reader->Get<char>();
    thread.name = reader->GetText();
    thread.wait_channel = reader->GetText();
    thread.syscall = reader->GetText();
    thread.source = "proc";
    if (reader->ok()) threads.push_back(std::move(thread));
  }
  return threads;
}

}  // namespace

void ReadFacts(pid_t pid, const InspectOptions& options, int64_t deadline_monotonic_ns, InspectedProcess* process) {
  const WorkerOutcome outcome = RunWorker(
      [&](const WorkerPipe& pipe) {
        const ProcCounters before = ReadCounters(pid);
        if (const auto details = proc::ProcReader("/proc").ReadWithoutUser(pid, 0)) pipe.Send(PackIdentity(*details));
        SleepUntil(std::min(before.time_ns + options.state_window_ns, deadline_monotonic_ns));
        const ProcCounters after = ReadCounters(pid);
        pipe.Send(PackState(ReadProcessState(pid, before, after)));
        pipe.Send(PackThreads(ReadThreads(pid)));
        if (!BecomeOwnerOf(pid)) return;
        const LogTail log = ReadLogTail(pid, kLogTailBytes);
        WireWriter writer;
        writer.Put(FactsMessage::kLog);
        writer.PutText(log.path);
        writer.PutText(log.text);
        pipe.Send(writer.bytes());
      },
      deadline_monotonic_ns);
  for (const std::string& message : outcome.messages) {
    WireReader reader(message);
    switch (reader.Get<FactsMessage>()) {
      case FactsMessage::kIdentity: UnpackIdentity(&reader, process); break;
      case FactsMessage::kState: process->state = UnpackState(&reader); break;
      case FactsMessage::kLog:
        process->log_path = reader.GetText();
        process->log_tail = reader.GetText();
        break;
      case FactsMessage::kThreads: process->stacks = UnpackThreads(&reader); break;
    }
  }
  if (process->state) return;
  std::string reason = outcome.error;
  if (reason.empty()) reason = outcome.out_of_time ? "reading /proc did not finish" : "/proc could not be read";
  process->missing.push_back({.rank = process->rank,
                              .host = process->host,
                              .what = "process_state",
                              .reason = reason,
                              .remedy = fmt::format("check whether \"ls /proc/{}/task\" answers on that node", pid)});
}

}  // namespace lockstep::inspect
