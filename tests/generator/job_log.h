#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::tracegen {

enum class EventKind : uint8_t {
  kCpuOp,
  kUserAnnotation,
  kPythonFunction,
  kRuntime,
  kKernel,
  kMemcpy,
  kMemset,
  kDeviceAnnotation,
  kMemory,  ///< [memory] instant; `extra` is an index into RankLog::memory.
};

/// One event. While the job is simulated times are true time; afterwards what the rank's file says, in nanoseconds.
struct LogEvent {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  uint32_t name = 0;  ///< Index into JobLog::names.
  uint32_t external_id = 0;
  uint32_t correlation = 0;  ///< Runtime and device events.
  uint32_t flow = 0;         ///< fwdbwd flow id; 0 = none.
  uint32_t sequence = 0;     ///< Autograd sequence number; 0 = none.
  uint32_t collective = 0;   ///< 1 + index into JobLog::collectives, on its operator and kernel; 0 = none.
  uint32_t extra = 0;
  EventKind kind = EventKind::kCpuOp;
  uint8_t lane = 0;       ///< CPU: 0 main, 1 autograd. Device: the stream number.
  bool backward = false;  ///< This end of the fwdbwd flow is the backward one.

  int64_t end_ns() const { return start_ns + duration_ns; }
  bool OnDevice() const {
    return kind == EventKind::kKernel || kind == EventKind::kMemcpy || kind == EventKind::kMemset;
  }
};

struct MemoryRow {
  int64_t bytes = 0;
  uint64_t address = 0;
  int64_t allocated = 0;
  int64_t reserved = 0;
};

/// One collective of a group, all members. Times are true time.
struct CollectiveLog {
  uint32_t group = 0;
  uint32_t sequence = 0;
  const char* name = "";  ///< As the process group writes it: "allreduce", "_allgather_base", ...
  int64_t in_elements = 0;
  int64_t out_elements = 0;
  std::vector<int32_t> ranks;
  std::vector<int64_t> arrival_ns;  ///< Parallel to ranks.
  std::vector<int64_t> end_ns;
  int32_t sender = -1;  ///< Messages: the rank that sends; ranks[1] receives.

  /// What the member on `rank` calls it: "send" or "recv" for messages, else `name`.
  const char* NameOn(int32_t rank) const { return sender < 0 ? name : rank == sender ? "send" : "recv"; }
};

struct GroupLog {
  std::string name;
  std::string description;
  std::vector<int32_t> ranks;
  uint8_t stream = 0;
};

struct RankLog {
  std::vector<LogEvent> cpu;  ///< Operators, annotations, Python frames, memory instants, in order of issue.
  std::vector<LogEvent>
      device;  ///< A device event, then its runtime call, in order of launch; lone runtime calls between.
  std::vector<MemoryRow> memory;
};

/// Names with their JSON text; interned by text.
class NamePool {
 public:
  uint32_t Intern(const std::string& text) {
    auto [found, added] = ids_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }
  const std::string& operator[](uint32_t id) const { return texts_[id]; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> ids_;
};

struct JobLog {
  NamePool names;
  std::vector<GroupLog> groups;
  std::vector<CollectiveLog> collectives;
  std::vector<RankLog> ranks;
  int64_t start_ns = 0;  ///< True time of the job's first instant.
  int64_t end_ns = 0;
};

}  // namespace lockstep::tracegen
