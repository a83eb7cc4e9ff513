#include "present/export/otlp/otlp.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"

namespace lockstep::otlp {
namespace {

// Of opentelemetry.proto.trace.v1.
constexpr int kInternal = 1;
constexpr int kServer = 2;
constexpr int kError = 2;

/// A span of either source.
struct Span {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  NameId name;
  model::TraceContext context;
  const model::RequestRecord* request = nullptr;  ///< Null: it is not a request.
  std::optional<int64_t> thread_id = {};
};

class Writer {
 public:
  Writer(const model::Run& run, const std::string& version, std::ostream& out)
      : run_(run), version_(version), json_(out) {}

  Written Write() {
    json_.StartObject();
    json_.Key("resourceSpans");
    json_.StartArray();
    for (const model::RankTrace& trace : run_.ranks) WriteRank(trace);
    json_.EndArray();
    json_.EndObject();
    json_.EndLine();
    written_.trace_count = traces_.size();
    return written_;
  }

 private:
  void Field(std::string_view key, std::string_view text) { json_.Key(key).Text(text); }
  void Attribute(std::string_view key, std::string_view text) {
    json_.StartObject();
    Field("key", key);
    json_.Key("value");
    json_.StartObject();
    Field("stringValue", text);
    json_.EndObject();
    json_.EndObject();
  }
  /// 64-bit integers are decimal text in JSON of protobuf.
  void Attribute(std::string_view key, int64_t number) {
    json_.StartObject();
    Field("key", key);
    json_.Key("value");
    json_.StartObject();
    Field("intValue", fmt::format("{}", number));
    json_.EndObject();
    json_.EndObject();
  }

  void WriteRank(const model::RankTrace& trace) {
    // Requests are not of a process that the columns name: they stand with the rank's first.
    std::map<int64_t, std::vector<Span>> by_process;
    for (const model::LinkedSpan& span : trace.linked_spans) {
      if (!span.context.known()) continue;
      by_process[span.process_id].push_back({trace.clock.ToRun(span.start_ns),
                                             trace.clock.ToRun(span.start_ns + span.duration_ns), span.name,
                                             span.context, nullptr, span.thread_id});
    }
    std::optional<int64_t> process;
    if (!trace.tracks.empty()) process = trace.tracks.front().process_id;
    if (!by_process.empty()) process = by_process.begin()->first;
    for (const model::RequestRecord& request : trace.requests) {
      if (!request.context.known()) continue;
      by_process[process.value_or(0)].push_back({trace.clock.ToRun(request.start_ns),
                                                 trace.clock.ToRun(request.start_ns + request.duration_ns),
                                                 request.name, request.context, &request});
    }
    for (const auto& [process_id, spans] : by_process) {
      json_.StartObject();
      json_.Key("resource");
      json_.StartObject();
      json_.Key("attributes");
      json_.StartArray();
      Attribute("service.name", "lockstep");
      if (!trace.host.empty()) Attribute("host.name", trace.host);
      Attribute("process.pid", process_id);
      Attribute("lockstep.rank", trace.rank.value);
      json_.EndArray();
      json_.EndObject();
      json_.Key("scopeSpans");
      json_.StartArray();
      json_.StartObject();
      json_.Key("scope");
      json_.StartObject();
      Field("name", "liblockstep");
      Field("version", version_);
      json_.EndObject();
      json_.Key("spans");
      json_.StartArray();
      for (const Span& span : spans) WriteSpan(trace, span);
      json_.EndArray();
      json_.EndObject();
      json_.EndArray();
      json_.EndObject();
    }
  }

  void WriteSpan(const model::RankTrace& trace, const Span& span) {
    ++written_.span_count;
    traces_.emplace(span.context.trace_high, span.context.trace_low);
    json_.StartObject();
    Field("traceId", fmt::format("{:016x}{:016x}", span.context.trace_high, span.context.trace_low));
    Field("spanId", fmt::format("{:016x}", span.context.span_id));
    if (span.context.parent_id != 0) Field("parentSpanId", fmt::format("{:016x}", span.context.parent_id));
    Field("name", run_.names[span.name]);
    json_.Key("kind");
    json_.Int(span.request != nullptr ? kServer : kInternal);
    Field("startTimeUnixNano", fmt::format("{}", span.start_ns));
    Field("endTimeUnixNano", fmt::format("{}", span.end_ns));
    json_.Key("attributes");
    json_.StartArray();
    if (span.thread_id) Attribute("thread.id", *span.thread_id);
    if (span.request != nullptr) Attribute("lockstep.output_count", span.request->output_count);
    if (span.request != nullptr && span.request->unfinished) Attribute("lockstep.unfinished", "true");
    json_.EndArray();
    if (span.request != nullptr && span.request->first_output_ns) {
      json_.Key("events");
      json_.StartArray();
      json_.StartObject();
      Field("timeUnixNano", fmt::format("{}", trace.clock.ToRun(*span.request->first_output_ns)));
      Field("name", "first output");
      json_.EndObject();
      json_.EndArray();
    }
    if (span.request != nullptr && span.request->failed) {
      json_.Key("status");
      json_.StartObject();
      json_.Key("code");
      json_.Int(kError);
      json_.EndObject();
    }
    json_.EndObject();
  }

  const model::Run& run_;
  const std::string& version_;
  JsonStream json_;
  Written written_;
  std::set<std::pair<uint64_t, uint64_t>> traces_;
};

}  // namespace

Written WriteOtlp(const model::Run& run, const std::string& version, std::ostream& out) {
  return Writer(run, version, out).Write();
}

}  // namespace lockstep::otlp
