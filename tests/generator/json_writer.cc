#include "generator/json_writer.h"

#include <array>
#include <vector>

#include "generator/event_writer.h"
#include "generator/job_clock.h"
#include "generator/rank_simulator.h"
#include "generator/text_buffer.h"

namespace lockstep::tracegen {
namespace {

constexpr const char* kDevice =
    R"("id":@,"name":"NVIDIA H100 80GB HBM3","totalGlobalMem":85051047936,"computeMajor":9,"computeMinor":0,)"
    R"("maxThreadsPerBlock":1024,"maxThreadsPerMultiprocessor":2048,"regsPerBlock":65536,"warpSize":32,)"
    R"("sharedMemPerBlock":49152,"numSms":132,"regsPerMultiprocessor":65536,"sharedMemPerBlockOptin":232448,)"
    R"("sharedMemPerMultiprocessor":233472)";

/// White space after "," and ":" outside strings, for the keys around traceEvents.
std::string Space(std::string_view compact, bool minified) {
  if (minified) return std::string(compact);
  std::string text;
  bool in_string = false;
  for (char c : compact) {
    if (c == '"') in_string = !in_string;
    text += c;
    if (!in_string && (c == ',' || c == ':')) text += ' ';
  }
  return text;
}

std::string DistributedInfo(const TraceSpec& spec, const JobLog& job, int32_t rank) {
  std::string groups;
  for (const GroupLog& group : job.groups) {
    std::string members;
    bool is_member = false;
    for (int32_t member : group.ranks) {
      if (!members.empty()) members += ',';
      members += std::to_string(member);
      is_member = is_member || member == rank;
    }
    if (!is_member) continue;
    if (!groups.empty()) groups += ',';
    groups += R"({"pg_name":")" + group.name + R"(","pg_desc":")" + group.description + R"(","backend_config":")" +
              (spec.cpu_only ? "cpu:gloo" : "cuda:nccl") + R"(","pg_size":)" + std::to_string(group.ranks.size()) +
              R"(,"ranks":[)" + members + "]}";
  }
  std::string info = std::string(R"("distributedInfo":{"backend":")") + (spec.cpu_only ? "gloo" : "nccl") +
                     R"(","rank":)" + std::to_string(rank) + R"(,"world_size":)" + std::to_string(spec.rank_count);
  if (spec.style != Style::kMicroseconds) {
    info += R"(,"pg_count":)" + std::to_string(job.groups.size()) + R"(,"pg_config":[)" + groups + "]";
    if (!spec.cpu_only) info += R"(,"nccl_version":"2.21.5")";
  }
  return info + "}";
}

std::string Header(const TraceSpec& spec, const JobLog& job, int32_t rank) {
  const bool minified = spec.style == Style::kMinified;
  const std::string line = minified ? "" : (spec.style == Style::kIndent4 ? "\n    " : "\n  ");
  std::string text =
      "{" + line + Space(R"("schemaVersion":1,)", minified) + line + Space(R"("deviceProperties":[)", minified);
  if (!spec.cpu_only) {
    for (int32_t device = 0; device < spec.ranks_per_host; ++device) {
      std::string properties = kDevice;
      properties.replace(properties.find('@'), 1, std::to_string(device));
      text += (device == 0 ? "" : ",") + line + "  {" + Space(properties, minified) + "}";
    }
  }
  text += line + "],";
  if (spec.distributed_info) text += line + Space(DistributedInfo(spec, job, rank) + ",", minified);
  if (spec.style == Style::kCurrent) {
    text += line + Space(R"("host_name":")" + HostName(spec, rank) + R"(",)", minified);
    text += line + Space(R"("displayTimeUnit":"ms",)", minified);
    text += line + Space(R"("baseTimeNanoseconds":)" + std::to_string(kBaseNs) + ",", minified);
  }
  return text + line + Space(R"("traceEvents":[)", minified);
}

std::string Footer(const TraceSpec& spec) {
  const bool minified = spec.style == Style::kMinified;
  const std::string line = minified ? "" : (spec.style == Style::kIndent4 ? "\n    " : "\n  ");
  std::string text = line + "]";
  if (spec.style == Style::kTorch22 || spec.style == Style::kIndent4 || spec.style == Style::kMinified) {
    text += "," + line + Space(R"("displayTimeUnit":"ms",)", minified) + line +
            Space(R"("baseTimeNanoseconds":)" + std::to_string(kBaseNs), minified);
  }
  text += "," + line + Space(R"("traceName":"/tmp/trace.json")", minified);
  return text + (minified ? "}" : "\n}\n");
}

}  // namespace

std::string HostName(const TraceSpec& spec, int32_t rank) {
  return "node" + std::to_string(rank / spec.ranks_per_host);
}

int64_t ProcessId(int32_t rank) { return 2'910'249 + 613 * rank; }

WrittenCounts WriteRank(const TraceSpec& spec, const JobLog& job, const RankLog& rank_log, int32_t rank, uint64_t limit,
                        ByteSink* sink) {
  TextBuffer text(sink);
  text.set_limit(limit);
  WrittenCounts counts;
  const std::string header = Header(spec, job, rank);
  text.Reserve(header.size());
  text.Put(header);
  EventWriter writer(spec, job, rank_log, rank, &text);
  for (const LogEvent& event : rank_log.cpu) {
    writer.Host(event);
    if (writer.first_end() > limit) break;
    ++counts.cpu_rows;
  }
  const bool cut = counts.cpu_rows < rank_log.cpu.size();
  if (!cut) {
    for (const LogEvent& event : rank_log.device) {
      writer.Device(event);
      if (writer.first_end() > limit) break;
      ++counts.device_rows;
    }
  }
  if (text.size() <= limit) writer.Closing();
  counts.event_count = writer.event_count();
  counts.complete_count = writer.complete_count();
  if (text.size() <= limit) {
    const std::string footer = Footer(spec);
    text.Reserve(footer.size());
    text.Put(footer);
  }
  text.Flush();
  counts.json_bytes = std::min<uint64_t>(text.size(), limit);
  sink->Finish();
  return counts;
}

}  // namespace lockstep::tracegen
