#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string>

#include "present/export/timeline/collective_args.h"
#include "present/export/timeline/json_text.h"
#include "present/export/timeline/writers.h"

namespace lockstep::timeline {
namespace {

class ChromeWriter final : public EventWriter {
 public:
  ChromeWriter(const model::NameTable& names, ByteSink* out) : names_(names), out_(out) {}

  void Begin(std::string_view facts, int64_t first_ns, bool /*wall_clock*/) override {
    first_ns_ = first_ns;
    line_ = fmt::format(
        "{{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":{},\"lockstep\":{},\n\"traceEvents\":"
        "[",
        first_ns, facts);
    out_->Write(line_);
  }

  void BeginProcess(const ProcessTrack& process, std::string_view facts) override {
    process_id_ = process.process_id;
    AddProcessFact("process_name", "name", Quoted(process.name));
    AddProcessFact("process_sort_index", "sort_index", std::to_string(process.order));
    StartEvent("M");
    Append(",\"name\":\"lockstep\",\"args\":{}", facts);
    EndEvent();
  }

  void BeginTrack(const SliceTrack& track) override {
    thread_id_ = track.thread_id;
    AddThreadFact("thread_name", "name", Quoted(track.name));
    AddThreadFact("thread_sort_index", "sort_index", std::to_string(track.order));
  }

  void AddSlice(const Slice& slice) override {
    StartEvent("X");
    AppendThread();
    Append(",\"cat\":\"{}\",\"name\":", KinetoCategory(slice.category));
    AppendQuoted(slice.text.empty() ? names_[slice.name] : slice.text, &line_);
    AppendTime("ts", slice.start_ns - first_ns_);
    AppendTime("dur", slice.end_ns - slice.start_ns);
    BeginArgs();
    if (slice.correlation != 0) AppendArg("correlation", slice.correlation);
    VisitCollectiveArgs(
        slice, [&](std::string_view key, auto value) { AppendArg(key, value); },
        [&](std::string_view key, NameId value) { AppendArg(key, names_[value]); },
        [&](std::string_view key, std::string_view value) { AppendArg(key, value); });
    for (const auto& [key, value] : slice.texts) AppendArg(key, value);
    EndArgs();
    EndEvent();
    for (const Flow& flow : slice.flows) AddFlow(flow, slice.start_ns);
  }

  void AddInstant(const Instant& instant) override {
    StartEvent("i");
    AppendThread();
    line_ += ",\"s\":\"t\",\"cat\":";
    AppendQuoted(instant.category, &line_);
    line_ += ",\"name\":";
    AppendQuoted(instant.name, &line_);
    AppendTime("ts", instant.time_ns - first_ns_);
    BeginArgs();
    for (const auto& [key, value] : instant.texts) AppendArg(key, value);
    EndArgs();
    EndEvent();
  }

  void BeginMemory(const SliceTrack& track, const std::vector<int16_t>& /*devices*/) override { BeginTrack(track); }

  void AddMemory(const MemoryPoint& point) override {
    StartEvent("i");
    AppendThread();
    line_ += ",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\"";
    AppendTime("ts", point.time_ns - first_ns_);
    BeginArgs();
    AppendArg("Bytes", point.change_bytes);
    if (point.allocated_bytes >= 0) AppendArg("Total Allocated", point.allocated_bytes);
    if (point.reserved_bytes >= 0) AppendArg("Total Reserved", point.reserved_bytes);
    AppendArg("Device Id", int64_t{point.device});
    AppendArg("Device Type", int64_t{point.device < 0 ? 0 : 1});
    EndArgs();
    EndEvent();
    if (point.allocated_bytes < 0 && point.reserved_bytes < 0) return;
    StartEvent("C");
    const std::string place = point.device < 0 ? "CPU" : fmt::format("device {}", point.device);
    Append(",\"name\":\"memory, {}\"", place);
    AppendTime("ts", point.time_ns - first_ns_);
    BeginArgs();
    if (point.allocated_bytes >= 0) AppendArg("allocated", point.allocated_bytes);
    if (point.reserved_bytes >= 0) AppendArg("reserved", point.reserved_bytes);
    EndArgs();
    EndEvent();
  }

