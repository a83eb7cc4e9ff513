#include "ingest/rank_log/log_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/letter_case.h"
#include "base/text_scan.h"

namespace lockstep::ingest {
namespace {

using evidence::LogEvent;
using evidence::LogEventKind;

/// What stands between two marks; empty when they are not there.
std::string_view Between(std::string_view line, std::string_view before, std::string_view after) {
  TextCursor cursor(line);
  if (!cursor.SkipPast(before)) return {};
  return cursor.Until(after).value_or(std::string_view());
}

std::optional<int64_t> NumberAfter(std::string_view line, std::string_view mark) {
  TextCursor cursor(line);
  if (!cursor.SkipPast(mark)) return std::nullopt;
  cursor.SkipBlanks();
  return cursor.Number();
}

std::optional<int32_t> RankAfter(std::string_view line, std::string_view mark) {
  const auto number = NumberAfter(line, mark);
  return number && *number >= 0 && *number < (1 << 24) ? std::optional(static_cast<int32_t>(*number)) : std::nullopt;
}

/// "[PG ID 0 PG GUID 0(default_pg) Rank 118]"; before 2.5 "[PG 0 (default_pg) Rank 118]", before that "[Rank 118]".
/// The rank is that in the group: it is the job's for the group of all only.
void ReadGroup(std::string_view line, LogEvent& event) {
  TextCursor cursor(line);
  bool of_all = false;
  if (cursor.SkipPast("PG GUID ")) {
    event.group = std::string(cursor.rest().substr(0, cursor.rest().find_first_of("( ]")));
    of_all = Between(line, "(", ")") == "default_pg";
  } else if (cursor.SkipPast("[PG ID ") || cursor.SkipPast("[PG ")) {
    event.group = std::string(cursor.rest().substr(0, cursor.rest().find_first_of("( ]")));
    of_all = Between(line, "(", ")") == "default_pg";
  } else {
    of_all = line.find("[Rank ") != std::string_view::npos;
  }
  if (!of_all) return;
  event.rank = RankAfter(line, "Rank ");
}

void ReadWatchdogTimeout(std::string_view line, LogEvent& event) {
  ReadGroup(line, event);
  event.sequence = NumberAfter(line, "SeqNum=");
  event.operation = OperationOfType(Between(line, "OpType=", ","));
}

void ReadWatchdogStatus(std::string_view line, LogEvent& event) {
  ReadGroup(line, event);
  event.sequence = NumberAfter(line, "work sequence id:");
  if (!event.sequence) event.sequence = NumberAfter(line, "Timeout at NCCL work:");
}

/// "- [1, 3] finished collective #14, but didn't join collective #15 (count from 1)", and of those that wait for them
/// "- [0, 2] joined but didn't finish collective #15 (count from 1)".
void ReadDesync(std::string_view line, LogEvent& event) {
  const size_t open = line.find('[');
  const bool joined = line.find("joined but didn't finish") != std::string_view::npos;
  if (open != std::string_view::npos) {
    (joined ? event.waiting_ranks : event.blamed_ranks) = ReadRankList(line.substr(open));
  }
  event.sequence = NumberAfter(line, "didn't join collective #");
  if (!event.sequence) event.sequence = NumberAfter(line, "collective #");
}

/// "Connection closed by peer [10.0.0.1]:26830", "Read error [10.0.0.1]:26510: Connection reset by peer".
void ReadPeer(std::string_view line, LogEvent& event) {
  for (const std::string_view mark : {"by peer [", "error [", "with [", "to ["}) {
    TextCursor cursor(line);
    if (!cursor.SkipPast(mark)) continue;
    const auto address = cursor.Until("]:");
    const auto port = cursor.Number();
    if (!address || !port || address->size() > 64) continue;
    event.peer = std::string(*address) + ":" + std::to_string(*port);
    return;
  }
}

/// "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[4096],
/// TensorDtypes=Float, ...)". Where the two calls have tensors of different ranks PyTorch writes the other's print
/// wrongly
/// ("SequenceNumber=0OpType=SCATTER"): then only who it is counts.
void ReadFingerprint(std::string_view text, LogEvent& event) {
  TextCursor cursor(text);
  const auto rank = cursor.Number<int32_t>();
  if (!rank || *rank < 0 || *rank >= (1 << 24)) return;
  evidence::NamedCall call;
  call.rank = *rank;
  if (cursor.SkipPast(", OpType=")) {
    const std::string_view print = cursor.rest();
    call.operation = OperationOfType(print.substr(0, print.find_first_of(",)")));
    call.shape = std::string(Between(print, "TensorShape=[", "]").substr(0, 64));
    if (cursor.SkipPast("TensorDtypes=")) {
      call.dtype = std::string(cursor.rest().substr(0, cursor.rest().find_first_of(",)")).substr(0, 64));
    }
  }
  event.calls.push_back(std::move(call));
}

void ReadMismatch(std::string_view line, LogEvent& event) {
  event.sequence = NumberAfter(line, "SequenceNumber=");
  if (event.sequence) ++*event.sequence;  // The fingerprint counts from 0, the recorder from 1.
  event.operation = OperationOfType(Between(line, "OpType=", ","));
  event.rank = RankAfter(line, "Rank ");
  TextCursor cursor(line);
  if (!cursor.SkipPast(". Rank ")) return;
  const std::string_view own = cursor.rest();
  if (!cursor.SkipPast("but Rank ")) return;
  ReadFingerprint(own.substr(0, own.find("but Rank ")), event);
  ReadFingerprint(cursor.rest(), event);
  if (const auto other = cursor.Number<int32_t>(); other && *other >= 0) event.blamed_ranks.push_back(*other);
}

/// "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 8000 ms", "... Rank 2 failed ...".
void ReadBarrier(std::string_view line, LogEvent& event) {
  event.operation = "monitored_barrier";
  const size_t failed = line.find(" failed to pass monitoredBarrier");
  if (failed == std::string_view::npos) {
    event.rank = RankAfter(line, "Rank ");
    return;
  }
  event.rank = RankAfter(line, "[Rank ");
  const std::string_view before = line.substr(0, failed);
  const size_t ranks = std::max(before.rfind("Ranks ") + 1, before.rfind("Rank ") + 1);
  if (ranks == 0) return;
  const std::string_view list = before.substr(ranks - 1);
  event.blamed_ranks = ReadRankList(list.substr(list.find(' ')));
}

void ReadStore(std::string_view line, LogEvent& event) {
  const std::string_view address = Between(line, "connect to (", ")");
  const size_t comma = address.find(", ");
  if (comma == std::string_view::npos) return;
  event.peer = std::string(address.substr(0, comma)) + ":" + std::string(address.substr(comma + 2));
}

/// "process rank 3 with PID 12 on node a exited on signal 9 (Killed)."
void ReadMpiSignal(std::string_view line, LogEvent& event) {
  event.rank = RankAfter(line, "process rank ");
  event.signal = static_cast<int32_t>(std::clamp<int64_t>(NumberAfter(line, "exited on signal").value_or(0), 0, 64));
}

/// "failed (exitcode: -9) local_rank: 1 (pid: 12) of binary: ..."
void ReadExitCode(std::string_view line, LogEvent& event) {
  const int64_t code = NumberAfter(line, "(exitcode:").value_or(0);
  if (code < 0 && code >= -64) event.signal = static_cast<int32_t>(-code);
  if (code > 128 && code <= 192) event.signal = static_cast<int32_t>(code - 128);
  if (event.signal == 0) event.kind = LogEventKind::kOtherError;
  if (code >= 0 && code < 256) event.exit_status = static_cast<int32_t>(code);
}

/// "srun: error: node-a: task 3: Killed", "tasks 0-2: Exited with exit code 137".
void ReadSrun(std::string_view line, LogEvent& event) {
  TextCursor cursor(line);
  if (!cursor.SkipPast(": task")) return;
  cursor.Skip("s");
  const auto tasks = cursor.Until(": ");
  if (!tasks) return;
  event.blamed_ranks = ReadRankList(*tasks);
  if (event.blamed_ranks.size() == 1) event.rank = event.blamed_ranks.front();
  event.signal = SignalOfName(cursor.rest());
  if (const auto code = NumberAfter(cursor.rest(), "Exited with exit code")) {
    if (*code > 128 && *code <= 192) event.signal = static_cast<int32_t>(*code - 128);
    if (*code >= 0 && *code < 256) event.exit_status = static_cast<int32_t>(*code);
  }
  if (event.signal == 0) event.kind = LogEventKind::kOtherError;
}

/// "process 3 terminated with signal SIGKILL" of torch.multiprocessing.
void ReadSpawn(std::string_view line, LogEvent& event) {
  event.rank = RankAfter(line, "process ");
  TextCursor cursor(line);
  if (cursor.SkipPast("terminated with signal ")) event.signal = SignalOfName(cursor.rest());
}

void ReadDiedWith(std::string_view line, LogEvent& event) {
  TextCursor cursor(line);
  if (!cursor.SkipPast("died with ")) return;
  if (cursor.Skip("signal ")) {
    event.signal = static_cast<int32_t>(std::clamp<int64_t>(cursor.Number().value_or(0), 0, 64));
  } else if (cursor.Skip("<Signals.")) {
    event.signal = SignalOfName(cursor.rest());
  }
}

void ReadNamedSignal(std::string_view line, LogEvent& event) {
  TextCursor cursor(line);
  if (!cursor.SkipPast("Fatal Python error: ") && !cursor.SkipPast("Signal: ")) {
    // The shell's "job.sh: line 5:  1234 Killed   python train.py", or alone.
    for (const std::string_view name : {"Segmentation fault", "Killed", "Aborted", "Bus error"}) {
      if (line.find(name) != std::string_view::npos) event.signal = SignalOfName(name);
    }
    return;
  }
  event.signal = SignalOfName(cursor.rest());
  if (event.signal == 0) event.kind = LogEventKind::kOtherError;
}

using Reader = void (*)(std::string_view line, LogEvent& event);

/// In the order of trust: a line is of the first kind whose mark it holds.
struct Rule {
  std::string_view mark;
  LogEventKind kind;
  Reader read = nullptr;
};

constexpr Rule kRules[] = {
    {"Watchdog caught collective operation timeout", LogEventKind::kWatchdogTimeout, ReadWatchdogTimeout},
    {"failure detected by watchdog at work sequence id", LogEventKind::kWatchdogStatus, ReadWatchdogStatus},
    {"Timeout at NCCL work:", LogEventKind::kWatchdogStatus, ReadWatchdogStatus},
    {"watchdog got stuck", LogEventKind::kWatchdogStuck, ReadGroup},
    {"Heartbeat monitor timed out", LogEventKind::kWatchdogStuck, ReadGroup},
    {"Could not acquire GIL", LogEventKind::kWatchdogStuck, ReadGroup},
    {"(count from 1)", LogEventKind::kDesyncReport, ReadDesync},
    {"] never joined any collectives", LogEventKind::kDesyncReport, ReadDesync},
    {"Detected mismatch between collectives on ranks", LogEventKind::kCollectiveMismatch, ReadMismatch},
    {"monitoredBarrier", LogEventKind::kMonitoredBarrier, ReadBarrier},
    {"Received data size doesn't match expected size", LogEventKind::kSizeMismatch},
    {"op.preamble.length <= op.nbytes", LogEventKind::kSizeMismatch},
    {"out of memory. Tried to allocate", LogEventKind::kOutOfMemory},
    {"CUDA out of memory", LogEventKind::kOutOfMemory},
    {"CUDA error: out of memory", LogEventKind::kOutOfMemory},
    {"HIP out of memory", LogEventKind::kOutOfMemory},
    {"OutOfMemoryError", LogEventKind::kOutOfMemory},
    {"DefaultCPUAllocator: can't allocate memory", LogEventKind::kOutOfMemory},
    {"std::bad_alloc", LogEventKind::kOutOfMemory},
    {"Out of memory: Killed process", LogEventKind::kOutOfMemory},
    {"Memory cgroup out of memory", LogEventKind::kOutOfMemory},
    {"oom_kill event", LogEventKind::kOutOfMemory},
    {"oom-kill event", LogEventKind::kOutOfMemory},
    {"Connection reset by peer", LogEventKind::kPeerReset, ReadPeer},
    {"Connection closed by peer", LogEventKind::kPeerClosed, ReadPeer},
    {"Broken pipe", LogEventKind::kPeerClosed, ReadPeer},
    {"Socket closed", LogEventKind::kPeerClosed, ReadPeer},
    {"recv operation to complete", LogEventKind::kTransportTimeout},
    {"send operation to complete", LogEventKind::kTransportTimeout},
    {"Application timeout caused pair closure", LogEventKind::kTransportTimeout},
    {"Gloo connectFullMesh failed", LogEventKind::kTransportTimeout},
    {"Connect timeout [", LogEventKind::kTransportTimeout, ReadPeer},
    {"wait timeout after", LogEventKind::kStoreTimeout},
    {"waiting for clients", LogEventKind::kStoreTimeout},
    {"client socket has timed out", LogEventKind::kStoreTimeout, ReadStore},
    {"client socket has failed to connect", LogEventKind::kStoreTimeout, ReadStore},
    {"DistStoreError", LogEventKind::kStoreTimeout},
    {"Socket Timeout", LogEventKind::kStoreTimeout},
    {"exited on signal", LogEventKind::kSignal, ReadMpiSignal},
    {"failed (exitcode:", LogEventKind::kSignal, ReadExitCode},
    {"srun: error:", LogEventKind::kSignal, ReadSrun},
    {"terminated with signal SIG", LogEventKind::kSignal, ReadSpawn},
    {"died with signal ", LogEventKind::kSignal, ReadDiedWith},
    {"died with <Signals.", LogEventKind::kSignal, ReadDiedWith},
    {"Fatal Python error: ", LogEventKind::kSignal, ReadNamedSignal},
    {"] Signal: ", LogEventKind::kSignal, ReadNamedSignal},
    {"Xid (PCI", LogEventKind::kDeviceError},
    {"ncorrectable ECC", LogEventKind::kDeviceError},
    {"CUDA error:", LogEventKind::kDeviceError},
    {"HIP error:", LogEventKind::kDeviceError},
    {"device-side assert triggered", LogEventKind::kDeviceError},
    {"CUDA driver error", LogEventKind::kDeviceError},
    {" NCCL WARN ", LogEventKind::kNcclError},
    {"ncclSystemError", LogEventKind::kNcclError},
    {"ncclInternalError", LogEventKind::kNcclError},
    {"ncclRemoteError", LogEventKind::kNcclError},
    {"ncclUnhandledCudaError", LogEventKind::kNcclError},
    {"ncclInvalidUsage", LogEventKind::kNcclError},
    {"NCCL error", LogEventKind::kNcclError},
};

/// "Killed", "job.sh: line 5:  1234 Killed   python train.py", "Segmentation fault (core dumped)": the shell's words.
bool IsShellDeath(std::string_view line) {
  for (const std::string_view name : {"Killed", "Segmentation fault", "Aborted", "Bus error"}) {
    if (line == name || (line.starts_with(name) && line.ends_with("(core dumped)"))) return true;
    const size_t at = line.find(name);
    if (at == std::string_view::npos || at < 3 || line[at - 1] != ' ') continue;
    const std::string_view before = line.substr(0, at - 1);
    if (before.find(": line ") != std::string_view::npos && IsDigit(before.back())) return true;
  }
  return false;
}

}  // namespace

std::vector<int32_t> ReadRankList(std::string_view text) {
  constexpr size_t kLimit = 65'536;
  std::vector<int32_t> ranks;
  TextCursor cursor(text);
  while (!cursor.empty() && ranks.size() < kLimit) {
    if (cursor.Skip("]")) break;
    if (cursor.Skip(" ") || cursor.Skip(",") || cursor.Skip("[")) continue;
    const auto first = cursor.Number<int32_t>();
    if (!first || *first < 0 || *first >= (1 << 24)) break;
    int32_t last = *first;
    if (cursor.Skip("-")) last = std::max(last, cursor.Number<int32_t>().value_or(last));
    for (int32_t rank = *first; rank <= last && ranks.size() < kLimit; ++rank) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string OperationOfType(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"ALLREDUCE", "all_reduce"}, {"ALLGATHER", "all_gather"},     {"_ALLGATHER_BASE", "_all_gather_base"},
      {"ALLTOALL", "all_to_all"},  {"ALLTOALL_BASE", "all_to_all"},
  };
  if (type.size() > 64) return {};
  for (const auto& [from, to] : kNames) {
    if (type == from) return std::string(to);
  }
  std::string lower = Lowered(type);
  return lower;
}

int32_t SignalOfName(std::string_view name) {
  constexpr std::pair<std::string_view, int32_t> kNames[] = {
      {"SIGKILL", 9},
      {"Killed", 9},
      {"SIGSEGV", 11},
      {"Segmentation fault", 11},
      {"SIGABRT", 6},
      {"Aborted", 6},
      {"SIGBUS", 7},
      {"Bus error", 7},
      {"SIGTERM", 15},
      {"Terminated", 15},
      {"SIGINT", 2},
      {"SIGFPE", 8},
      {"Floating point exception", 8},
      {"SIGILL", 4},
      {"Illegal instruction", 4},
      {"SIGHUP", 1},
  };
  for (const auto& [text, signal] : kNames) {
    if (name.starts_with(text)) return signal;
  }
  return 0;
}

bool IsUserFile(std::string_view file) {
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen", "/torchrun"}) {
    if (file.find(part) != std::string_view::npos) return false;
  }
  return !file.empty();
}

bool IsMereConsequence(std::string_view line) {
  constexpr std::string_view kMarks[] = {
      "Some NCCL operations have failed or timed out",
      "To avoid data inconsistency",
      "Observed flight recorder dump signal",
      "Stack trace of the failed collective",
      "ChildFailedError",
      "Sending process",
      "ProcessGroupNCCL preparing to dump debug info",
  };
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](std::string_view mark) { return line.find(mark) != std::string_view::npos; });
}

std::optional<LogEvent> MatchLogLine(std::string_view line) {
  LogEvent event;
  for (const Rule& rule : kRules) {
    if (line.find(rule.mark) == std::string_view::npos) continue;
    event.kind = rule.kind;
    if (rule.read != nullptr) rule.read(line, event);
    return event;
  }
  if (IsShellDeath(line)) {
    event.kind = LogEventKind::kSignal;
    ReadNamedSignal(line, event);
    return event;
  }
  return std::nullopt;
}

}  // namespace lockstep::ingest
