#include <utility>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "base/nanoseconds.h"
#include "base/signal_name.h"
#include "node/control/api/json.h"
#include "node/control/api/json_parts.h"
#include "node/control/api/names.h"
#include "node/control/api/parse_json.h"

namespace lockstep::control {
namespace {

constexpr int32_t kIterations = 100'000;

void CheckWhole(std::string_view name, int64_t value, int64_t unit, std::string_view unit_name, JsonObject* reader) {
  if (value % unit != 0)
    reader->Fail(ErrorCode::kInvalidArgument, name, "is not a whole number of " + std::string(unit_name));
}

void WriteWindow(const CaptureWindow& window, JsonWriter* json) {
  json->StartObject().Key("mode").Text(kWindowModes.Name(window.mode));
  json->Key("duration_ns").Int(window.duration_ns).Key("start_unix_ns").Optional(window.start_unix_ns);
  json->Key("warmup_ns").Optional(window.warmup_ns).Key("iterations").Int(window.iterations);
  json->Key("roundup").Int(window.roundup).Key("start_iteration").Optional(window.start_iteration);
  json->Key("warmup_iterations").Int(window.warmup_iterations);
  json->Key("deliver_from_unix_ns").Optional(window.deliver_from_unix_ns).EndObject();
}

Status ReadWindow(JsonValue value, std::string path, CaptureWindow* window) {
  JsonObject reader(value, std::move(path));
  reader.Name("mode", kWindowModes, &window->mode);
  reader.Int("duration_ns", kMillisecondNs, kHourNs, &window->duration_ns);
  CheckWhole("duration_ns", window->duration_ns, kMillisecondNs, "milliseconds", &reader);
  reader.Int("start_unix_ns", 0, kAnyInt, &window->start_unix_ns);
  CheckWhole("start_unix_ns", window->start_unix_ns.value_or(0), kMillisecondNs, "milliseconds", &reader);
  reader.Int("warmup_ns", 0, kHourNs, &window->warmup_ns);
  CheckWhole("warmup_ns", window->warmup_ns.value_or(0), kSecondNs, "seconds", &reader);
  const bool counts = window->mode == CaptureWindow::Mode::kIterations;
  reader.Int("iterations", counts ? 1 : 0, kIterations, &window->iterations);
  reader.Require("iterations", !counts || window->iterations > 0);
  reader.Int("roundup", 1, kIterations * int64_t{10}, &window->roundup);
  reader.Int("start_iteration", 0, kAnyInt, &window->start_iteration);
  reader.Int("warmup_iterations", 0, kIterations, &window->warmup_iterations);
  reader.Int("deliver_from_unix_ns", 0, kAnyInt, &window->deliver_from_unix_ns);
  return reader.status();
}

void WriteOptions(const CaptureOptions& options, JsonWriter* json) {
  json->StartObject().Key("record_shapes").Bool(options.record_shapes).Key("memory").Bool(options.memory);
  json->Key("stacks").Bool(options.stacks).Key("flops").Bool(options.flops).Key("modules").Bool(options.modules);
  json->Key("activities").StartArray();
  for (const std::string& activity : options.activities) json->Text(activity);
  json->EndArray().EndObject();
}

// A list of words, each of which may only hold letters, digits and `also`.
void ReadWords(JsonObject* reader, std::string_view name, size_t most, std::string_view also,
               std::vector<std::string>* words) {
  words->clear();
  reader->List(name, most, [&](JsonValue value, const std::string& where) -> Status {
    if (!value.IsText()) return Error{ErrorCode::kCorruptData, where + " is not a string"};
    const std::string_view word = *value.Text();
    if (word.empty() || word.size() > 128 || !IsWord(word, also)) {
      return Error{ErrorCode::kInvalidArgument, where + " is not a name of this kind"};
    }
    words->emplace_back(word);
    return {};
  });
}

Status ReadOptions(JsonValue value, std::string path, CaptureOptions* options) {
  JsonObject reader(value, std::move(path));
  reader.Bool("record_shapes", &options->record_shapes);
  reader.Bool("memory", &options->memory);
  reader.Bool("stacks", &options->stacks);
  reader.Bool("flops", &options->flops);
  reader.Bool("modules", &options->modules);
  ReadWords(&reader, "activities", 64, "_", &options->activities);
  return reader.status();
}

void WriteSelector(const CaptureSelector& selector, JsonWriter* json) {
  json->StartObject().Key("job_id").TextOrNull(selector.job_id);
  WritePids(selector.pids, json);
  json->Key("process_ids").StartArray();
  for (const std::string& id : selector.process_ids) json->Text(id);
  json->EndArray();
  WriteRanks(selector.ranks, json);
  json->Key("uid").Optional(selector.uid).Key("include_launchers").Bool(selector.include_launchers).EndObject();
}

Status ReadSelector(JsonValue value, std::string path, CaptureSelector* selector) {
  JsonObject reader(value, std::move(path));
  reader.Text("job_id", &selector->job_id, 256);
  ReadPids(&reader, &selector->pids);
  ReadWords(&reader, "process_ids", kSelected, "-_.:", &selector->process_ids);
  ReadRanks(&reader, &selector->ranks);
  reader.Int("uid", 0, UINT32_MAX, &selector->uid);
  reader.Bool("include_launchers", &selector->include_launchers);
  return reader.status();
}

void WriteEnd(const ProcessEnd& end, JsonWriter* json) {
  json->StartObject().Key("unix_ns").Int(end.unix_ns).Key("signal").Optional(end.signal);
  json->Key("signal_name").TextOrNull(end.signal ? SignalName(*end.signal) : "");
  json->Key("exit_status").Optional(end.exit_status).EndObject();
}

Status ReadEnd(JsonValue value, std::string path, ProcessEnd* end) {
  JsonObject reader(value, std::move(path));
  reader.Int("unix_ns", 0, kAnyInt, &end->unix_ns);
  reader.Int("signal", 1, 255, &end->signal);
  reader.Int("exit_status", 0, 255, &end->exit_status);
  return reader.status();
}

void WriteTarget(const CaptureTarget& target, JsonWriter* json) {
  json->StartObject().Key("process");
  WriteProcess(target.process, json);
  json->Key("state").Text(TargetStateName(target.state)).Key("reason").TextOrNull(target.reason);
  json->Key("delivered_unix_ns").Optional(target.delivered_unix_ns);
  json->Key("begun_unix_ns").Optional(target.begun_unix_ns);
  json->Key("missed_start_unix_ns").Optional(target.missed_start_unix_ns);
  json->Key("finished_unix_ns").Optional(target.finished_unix_ns);
  json->Key("trace_name").TextOrNull(target.trace_name).Key("trace_bytes").Uint(target.trace_bytes);
  json->Key("end");
  if (target.end) {
    WriteEnd(*target.end, json);
  } else {
    json->TextOrNull("");
  }
  json->EndObject();
}

Status ReadTarget(JsonValue value, std::string path, CaptureTarget* target) {
  JsonObject reader(value, std::move(path));
  if (const JsonValue process = reader.Required("process")) {
    reader.Check(ReadProcess(process, reader.Path("process"), &target->process));
  }
  reader.Name("state", kTargetStates, &target->state);
  reader.Text("reason", &target->reason);
  reader.Int("delivered_unix_ns", 0, kAnyInt, &target->delivered_unix_ns);
  reader.Int("begun_unix_ns", 0, kAnyInt, &target->begun_unix_ns);
  reader.Int("missed_start_unix_ns", 0, kAnyInt, &target->missed_start_unix_ns);
  reader.Int("finished_unix_ns", 0, kAnyInt, &target->finished_unix_ns);
  // Becomes a file's name at the other end.
  reader.Word("trace_name", "._-", 255, &target->trace_name);
  if (!target->trace_name.empty() && (!target->trace_name.ends_with(".json") || target->trace_name.front() == '.')) {
    reader.Fail(ErrorCode::kInvalidArgument, "trace_name", "is not a trace's name");
  }
  reader.Uint("trace_bytes", &target->trace_bytes);
  if (const JsonValue end = reader.Object("end")) {
    reader.Check(ReadEnd(end, reader.Path("end"), &target->end.emplace()));
  }
  return reader.status();
}

bool IsCaptureId(std::string_view id) {
  if (id.size() != 16) return false;
  for (const char c : id) {
    if (!((c >= 'a' && c <= 'z') || IsDigit(c))) return false;
  }
  return true;
}

}  // namespace

void WriteSpec(const CaptureSpec& spec, JsonWriter* json) {
  json->StartObject().Key("group").TextOrNull(spec.group).Key("selector");
  WriteSelector(spec.selector, json);
  json->Key("window");
  WriteWindow(spec.window, json);
  json->Key("options");
  WriteOptions(spec.options, json);
  json->Key("wait_ns").Int(spec.wait_ns).Key("timeout_ns").Int(spec.timeout_ns);
  json->Key("process_limit").Uint(spec.process_limit).Key("allow_unsafe").Bool(spec.allow_unsafe).EndObject();
}

Status ReadSpec(JsonValue value, std::string path, CaptureSpec* spec) {
  JsonObject reader(value, std::move(path));
  reader.Word("group", "_-", 64, &spec->group);
  if (const JsonValue selector = reader.Object("selector")) {
    reader.Check(ReadSelector(selector, reader.Path("selector"), &spec->selector));
  }
  if (const JsonValue window = reader.Object("window")) {
    reader.Check(ReadWindow(window, reader.Path("window"), &spec->window));
  }
  if (const JsonValue options = reader.Object("options")) {
    reader.Check(ReadOptions(options, reader.Path("options"), &spec->options));
  }
  reader.Int("wait_ns", 0, kHourNs, &spec->wait_ns);
  reader.Int("timeout_ns", kMillisecondNs, 24 * kHourNs, &spec->timeout_ns);
  reader.Int("process_limit", 0, UINT32_MAX, &spec->process_limit);
  reader.Bool("allow_unsafe", &spec->allow_unsafe);
  return reader.status();
}

void WriteCapture(const Capture& capture, JsonWriter* json) {
  json->StartObject().Key("id").Text(capture.id).Key("spec");
  WriteSpec(capture.spec, json);
  json->Key("state").Text(CaptureStateName(capture.state)).Key("reason").TextOrNull(capture.reason);
  json->Key("requested_by").TextOrNull(capture.requested_by).Key("created_unix_ns").Int(capture.created_unix_ns);
  json->Key("finished_unix_ns").Optional(capture.finished_unix_ns).Key("targets").StartArray();
  for (const CaptureTarget& target : capture.targets) WriteTarget(target, json);
  json->EndArray().EndObject();
}

Status ReadCapture(JsonValue value, std::string path, Capture* capture) {
  JsonObject reader(value, std::move(path));
  reader.Text("id", &capture->id);
  reader.Require("id", !capture->id.empty());
  if (!IsCaptureId(capture->id)) reader.Fail(ErrorCode::kInvalidArgument, "id", "is not 16 of a-z and 0-9");
  if (const JsonValue spec = reader.Required("spec")) reader.Check(ReadSpec(spec, reader.Path("spec"), &capture->spec));
  reader.Name("state", kCaptureStates, &capture->state);
  reader.Text("reason", &capture->reason);
  reader.Text("requested_by", &capture->requested_by);
  reader.Int("created_unix_ns", 0, kAnyInt, &capture->created_unix_ns);
  reader.Int("finished_unix_ns", 0, kAnyInt, &capture->finished_unix_ns);
  capture->targets.clear();
  reader.List("targets", kProcessesOfNode, [&](JsonValue target, std::string where) {
    return ReadTarget(target, std::move(where), &capture->targets.emplace_back());
  });
  return reader.status();
}

std::string ToJson(const CaptureSpec& spec) {
  JsonWriter json;
  WriteSpec(spec, &json);
  return json.Take();
}

std::string ToJson(const Capture& capture) {
  JsonWriter json;
  WriteCapture(capture, &json);
  return json.Take();
}

std::string ToJson(const std::vector<Capture>& captures) {
  JsonWriter json;
  json.StartObject().Key("captures").StartArray();
  for (const Capture& capture : captures) WriteCapture(capture, &json);
  json.EndArray().EndObject();
  return json.Take();
}

Result<CaptureSpec> ReadCaptureSpec(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  CaptureSpec spec;
  RETURN_IF_ERROR(ReadSpec(document.root(), "", &spec));
  return spec;
}

Result<Capture> ReadCapture(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  Capture capture;
  RETURN_IF_ERROR(ReadCapture(document.root(), "", &capture));
  return capture;
}

Result<std::vector<Capture>> ReadCaptures(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  JsonObject reader(document.root(), "");
  std::vector<Capture> captures;
  reader.List("captures", kCapturesOfNode, [&](JsonValue value, std::string path) {
    return ReadCapture(value, std::move(path), &captures.emplace_back());
  });
  reader.RequireList("captures");
  RETURN_IF_ERROR(reader.status());
  return captures;
}

}  // namespace lockstep::control
