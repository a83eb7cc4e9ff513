#include "node/control/client/dynolog_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/timed_socket_io.h"
#include "base/unique_fd.h"

namespace lockstep::control {
namespace {

constexpr int32_t kAnswerBytes = 16 << 20;

Error Failed(const DynologNode& node, ErrorCode code, std::string_view what) {
  return {.code = code, .message = fmt::format("Dynolog on {}, port {}: {}", node.host, node.port, what)};
}

/// A conversation under one deadline.
class Connection {
 public:
  Connection(const DynologNode& node, int64_t deadline_ns) : node_(node), until_ns_(SteadyNow() + deadline_ns) {}

  Status Connect() {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int failure = ::getaddrinfo(node_.host.c_str(), std::to_string(node_.port).c_str(), &hints, &found);
    if (failure != 0) return Failed(node_, ErrorCode::kNotFound, ::gai_strerror(failure));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
    int error = 0;
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
      fd_ = UniqueFd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!fd_.valid()) {
        error = errno;
        continue;
      }
      error = ConnectWithin(fd_.get(), address->ai_addr, address->ai_addrlen, until_ns_);
      if (error == 0 || error == ETIME) return Said(error);
    }
    return Failed(
        node_, error == ECONNREFUSED ? ErrorCode::kNotFound : ErrorCode::kIo,
        error == ECONNREFUSED
            ? "no process listens; start dynolog there (with --enable_ipc_monitor), or lockstepd --dynolog-rpc"
            : std::strerror(error));
  }

  Status Send(std::string_view bytes) { return Said(SendWithin(fd_.get(), bytes, until_ns_)); }

  Status Receive(char* bytes, size_t size) {
    while (size > 0) {
      size_t count = 0;
      RETURN_IF_ERROR(Said(ReceiveWithin(fd_.get(), bytes, size, &count, until_ns_)));
      if (count == 0) {
        return Failed(node_, ErrorCode::kUnsupported,
                      "closed the connection without an answer; it does not know this request");
      }
      bytes += count;
      size -= count;
    }
    return {};
  }

 private:
  Status Said(int error) const {
    if (error == 0) return {};
    if (error == ETIME) return Failed(node_, ErrorCode::kCancelled, "no answer in time");
    return Failed(node_, ErrorCode::kIo, std::strerror(error));
  }

  const DynologNode& node_;
  const int64_t until_ns_;
  UniqueFd fd_;
};

/// Sends one request and reads the answer's text: each is JSON behind a 32-bit length in native byte order.
Result<std::string> Ask(const DynologNode& node, const std::string& json, int64_t deadline_ns) {
  Connection connection(node, deadline_ns);
  RETURN_IF_ERROR(connection.Connect());
  auto length = static_cast<int32_t>(json.size());
  std::string request(sizeof(length), '\0');
  std::memcpy(request.data(), &length, sizeof(length));
  request += json;  // In one piece: Dynolog reads the length with one call.
  RETURN_IF_ERROR(connection.Send(request));
  RETURN_IF_ERROR(connection.Receive(reinterpret_cast<char*>(&length), sizeof(length)));
  if (length <= 0 || length > kAnswerBytes)
    return Failed(node, ErrorCode::kCorruptData, fmt::format("an answer of {} bytes; this is not Dynolog", length));
  std::string answer(static_cast<size_t>(length), '\0');
  RETURN_IF_ERROR(connection.Receive(answer.data(), answer.size()));
  return answer;
}

Result<JsonTree> Read(const DynologNode& node, const std::string& answer) {
  Result<JsonTree> tree = ParseJson(answer, {.checks_encoding = true});
  if (!tree || !tree->root().IsObject())
    return Failed(node, ErrorCode::kCorruptData, "the answer is not a JSON object");
  return tree;
}

