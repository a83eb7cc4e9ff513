#include "node/inspect/job_dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/nanoseconds.h"
#include "node/inspect/job_files.h"
#include "node/inspect/local_server.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/tcp_sockets.h"
#include "node/inspect/wire.h"
#include "node/inspect/worker.h"

namespace lockstep::inspect {
namespace {

constexpr size_t kMaxUnixTableBytes = size_t{16} << 20;
constexpr std::string_view kServerThread = "pt_workerserver";
constexpr size_t kMaxPorts = 16;

enum class DumpMessage : uint8_t { kHelperBytes, kRecord, kProblem };

std::string PackTexts(DumpMessage kind, std::string_view first, std::string_view second = {},
                      std::string_view third = {}) {
  WireWriter writer;
  writer.Put(kind);
  writer.PutText(first);
  writer.PutText(second);
  writer.PutText(third);
  return writer.bytes();
}

/// A flight record that came whole, and when it was asked for.
std::string PackRecord(std::string_view source, std::string_view format, std::string_view record,
                       int64_t asked_unix_ns) {
  WireWriter writer;
  writer.Put(DumpMessage::kRecord);
  writer.PutText(source);
  writer.PutText(format);
  writer.PutText(record);
  writer.Put(asked_unix_ns);
  return writer.bytes();
}

/// The helper's answer goes to the parent piece by piece: what came before a deadline is there then.
bool AskHelper(pid_t pid, const WorkerPipe& pipe, int64_t deadline_ns) {
  const std::string path =
      FindHelperSocket(ReadProcFile(pid, "net/unix", kMaxUnixTableBytes).value_or(""), ReadSocketInodes(pid));
  if (path.empty()) return false;
  const UniqueFd socket = ConnectTo(pid, path);
  if (!socket.valid()) {
    pipe.Send(PackTexts(DumpMessage::kProblem, "the socket of its Python helper refuses this user"));
    return false;
  }
  const bool whole = Exchange(socket.get(), "dump\n", deadline_ns, [&](std::string_view piece) {
    return pipe.Send(PackTexts(DumpMessage::kHelperBytes, piece));
  });
  if (!whole) {
    pipe.Send(PackTexts(DumpMessage::kProblem,
                        "its Python helper did not complete its answer: some thread holds the interpreter's lock, or "
                        "the machine is very busy"));
  }
  return true;
}

/// Only ports of this very process, and only when it has a thread that PyTorch names so.
bool AskServer(pid_t pid, const JobDumpInput& input, const WorkerPipe& pipe, int64_t deadline_ns) {
  if (std::find(input.thread_names.begin(), input.thread_names.end(), kServerThread) == input.thread_names.end())
    return false;
  std::vector<uint16_t> ports = ReadListeningPorts(pid);
  if (ports.size() > kMaxPorts) ports.resize(kMaxPorts);
  for (const uint16_t port : ports) {
    const auto pong = PostTo(port, "/handler/ping", std::min(deadline_ns, MonotonicNs() + kSecondNs));
    if (!pong || pong->status != 200 || pong->body != "pong") continue;
    if (const auto text = PostTo(port, "/handler/dump_traceback", deadline_ns); text && text->status == 200)
      pipe.Send(PackRecord("debug_server", "faulthandler", text->body, 0));
    struct Handler {
      const char* path;
      const char* format;
    };
    for (const Handler& handler :
         {Handler{"/handler/dump_nccl_trace_pickle", "pickle"}, Handler{"/handler/fr_trace_json", "json"}}) {
      const int64_t asked_unix_ns = UnixNs();
      const auto record = PostTo(port, handler.path, deadline_ns);
      if (!record || record->status != 200 || record->body.empty()) continue;
      pipe.Send(PackRecord("debug_server", handler.format, record->body, asked_unix_ns));
      return true;
    }
    pipe.Send(PackTexts(DumpMessage::kProblem, "its debug server has no flight record"));
  }
  return false;
}

void ReadDumpInWorker(pid_t pid, const JobDumpInput& input, const WorkerPipe& pipe, int64_t deadline_ns) {
  if (AskHelper(pid, pipe, deadline_ns)) return;
  // Where root looks into a container, its loopback device is another one.
  if (ReadProcLink(pid, "ns/net") != ReadProcLink(::getpid(), "ns/net")) {
    const UniqueFd network(::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!network.valid() || ::setns(network.get(), CLONE_NEWNET) != 0) {
      pipe.Send(PackTexts(DumpMessage::kProblem, "it has a network namespace of its own, which only root may enter"));
      return;
    }
  }
  if (!BecomeOwnerOf(pid)) return;
  if (AskServer(pid, input, pipe, deadline_ns)) return;
  const int64_t asked_unix_ns = UnixNs();
  const PipeDump dump = AskPipe(pid, input.rank, deadline_ns);
  if (!dump.record.empty()) pipe.Send(PackRecord("pipe", "pickle", dump.record, asked_unix_ns));
  if (!dump.problem.empty()) pipe.Send(PackTexts(DumpMessage::kProblem, dump.problem));
}

}  // namespace

JobDump ReadJobDump(pid_t pid, const JobDumpInput& input, int64_t deadline_monotonic_ns) {
  JobDump dump;
  const WorkerOutcome outcome = RunWorker(
      [&](const WorkerPipe& pipe) { ReadDumpInWorker(pid, input, pipe, deadline_monotonic_ns - kReportMarginNs); },
      deadline_monotonic_ns);
  std::string answer;
  std::string problem;
  for (const std::string& message : outcome.messages) {
    WireReader reader(message);
    const auto kind = reader.Get<DumpMessage>();
    std::string first = reader.GetText();
    std::string second = reader.GetText();
    std::string third = reader.GetText();
    const int64_t asked_unix_ns = kind == DumpMessage::kRecord ? reader.Get<int64_t>() : 0;
    if (!reader.ok()) continue;
    if (kind == DumpMessage::kHelperBytes) answer += first;
    if (kind == DumpMessage::kProblem) problem = std::move(first);
    if (kind != DumpMessage::kRecord) continue;
    dump.source = std::move(first);
    if (second == "faulthandler") {
      dump.faulthandler = std::move(third);
    } else {
      dump.format = std::move(second);
      dump.record = std::move(third);
      dump.record_unix_ns = asked_unix_ns;
    }
  }
  if (!answer.empty() && !ParseHelperAnswer(answer, &dump))
    problem = "the answer from its helper's socket is not a helper's";
  if (!dump.record.empty()) return dump;
  if (dump.reason.empty()) dump.reason = problem;
  dump.remedy = "call lockstep.enable_hang_dumps() in the job, or start it with: lockstep run --hang-dumps -- CMD";
  if (!dump.reason.empty()) return dump;
  dump.reason = input.torch_version.empty()
                    ? "it seems not to have loaded PyTorch"
                    : "it has none of the ways to ask for one: Python helper, debug server, recorder's pipe";
  return dump;
}

}  // namespace lockstep::inspect
