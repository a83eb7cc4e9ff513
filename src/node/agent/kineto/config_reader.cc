// ReadConfigText: a configuration text from another program, filtered by a list of keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/invalid_argument.h"
#include "base/letter_case.h"
#include "base/nanoseconds.h"
#include "base/text_scan.h"
#include "base/trim.h"
#include "node/agent/kineto/config_text.h"

namespace lockstep::agent {
namespace {

using control::CaptureWindow;

constexpr size_t kMaxForeignTextBytes = size_t{16} << 10;
constexpr size_t kMaxIgnoredKeys = 16;
constexpr std::string_view kBlanks = " \t\r";

/// What the lines have said so far. Iterations win over a length of time when both a start and a count are there, as
/// in Kineto.
struct Reading {
  ForeignConfig config;
  std::optional<int64_t> start_iteration;
  std::optional<int64_t> roundup;
  int64_t iterations = 0;
};

Result<int64_t> ReadNumber(std::string_view value, int64_t most) {
  const auto number = WholeNumber(value);
  if (number && *number >= 0 && *number <= most) return *number;
  return InvalidArgument(fmt::format("is not a whole number in 0 .. {}", most));
}

Result<bool> ReadBool(std::string_view value) {
  const std::string lower = Lowered(value);
  for (const std::string_view yes : {"y", "yes", "t", "true", "1"})
    if (lower == yes) return true;
  for (const std::string_view no : {"n", "no", "f", "false", "0"})
    if (lower == no) return false;
  return InvalidArgument("is neither true nor false");
}

Status ReadActivities(std::string_view value, std::vector<std::string>* activities) {
  activities->clear();
  for (size_t begin = 0; begin <= value.size();) {
    const size_t comma = std::min(value.find(',', begin), value.size());
    std::string name(Trimmed(value.substr(begin, comma - begin), kBlanks));
    begin = comma + 1;
    if (name.empty()) continue;
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    // The newest version's list: which one the processes have is not known here.
    if (!KnowsActivity("99.0", name))
      return InvalidArgument(fmt::format("has the unknown activity '{}'", name.substr(0, 64)));
    if (activities->size() >= 64) return InvalidArgument("has too many activities");
    activities->push_back(std::move(name));
  }
  return {};
}

template <typename T>
Status Assign(Result<T> value, T* target) {
  if (!value) return std::move(value).error();
  *target = *value;
  return {};
}

Status AssignScaled(std::string_view value, int64_t most, int64_t scale, int64_t* target) {
  ASSIGN_OR_RETURN(const int64_t number, ReadNumber(value, most));
  *target = number * scale;
  return {};
}

using Handler = Status (*)(std::string_view value, Reading* reading);
struct Key {
  std::string_view name;
  Handler read;
};

Status Skip(std::string_view, Reading*) { return {}; }

/// Keys that are taken over. Paths and ids are the caller's to judge.
constexpr auto kKeys = std::to_array<Key>({
    {"ACTIVITIES_LOG_FILE",
     [](std::string_view value, Reading* reading) -> Status {
       reading->config.log_file = value;
       return {};
     }},
    {"PROFILE_START_TIME",
     [](std::string_view value, Reading* reading) -> Status {
       int64_t start_ns = 0;
       RETURN_IF_ERROR(AssignScaled(value, INT64_MAX / kMillisecondNs, kMillisecondNs, &start_ns));
       reading->config.window.start_unix_ns = start_ns == 0 ? std::nullopt : std::optional(start_ns);
       return {};
     }},
    {"ACTIVITIES_DURATION_MSECS",
     [](std::string_view value, Reading* reading) {
       return AssignScaled(value, INT32_MAX, kMillisecondNs, &reading->config.window.duration_ns);
     }},
    {"ACTIVITIES_DURATION_SECS",
     [](std::string_view value, Reading* reading) {
       return AssignScaled(value, INT32_MAX, kSecondNs, &reading->config.window.duration_ns);
     }},
    {"ACTIVITIES_WARMUP_PERIOD_SECS",
     [](std::string_view value, Reading* reading) {
       return AssignScaled(value, INT32_MAX, kSecondNs, &reading->config.window.warmup_ns.emplace());
     }},
    {"PROFILE_START_ITERATION",
     [](std::string_view value, Reading* reading) {
       return Assign(ReadNumber(value, INT32_MAX), &reading->start_iteration.emplace());
     }},
    {"PROFILE_START_ITERATION_ROUNDUP",
     [](std::string_view value, Reading* reading) {
       return Assign(ReadNumber(value, INT32_MAX), &reading->roundup.emplace());
     }},
    {"ACTIVITIES_ITERATIONS",
     [](std::string_view value, Reading* reading) { return Assign(ReadNumber(value, 100'000), &reading->iterations); }},
    {"ACTIVITIES_WARMUP_ITERATIONS",
     [](std::string_view value, Reading* reading) -> Status {
       ASSIGN_OR_RETURN(const int64_t number, ReadNumber(value, 100'000));
       reading->config.window.warmup_iterations = static_cast<int32_t>(number);
       return {};
     }},
    {"ACTIVITY_TYPES",
     [](std::string_view value, Reading* reading) { return ReadActivities(value, &reading->config.options.activities); }},
    {"PROFILE_REPORT_INPUT_SHAPES",
     [](std::string_view value, Reading* reading) {
       return Assign(ReadBool(value), &reading->config.options.record_shapes);
     }},
    {"CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION",
     [](std::string_view value, Reading* reading) {
       return Assign(ReadBool(value), &reading->config.options.record_shapes);
     }},
    {"PROFILE_PROFILE_MEMORY",
     [](std::string_view value, Reading* reading) { return Assign(ReadBool(value), &reading->config.options.memory); }},
    {"PROFILE_WITH_STACK",
     [](std::string_view value, Reading* reading) { return Assign(ReadBool(value), &reading->config.options.stacks); }},
    {"PYTHON_STACK_TRACE",
     [](std::string_view value, Reading* reading) { return Assign(ReadBool(value), &reading->config.options.stacks); }},
    {"PROFILE_WITH_FLOPS",
     [](std::string_view value, Reading* reading) { return Assign(ReadBool(value), &reading->config.options.flops); }},
    {"PROFILE_WITH_MODULES",
     [](std::string_view value, Reading* reading) { return Assign(ReadBool(value), &reading->config.options.modules); }},
    {"PROFILE_MEMORY",
     [](std::string_view value, Reading*) -> Status {
       ASSIGN_OR_RETURN(const bool wanted, ReadBool(value));
       if (!wanted) return {};
       return Error{.code = ErrorCode::kUnsupported,
                    .message = "asks for a memory snapshot, after which a thread of the process spins until it ends; leave PROFILE_MEMORY out (for a trace use PROFILE_PROFILE_MEMORY=true)"};
     }},
    {"PROFILE_MEMORY_DURATION_MSECS", Skip},
    {"ACTIVITIES_ENABLED", Skip},   // Overridden by any length, count or path, and a request without them is a trace.
    {"REQUEST_TRACE_ID", Skip},     // The daemon gives its own.
    {"REQUEST_GROUP_TRACE_ID", Skip},
});

Status ReadLine(std::string_view line, Reading* reading) {
  line = Trimmed(line.substr(0, line.find('#')), kBlanks);
  if (line.empty()) return {};
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos || line.find('=', equals + 1) != std::string_view::npos)
    return InvalidArgument("must be KEY=VALUE with one '=': Kineto stops reading here, and drops the request");
  const std::string_view name = Trimmed(line.substr(0, equals), kBlanks);
  const std::string_view value = Trimmed(line.substr(equals + 1), kBlanks);
  const auto* key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& known) { return known.name == name; });
  if (key == kKeys.end()) {
    if (reading->config.ignored_keys.size() < kMaxIgnoredKeys)
      reading->config.ignored_keys.emplace_back(name.substr(0, 64));
    return {};
  }
  Status status = key->read(value, reading);
  if (!status) status.error().message = fmt::format("{} {}", name, status.error().message);
  return status;
}

}  // namespace

Result<ForeignConfig> ReadConfigText(std::string_view text) {
  if (text.size() > kMaxForeignTextBytes)
    return Error{.code = ErrorCode::kLimitExceeded,
                 .message = fmt::format("the configuration has more than {} bytes", kMaxForeignTextBytes)};
  if (text.find('\0') != std::string_view::npos) return InvalidArgument("the configuration holds a zero byte");
  Reading reading;
  size_t line_number = 1;
  for (size_t begin = 0; begin < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    Status status = ReadLine(text.substr(begin, end - begin), &reading);
    if (!status) {
      status.error().message = fmt::format("line {} of the configuration: {}", line_number, status.error().message);
      return std::move(status).error();
    }
    begin = end + 1;
  }
  CaptureWindow& window = reading.config.window;
  const bool has_start = reading.start_iteration.has_value() || reading.roundup.value_or(0) > 0;
  if (has_start && reading.iterations > 0) {
    window.mode = CaptureWindow::Mode::kIterations;
    window.iterations = static_cast<int32_t>(reading.iterations);
    window.roundup = static_cast<int32_t>(std::max<int64_t>(reading.roundup.value_or(1), 1));
    if (reading.start_iteration.value_or(0) > 0) window.start_iteration = reading.start_iteration;
  }
  return std::move(reading.config);
}

}  // namespace lockstep::agent
