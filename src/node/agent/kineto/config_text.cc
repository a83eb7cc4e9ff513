#include "node/agent/kineto/config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "base/ascii.h"
#include "base/invalid_argument.h"
#include "base/nanoseconds.h"

namespace lockstep::agent {
namespace {

using control::CaptureWindow;

constexpr size_t kMaxPathBytes = 1000;
constexpr size_t kMaxActivities = 64;
constexpr std::string_view kJson = ".json";
constexpr std::string_view kTorchJson = ".pt.trace.json";

/// First version of PyTorch, as major * 1000 + minor, whose Kineto is known to take the name. One unknown name drops
/// the whole request, so a name is as young here as the oldest version in which it was seen.
struct Activity {
  std::string_view name;
  int32_t since;
};
constexpr auto kActivities = std::to_array<Activity>({
    {"cpu_op", 2000},
    {"user_annotation", 2000},
    {"gpu_user_annotation", 2000},
    {"gpu_memcpy", 2000},
    {"gpu_memset", 2000},
    {"kernel", 2000},
    {"external_correlation", 2000},
    {"cuda_runtime", 2000},
    {"cpu_instant_event", 2000},
    {"python_function", 2000},
    {"overhead", 2000},
    {"glow_runtime", 2000},
    {"cuda_profiler_range", 2000},
    {"hpu_op", 2000},
    {"cuda_driver", 2006},
    {"cuda_sync", 2006},
    {"xpu_runtime", 2006},
    {"mtia_runtime", 2006},
    {"mtia_ccp_events", 2006},
    {"collective_comm", 2006},
    {"privateuse1_runtime", 2006},
    {"privateuse1_driver", 2006},
    {"cuda_event", 2013},
    {"mtia_insight", 2013},
    {"mtia_counters", 2013},
    {"xpu_driver", 2013},
    {"xpu_scope_profiler", 2013},
});

int32_t VersionNumber(std::string_view text) {
  int32_t major = 0;
  int32_t minor = 0;
  const auto [dot, error] = std::from_chars(text.data(), text.data() + text.size(), major);
  const char* end = text.data() + text.size();
  if (error != std::errc() || dot == end || *dot != '.' || major < 0 || major > 99) return 2000;
  const auto [rest, minor_error] = std::from_chars(dot + 1, end, minor);
  if (minor_error != std::errc() || minor < 0 || minor > 999) return 2000;
  return major * 1000 + minor;
}

Status CheckId(std::string_view field, std::string_view id) {
  const bool good = !id.empty() && id.size() <= 64 &&
                    std::all_of(id.begin(), id.end(), [](char c) { return IsAlphanumeric(c) || c == '_' || c == '-'; });
  if (!good) return InvalidArgument(fmt::format("{} must be 1 to 64 letters, digits, '_' or '-'", field));
  return {};
}

Status CheckRange(std::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most)
    return InvalidArgument(fmt::format("{} is {}, and must lie in {} .. {}", field, value, least, most));
  return {};
}

Status AppendWindow(const ConfigRequest& request, std::string* text) {
  const CaptureWindow& window = request.window;
  auto out = std::back_inserter(*text);
  if (window.mode == CaptureWindow::Mode::kIterations) {
    RETURN_IF_ERROR(CheckRange("iterations", window.iterations, 1, 100'000));
    RETURN_IF_ERROR(CheckRange("roundup", window.roundup, 1, 1'000'000'000));
    RETURN_IF_ERROR(CheckRange("start_iteration", window.start_iteration.value_or(0), 0, INT32_MAX));
    RETURN_IF_ERROR(CheckRange("warmup_iterations", window.warmup_iterations, 0, 100'000));
    fmt::format_to(out, "PROFILE_START_ITERATION={}\n", window.start_iteration.value_or(0));
    fmt::format_to(out, "PROFILE_START_ITERATION_ROUNDUP={}\n", window.roundup);
    fmt::format_to(out, "ACTIVITIES_ITERATIONS={}\n", window.iterations);
    fmt::format_to(out, "ACTIVITIES_WARMUP_ITERATIONS={}\n", window.warmup_iterations);
    return {};
  }
  const int64_t warmup_ns = WarmupNs(window, request.device_traced);
  RETURN_IF_ERROR(CheckRange("duration_ns", window.duration_ns, kMillisecondNs, 3600 * kSecondNs));
  RETURN_IF_ERROR(CheckRange("warmup_ns", warmup_ns, 0, 3600 * kSecondNs));
  if (window.duration_ns % kMillisecondNs != 0) return InvalidArgument("duration_ns must be whole milliseconds");
  if (warmup_ns % kSecondNs != 0) return InvalidArgument("warmup_ns must be whole seconds");
  if (window.start_unix_ns) {
    RETURN_IF_ERROR(CheckRange("start_unix_ns", *window.start_unix_ns, kMillisecondNs, INT64_MAX));
    if (*window.start_unix_ns % kMillisecondNs != 0) return InvalidArgument("start_unix_ns must be whole milliseconds");
    fmt::format_to(out, "PROFILE_START_TIME={}\n", *window.start_unix_ns / kMillisecondNs);
  }
  fmt::format_to(out, "ACTIVITIES_DURATION_MSECS={}\n", window.duration_ns / kMillisecondNs);
  fmt::format_to(out, "ACTIVITIES_WARMUP_PERIOD_SECS={}\n", warmup_ns / kSecondNs);
  return {};
}

Status AppendActivities(const ConfigRequest& request, std::string* text) {
  const std::vector<std::string>& activities = request.options.activities;
  if (activities.empty()) return {};
  if (activities.size() > kMaxActivities) return InvalidArgument("more activities than there are kinds");
  *text += "ACTIVITY_TYPES=";
  for (size_t i = 0; i < activities.size(); ++i) {
    if (!KnowsActivity(request.torch_version, activities[i])) {
      return InvalidArgument(fmt::format(
          "PyTorch {} is not known to have the activity '{}', and would drop the whole request; leave it out",
          request.torch_version.empty() ? "of an unknown version" : request.torch_version,
          activities[i].substr(0, 64)));
    }
    if (i > 0) *text += ',';
    *text += activities[i];
  }
  *text += '\n';
  return {};
}

}  // namespace

int64_t WarmupNs(const CaptureWindow& window, bool device_traced) {
  return window.warmup_ns.value_or((device_traced ? 5 : 1) * kSecondNs);
}

bool KnowsActivity(std::string_view torch_version, std::string_view activity) {
  const auto* found = std::find_if(kActivities.begin(), kActivities.end(),
                                   [&](const Activity& known) { return known.name == activity; });
  return found != kActivities.end() && VersionNumber(torch_version) >= found->since;
}

Status CheckLogFile(std::string_view log_file) {
  if (log_file.empty() || log_file.front() != '/') return InvalidArgument("the trace's path must be absolute");
  if (log_file.size() > kMaxPathBytes)
    return InvalidArgument(fmt::format("the trace's path has more than {} characters", kMaxPathBytes));
  for (const char c : log_file) {
    if (!IsAlphanumeric(c) && std::string_view("._/+@:,-").find(c) == std::string_view::npos)
      return InvalidArgument(
          "the trace's path may hold letters, digits and . _ / + @ : , - only: Kineto reads others as syntax");
  }
  std::string framed = std::string(log_file) + "/";
  if (framed.find("/../") != std::string::npos || framed.find("/./") != std::string::npos ||
      framed.find("//") != std::string::npos)
    return InvalidArgument("the trace's path has an empty part, '.' or '..'");
  if (!log_file.ends_with(kJson) || log_file.ends_with("/.json") || log_file.ends_with("/.pt.trace.json"))
    return InvalidArgument("the trace's name must end in .json: without it all processes write the same file");
  if (log_file.find(kJson) != log_file.size() - kJson.size())
    return InvalidArgument("the trace's path has .json before its end, where Kineto would put the process id");
  return {};
}

std::string FinalTracePath(std::string_view log_file, int32_t client_pid) {
  size_t at = log_file.find(kTorchJson);
  if (at == std::string_view::npos) at = log_file.find(kJson);
  if (at == std::string_view::npos) return std::string(log_file);
  return fmt::format("{}_{}{}", log_file.substr(0, at), client_pid, log_file.substr(at));
}

Result<std::string> BuildConfigText(const ConfigRequest& request) {
  RETURN_IF_ERROR(CheckLogFile(request.log_file));
  RETURN_IF_ERROR(CheckId("trace_id", request.trace_id));
  if (!request.group_id.empty()) RETURN_IF_ERROR(CheckId("group_id", request.group_id));
  std::string text;
  RETURN_IF_ERROR(AppendWindow(request, &text));
  auto out = std::back_inserter(text);
  fmt::format_to(out, "ACTIVITIES_LOG_FILE={}\n", request.log_file);
  RETURN_IF_ERROR(AppendActivities(request, &text));
  const control::CaptureOptions& options = request.options;
  fmt::format_to(out, "PROFILE_REPORT_INPUT_SHAPES={}\n", options.record_shapes);
  fmt::format_to(out, "PROFILE_PROFILE_MEMORY={}\n", options.memory);
  fmt::format_to(out, "PROFILE_WITH_STACK={}\n", options.stacks);
  fmt::format_to(out, "PROFILE_WITH_FLOPS={}\n", options.flops);
  fmt::format_to(out, "PROFILE_WITH_MODULES={}\n", options.modules);
  // PyTorch 2.0 has only these two, and records shapes unless told not to.
  fmt::format_to(out, "CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION={}\n", options.record_shapes);
  fmt::format_to(out, "PYTHON_STACK_TRACE={}\n", options.stacks);
  fmt::format_to(out, "REQUEST_TRACE_ID={}\n", request.trace_id);
  if (!request.group_id.empty()) fmt::format_to(out, "REQUEST_GROUP_TRACE_ID={}\n", request.group_id);
  return text;
}

}  // namespace lockstep::agent
