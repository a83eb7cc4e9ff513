#include "base/nanoseconds.h"
#include "base/signal_name.h"
#include "node/control/api/json.h"
#include "node/control/api/json_fields.h"
#include "node/control/api/names.h"

namespace lockstep::control {
namespace {

constexpr int32_t kIterations = 100'000;

// A word of letters, digits and `also`.
ElementCheck CheckWord(std::string_view also) {
  return [also](JsonValue element, const std::string& where) -> Status {
    RETURN_IF_ERROR(CheckText(element, where));
    const std::string_view word = *element.Text();
    if (!word.empty() && word.size() <= 128 && IsWord(word, also)) return {};
    return Error{ErrorCode::kInvalidArgument, where + " is not a name of this kind"};
  };
}

}  // namespace

template <typename Json>
void Fields(Json& json, CaptureWindow& window) {
  json.Name("mode", kWindowModes, &window.mode);
  json.Int("duration_ns", &window.duration_ns, kMillisecondNs, kHourNs);
  json.Expect("duration_ns", window.duration_ns % kMillisecondNs == 0, "is not a whole number of milliseconds");
  json.Int("start_unix_ns", &window.start_unix_ns);
  json.Expect("start_unix_ns", window.start_unix_ns.value_or(0) % kMillisecondNs == 0,
              "is not a whole number of milliseconds");
  json.Int("warmup_ns", &window.warmup_ns, 0, kHourNs);
  json.Expect("warmup_ns", window.warmup_ns.value_or(0) % kSecondNs == 0, "is not a whole number of seconds");
  const bool counts = window.mode == CaptureWindow::Mode::kIterations;
  json.Int("iterations", &window.iterations, counts ? 1 : 0, kIterations);
  json.Require("iterations", !counts || window.iterations > 0);
  json.Int("roundup", &window.roundup, 1, kIterations * int64_t{10});
  json.Int("start_iteration", &window.start_iteration);
  json.Int("warmup_iterations", &window.warmup_iterations, 0, kIterations);
  json.Int("deliver_from_unix_ns", &window.deliver_from_unix_ns);
}

template <typename Json>
void Fields(Json& json, CaptureOptions& options) {
  json.Bool("record_shapes", &options.record_shapes);
  json.Bool("memory", &options.memory);
  json.Bool("stacks", &options.stacks);
  json.Bool("flops", &options.flops);
  json.Bool("modules", &options.modules);
  json.Texts("activities", 64, &options.activities, CheckWord("_"));
}

template <typename Json>
void Fields(Json& json, CaptureSelector& selector) {
  json.TextOrNull("job_id", &selector.job_id, 256);
  json.Numbers("pids", kSelected, 1, &selector.pids);
  json.Texts("process_ids", kSelected, &selector.process_ids, CheckWord("-_.:"));
  json.Ranks("ranks", &selector.ranks);
  json.Int("uid", &selector.uid);
  json.Bool("include_launchers", &selector.include_launchers);
}

template <typename Json>
void Fields(Json& json, ProcessEnd& end) {
  json.Int("unix_ns", &end.unix_ns);
  json.Int("signal", &end.signal, 1, 255);
  json.WriteOnly("signal_name", end.signal ? SignalName(*end.signal) : "");
  json.Int("exit_status", &end.exit_status, 0, 255);
}

template <typename Json>
void Fields(Json& json, CaptureTarget& target) {
  json.RequiredObject("process", &target.process);
  json.Name("state", kTargetStates, &target.state);
  json.TextOrNull("reason", &target.reason);
  json.Int("delivered_unix_ns", &target.delivered_unix_ns);
  json.Int("begun_unix_ns", &target.begun_unix_ns);
  json.Int("missed_start_unix_ns", &target.missed_start_unix_ns);
  json.Int("finished_unix_ns", &target.finished_unix_ns);
  json.Word("trace_name", "._-", 255, &target.trace_name);
  // Becomes a file's name at the other end.
  json.Expect("trace_name", target.trace_name.empty() || IsTraceName(target.trace_name), "is not a trace's name");
  json.Uint("trace_bytes", &target.trace_bytes);
  json.Object("end", &target.end);
}

template <typename Json>
void Fields(Json& json, CaptureSpec& spec) {
  json.Word("group", "_-", 64, &spec.group);
  json.Object("selector", &spec.selector);
  json.Object("window", &spec.window);
  json.Object("options", &spec.options);
  json.Int("wait_ns", &spec.wait_ns, 0, kHourNs);
  json.Int("timeout_ns", &spec.timeout_ns, kMillisecondNs, 24 * kHourNs);
  json.Int("process_limit", &spec.process_limit);
  json.Bool("allow_unsafe", &spec.allow_unsafe);
}

template <typename Json>
void Fields(Json& json, Capture& capture) {
  json.Text("id", &capture.id);
  json.Require("id", !capture.id.empty());
  json.Expect("id", IsCaptureId(capture.id), "is not 16 of a-z and 0-9");
  json.RequiredObject("spec", &capture.spec);
  json.Name("state", kCaptureStates, &capture.state);
  json.TextOrNull("reason", &capture.reason);
  json.TextOrNull("requested_by", &capture.requested_by);
  json.Int("created_unix_ns", &capture.created_unix_ns);
  json.Int("finished_unix_ns", &capture.finished_unix_ns);
  json.Objects("targets", kProcessesOfNode, &capture.targets);
}

std::string ToJson(const CaptureSpec& spec) { return WriteDocument(spec); }
std::string ToJson(const Capture& capture) { return WriteDocument(capture); }
std::string ToJson(const std::vector<Capture>& captures) { return WriteList("captures", captures); }
Result<CaptureSpec> ReadCaptureSpec(std::string_view json) { return ReadDocument<CaptureSpec>(json); }
Result<Capture> ReadCapture(std::string_view json) { return ReadDocument<Capture>(json); }
Result<std::vector<Capture>> ReadCaptures(std::string_view json) {
  return ReadList<Capture>("captures", kCapturesOfNode, json);
}

}  // namespace lockstep::control