  void BeginCounter(const CounterTrack& counter) override { counter_ = counter; }

  void AddValue(int64_t time_ns, double value) override {
    if (!std::isfinite(value)) return;  // JSON has no word for it.
    StartEvent("C");
    line_ += ",\"name\":";
    AppendQuoted(counter_.name, &line_);
    AppendTime("ts", time_ns - first_ns_);
    BeginArgs();
    line_ += Quoted(counter_.unit.empty() ? "value" : counter_.unit);
    Append(":{}", value);
    EndArgs();
    EndEvent();
  }

  void EndTrack() override {}
  void Finish() override { out_->Write("\n]}\n"); }

 private:
  template <typename... Values>
  void Append(fmt::format_string<Values...> text, Values&&... values) {
    fmt::format_to(std::back_inserter(line_), text, std::forward<Values>(values)...);
  }

  static std::string Quoted(std::string_view text) {
    std::string quoted;
    AppendQuoted(text, &quoted);
    return quoted;
  }

  void StartEvent(const char* phase) {
    line_ = first_event_ ? "\n" : ",\n";
    first_event_ = false;
    Append("{{\"ph\":\"{}\",\"pid\":{}", phase, process_id_);
  }
  void EndEvent() {
    line_ += '}';
    out_->Write(line_);
  }
  void AppendThread() { Append(",\"tid\":{}", thread_id_); }

  /// Microseconds with three decimals, exact.
  void AppendTime(const char* key, int64_t ns) { Append(",\"{}\":{}.{:03}", key, ns / 1000, ns % 1000); }

  void BeginArgs() {
    line_ += ",\"args\":{";
    first_arg_ = true;
  }
  void EndArgs() { line_ += '}'; }
  void AppendKey(std::string_view key) {
    if (!first_arg_) line_ += ',';
    first_arg_ = false;
    Append("\"{}\":", key);
  }
  void AppendArg(std::string_view key, std::string_view value) {
    AppendKey(key);
    AppendQuoted(value, &line_);
  }
  template <typename Number>
  requires std::is_integral_v<Number>
  void AppendArg(std::string_view key, Number value) {
    AppendKey(key);
    Append("{}", value);
  }

  void AddProcessFact(const char* name, const char* key, const std::string& value) {
    StartEvent("M");
    Append(",\"name\":\"{}\",\"args\":{{\"{}\":{}}}", name, key, value);
    EndEvent();
  }
  void AddThreadFact(const char* name, const char* key, const std::string& value) {
    StartEvent("M");
    AppendThread();
    Append(",\"name\":\"{}\",\"args\":{{\"{}\":{}}}", name, key, value);
    EndEvent();
  }

  void AddFlow(const Flow& flow, int64_t time_ns) {
    const char* const phase = flow.end == FlowEnd::kStart ? "s" : flow.end == FlowEnd::kStep ? "t" : "f";
    StartEvent(phase);
    AppendThread();
    Append(",\"cat\":\"{0}\",\"name\":\"{0}\",\"id\":{1}", flow.name, flow.id);
    AppendTime("ts", time_ns - first_ns_);
    if (flow.end != FlowEnd::kStart) line_ += ",\"bp\":\"e\"";
    EndEvent();
  }

  const model::NameTable& names_;
  ByteSink* out_;
  int64_t first_ns_ = 0;
  int32_t process_id_ = 0;
  int32_t thread_id_ = 0;
  CounterTrack counter_;
  bool first_event_ = true;
  bool first_arg_ = true;
  std::string line_;
};

}  // namespace

std::unique_ptr<EventWriter> MakeChromeWriter(const model::NameTable& names, ByteSink* out) {
  return std::make_unique<ChromeWriter>(names, out);
}

}  // namespace lockstep::timeline
