#include "ingest/nsight/json_export/export_lines.h"

#include <initializer_list>
#include <utility>

#include "base/text_scan.h"
#include "ingest/nsight/report_events.h"

namespace lockstep::ingest::nsight {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;
using Cell = TableWriter::Cell;
using Value = TableWriter::Value;

/// TRACE_PROCESS_EVENT_…: whose call it was.
enum CallClass : int64_t {
  kCudaRuntime = 0,
  kCudaDriver = 1,
  kProfilerOverhead = 3,
  kNvtxStart = 6,
  kCudaStart = 10,
  kOsRuntime = 27,
  kOsRuntimeStart = 31,
  kOsRuntimeFinish = 32,
};

constexpr const char* kSyncTypes[] = {"UNKNOWN", "EVENT_SYNCHRONIZE", "STREAM_WAIT_EVENT", "STREAM_SYNCHRONIZE",
                                      "CONTEXT_SYNCHRONIZE"};
constexpr const char* kSeverities[] = {"UnknownLevel", "Info", "Warning", "Error"};

Value NumberOf(const element& from, std::string_view key) {
  element value;
  if (from[key].get(value)) return {};
  if (const auto number = WholeNumber(value)) return *number;
  return {};
}

Value TextOf(const element& from, std::string_view key) {
  std::string_view text;
  if (from[key].get(text)) return {};
  return text;
}

/// Protobuf leaves out what is 0.
Value NumberOrZero(const element& from, std::string_view key) {
  Value value = NumberOf(from, key);
  return value.index() == 0 ? Value(int64_t{0}) : value;
}

/// Number of the name that `text` ends in.
template <size_t kSize>
std::optional<int64_t> IndexOf(const char* const (&names)[kSize], std::string_view text) {
  for (size_t i = 0; i < kSize; ++i) {
    if (text.ends_with(names[i])) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> WholeNumber(const element& value) {
  int64_t number = 0;
  if (!value.get(number)) return number;
  uint64_t large = 0;
  if (!value.get(large)) return static_cast<int64_t>(large);
  std::string_view text;
  if (value.get(text)) return std::nullopt;
  if (const auto read = lockstep::WholeNumber(text)) return read;
  if (const auto read = lockstep::WholeNumber<uint64_t>(text)) return static_cast<int64_t>(*read);
  return std::nullopt;
}

Result<bool> MessageLines::Add(const object& line) {
  array texts;
  if (!line["data"].get(texts)) return AddTexts(texts);
  bool is_message = false;
  for (const auto [kind, event] : line) {
    if (kind == "Type" || !event.is_object()) continue;
    is_message = true;
    if (kind == "NvtxEvent") return AddRange(event);
    if (kind == "TraceProcessEvent") return AddCall(event);
    if (kind == "CudaEvent") return AddDeviceEvent(event);
    if (kind == "DiagnosticEvent") return AddDiagnostic(event);
    if (kind == "CommEvent") {
      AddProcess(event);
    } else {
      CountUnread(kind);
    }
  }
  return is_message;
}

void MessageLines::CountUnread(std::string_view kind) {
  constexpr size_t kMaxKinds = 64;
  constexpr size_t kMaxBytes = 64;
  std::string name(kind.substr(0, kMaxBytes));
  if (unread_.size() < kMaxKinds || unread_.contains(name)) ++unread_[std::move(name)];
}

/// All strings, in the order of their ids; or the names of threads.
Result<bool> MessageLines::AddTexts(const array& texts) {
  int64_t id = 0;
  for (const element item : texts) {
    std::string_view text;
    if (!item.get(text)) {
      cells_ = {{"id", id}, {"value", text}};
      ASSIGN_OR_RETURN(const bool taken, tables_->Add("StringIds", cells_));
      static_cast<void>(taken);
    } else if (item.is_object()) {
      cells_ = {{"nameId", NumberOf(item, "nameIdx")},
                {"priority", NumberOf(item, "priority")},
                {"globalTid", NumberOf(item, "globalTid")}};
      ASSIGN_OR_RETURN(const bool taken, tables_->Add("ThreadNames", cells_));
      static_cast<void>(taken);
    }
    ++id;
  }
  return true;
}

Result<bool> MessageLines::AddRange(const element& event) {
  cells_ = {{"start", NumberOf(event, "Timestamp")},      {"end", NumberOf(event, "EndTimestamp")},
            {"eventType", NumberOf(event, "Type")},       {"text", TextOf(event, "Text")},
            {"textId", NumberOf(event, "TextId")},        {"globalTid", NumberOf(event, "GlobalTid")},
            {"domainId", NumberOrZero(event, "DomainId")}};
  std::string_view payload;
  if (!event["Payload"]["BinaryData"].at(0)["Data"].get(payload)) cells_.push_back({kPayloadBase64Column, payload});
  return tables_->Add("NVTX_EVENTS", cells_);
}

Result<bool> MessageLines::AddCall(const element& event) {
  const Value call_class = NumberOrZero(event, "eventClass");
  const char* table = nullptr;
  switch (std::get<int64_t>(call_class)) {
    case kCudaRuntime:
    case kCudaDriver: table = "CUPTI_ACTIVITY_KIND_RUNTIME"; break;
    case kOsRuntime:
    case kOsRuntimeStart:
    case kOsRuntimeFinish: table = "OSRT_API"; break;
    case kProfilerOverhead: table = "PROFILER_OVERHEAD"; break;
    case kNvtxStart:
    case kCudaStart: return true;  // When the tracing began, in no table of the SQLite form either.
    default: CountUnread("TraceProcessEvent of another library"); return true;
  }
  cells_ = {{"start", NumberOf(event, "startNs")},
            {"end", NumberOf(event, "endNs")},
            {"eventClass", call_class},
            {"globalTid", NumberOf(event, "globalTid")},
            {"correlationId", NumberOf(event, "correlationId")},
            {"nameId", NumberOrZero(event, "name")}};
  return tables_->Add(table, cells_);
}

Result<bool> MessageLines::AddDeviceEvent(const element& event) {
  cells_ = {{"start", NumberOf(event, "startNs")},         {"end", NumberOf(event, "endNs")},
            {"deviceId", NumberOrZero(event, "deviceId")}, {"contextId", NumberOrZero(event, "contextId")},
            {"streamId", NumberOrZero(event, "streamId")}, {"correlationId", NumberOf(event, "correlationId")},
            {"globalPid", NumberOf(event, "globalPid")}};
  element what;
  if (!event["kernel"].get(what)) {
    cells_.insert(cells_.end(),
                  {{"demangledName", NumberOf(what, "demangledName")}, {"shortName", NumberOf(what, "shortName")}});
    return tables_->Add("CUPTI_ACTIVITY_KIND_KERNEL", cells_);
  }
  if (!event["memcpy"].get(what)) {
    cells_.insert(cells_.end(), {{"bytes", NumberOf(what, "sizebytes")},
                                 {"copyKind", NumberOrZero(what, "copyKind")},
                                 {"srcKind", NumberOf(what, "srcKind")},
                                 {"dstKind", NumberOf(what, "dstKind")}});
    return tables_->Add("CUPTI_ACTIVITY_KIND_MEMCPY", cells_);
  }
  if (!event["memset"].get(what)) {
    cells_.insert(cells_.end(), {{"bytes", NumberOf(what, "sizebytes")}, {"memKind", NumberOf(what, "memKind")}});
    return tables_->Add("CUPTI_ACTIVITY_KIND_MEMSET", cells_);
  }
  if (!event["sync"].get(what)) {
    Value type = NumberOf(what, "syncType");
    std::string_view name;
    if (type.index() == 0 && !what["syncType"].get(name)) {
      if (const auto index = IndexOf(kSyncTypes, name)) type = *index;
    }
    cells_.insert(
        cells_.end(),
        {{"syncType", type}, {"eventId", NumberOf(what, "eventId")}, {"eventSyncId", NumberOf(what, "eventSyncId")}});
    return tables_->Add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", cells_);
  }
  if (!event["cudaEventRecord"].get(what)) {
    cells_.insert(cells_.end(),
                  {{"eventId", NumberOf(what, "eventId")}, {"eventSyncId", NumberOf(what, "eventSyncId")}});
    return tables_->Add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", cells_);
  }
  CountUnread("CudaEvent of another kind");
  return true;
}

Result<bool> MessageLines::AddDiagnostic(const element& event) {
  element time;
  Value at;
  if (!event["Timestamp"].get(time) && time.is_object()) at = NumberOf(time, "Time");
  std::string_view level;
  Value severity;
  if (!event["Level"].get(level)) {
    if (const auto index = IndexOf(kSeverities, level)) severity = *index;
  }
  cells_ = {{"timestamp", at},
            {"severity", severity},
            {"text", TextOf(event, "Text")},
            {"globalPid", NumberOf(event, "GlobalProcess")}};
  return tables_->Add("DIAGNOSTIC_EVENT", cells_);
}

/// A process that becomes another program does so with another environment: the last one is that of the events.
void MessageLines::AddProcess(const element& event) {
  constexpr size_t kMaxProcesses = size_t{1} << 20;
  const Value process = NumberOf(event, "GlobalPid");
  const Value environment = NumberOf(event, "EnvironId");
  if (process.index() == 0 || environment.index() == 0 || started_.size() >= kMaxProcesses) return;
  const Started started{std::get<int64_t>(NumberOrZero(event, "Timestamp")), std::get<int64_t>(environment)};
  const auto [known, is_new] = started_.try_emplace(std::get<int64_t>(process), started);
  if (!is_new && known->second.at_ns <= started.at_ns) known->second = started;
}

std::map<int64_t, int64_t> MessageLines::Environments() const {
  std::map<int64_t, int64_t> environments;
  for (const auto& [process, started] : started_) environments.emplace(process, started.environment);
  return environments;
}

Result<bool> AddRow(const object& line, TableWriter* tables) {
  std::string_view table;
  if (line["table"].get(table)) return false;
  std::vector<Cell> cells;
  for (const auto [column, value] : line) {
    if (column == "table") continue;
    std::string_view text;
    double real = 0;
    bool flag = false;
    if (!value.get(text)) {
      cells.emplace_back(column, text);
    } else if (const auto number = WholeNumber(value)) {
      cells.emplace_back(column, *number);
    } else if (!value.get(real)) {
      cells.emplace_back(column, real);
    } else if (!value.get(flag)) {
      cells.emplace_back(column, int64_t{flag ? 1 : 0});
    } else {
      cells.emplace_back(column, Value());
    }
  }
  return tables->Add(table, cells);
}

}  // namespace lockstep::ingest::nsight