Result<std::vector<int32_t>> Pids(const DynologNode& node, JsonValue document, const char* name) {
  const JsonValue list = document[name];
  if (!list.IsArray()) return Failed(node, ErrorCode::kCorruptData, fmt::format("the answer has no list '{}'", name));
  std::vector<int32_t> pids;
  for (const JsonValue element : list.elements()) {
    const std::optional<int32_t> pid = element.Int32();
    if (!pid) return Failed(node, ErrorCode::kCorruptData, fmt::format("'{}' holds what is not a pid", name));
    pids.push_back(*pid);
  }
  return pids;
}

const char* Word(bool value) { return value ? "true" : "false"; }

}  // namespace

Result<std::string> DynologConfigText(const DynologRequest& request) {
  for (const char c : request.log_file) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '=' || c == '#') {
      return Error{.code = ErrorCode::kInvalidArgument,
                   .message = fmt::format("'{}': Kineto cannot be told of a path with '=', '#' or control characters; "
                                          "choose another folder",
                                          request.log_file)};
    }
  }
  const CaptureWindow& window = request.window;
  std::string text = fmt::format("ACTIVITIES_LOG_FILE={}\n", request.log_file);
  if (window.mode == CaptureWindow::Mode::kIterations) {
    text += fmt::format("PROFILE_START_ITERATION={}\nPROFILE_START_ITERATION_ROUNDUP={}\nACTIVITIES_ITERATIONS={}\n",
                        window.start_iteration.value_or(0), window.roundup, window.iterations);
    if (window.warmup_iterations > 0)
      text += fmt::format("ACTIVITIES_WARMUP_ITERATIONS={}\n", window.warmup_iterations);
  } else {
    text += fmt::format("PROFILE_START_TIME={}\nACTIVITIES_DURATION_MSECS={}\n",
                        window.start_unix_ns.value_or(0) / kMillisecondNs, window.duration_ns / kMillisecondNs);
    if (window.warmup_ns) text += fmt::format("ACTIVITIES_WARMUP_PERIOD_SECS={}\n", *window.warmup_ns / kSecondNs);
  }
  const CaptureOptions& options = request.options;
  text += fmt::format(
      "PROFILE_REPORT_INPUT_SHAPES={}\nPROFILE_PROFILE_MEMORY={}\nPROFILE_WITH_STACK={}\nPROFILE_WITH_FLOPS={}\n"
      "PROFILE_WITH_MODULES={}\n",
      Word(options.record_shapes), Word(options.memory), Word(options.stacks), Word(options.flops),
      Word(options.modules));
  if (!options.activities.empty()) text += fmt::format("ACTIVITY_TYPES={}\n", fmt::join(options.activities, ","));
  return text;
}

std::string DynologTracePath(std::string_view log_file, int32_t pid) {
  const size_t ending = log_file.find(".json");
  if (ending == std::string_view::npos) return std::string(log_file);
  return fmt::format("{}_{}{}", log_file.substr(0, ending), pid, log_file.substr(ending));
}

Result<DynologAnswer> AskDynolog(const DynologNode& node, const DynologRequest& request, int64_t deadline_ns) {
  ASSIGN_OR_RETURN(const std::string config, DynologConfigText(request));
  JsonWriter json;
  json.StartObject().Key("fn").Text("setKinetOnDemandRequest").Key("config").Text(config);
  json.Key("job_id").Int(request.job_id).Key("pids").StartArray();
  for (const int32_t pid : request.pids) json.Int(pid);
  if (request.pids.empty()) json.Int(0);
  json.EndArray().Key("process_limit").Int(request.process_limit).EndObject();
  ASSIGN_OR_RETURN(const std::string text, Ask(node, json.Take(), deadline_ns));
  ASSIGN_OR_RETURN(const JsonTree tree, Read(node, text));
  const JsonValue document = tree.root();
  DynologAnswer answer;
  ASSIGN_OR_RETURN(answer.matched, Pids(node, document, "processesMatched"));
  ASSIGN_OR_RETURN(answer.triggered, Pids(node, document, "activityProfilersTriggered"));
  answer.busy_count = document["activityProfilersBusy"].Int32().value_or(answer.busy_count);
  return answer;
}

}  // namespace lockstep::control
