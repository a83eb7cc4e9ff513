#include "node/agent/engines/engine_finder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>

#include "base/split.h"
#include "base/text_scan.h"
#include "node/agent/sensors/small_file.h"
#include "node/proc/job_processes.h"

namespace lockstep::agent {
namespace {

constexpr uint16_t kVllmPort = 8000;
constexpr uint16_t kSglangPort = 30000;
constexpr uint16_t kTritonPort = 8002;       // Of its metrics alone.
constexpr std::string_view kListens = "0A";  // TCP_LISTEN
constexpr size_t kMostWords = 4096;

/// Addresses of /proc/net: words of 32 bits in the machine's order, as hexadecimal digits.
constexpr std::string_view kAnyAddresses[] = {"00000000", "00000000000000000000000000000000",
                                              "00000000000000000000000001000000"};  // The last is ::1.

std::vector<std::string_view> WordsOf(std::string_view command) {
  std::vector<std::string_view> words;
  while (!command.empty() && words.size() < kMostWords) {
    const size_t end = std::min(command.find('\0'), command.size());
    words.push_back(command.substr(0, end));
    command.remove_prefix(std::min(end + 1, command.size()));
  }
  return words;
}

std::string_view FileNameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string NamespaceOf(const std::string& folder) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink((folder + "/ns/net").c_str(), target, sizeof(target));
  return length <= 0 ? std::string() : std::string(target, static_cast<size_t>(length));
}

}  // namespace

std::optional<FoundEngine> EngineOfCommand(std::string_view command) {
  const std::vector<std::string_view> words = WordsOf(command);
  std::optional<FoundEngine> found;
  // Whatever stands before: an interpreter, its options.
  for (size_t i = 0; i + 1 < words.size() && i < 8 && !found; ++i) {
    const std::string_view name = FileNameOf(words[i]);
    const std::string_view next = words[i + 1];
    if (name == "vllm" && next == "serve") found = {EngineKind::kVllm, kVllmPort};
    if (name == "sglang" && next == "serve") found = {EngineKind::kSglang, kSglangPort};
    if (words[i] == "-m" && next == "vllm.entrypoints.openai.api_server") found = {EngineKind::kVllm, kVllmPort};
    if (words[i] == "-m" && next == "sglang.launch_server") found = {EngineKind::kSglang, kSglangPort};
  }
  if (!found && FileNameOf(words.empty() ? "" : words[0]) == "tritonserver") {
    found = {EngineKind::kTriton, kTritonPort};
  }
  if (!found) return std::nullopt;
  const std::string_view option = found->kind == EngineKind::kTriton ? "--metrics-port" : "--port";
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with(option)) continue;
    const std::string_view rest = words[i].substr(option.size());
    std::string_view port;
    if (rest.empty() && i + 1 < words.size()) port = words[i + 1];
    if (rest.starts_with("=")) port = rest.substr(1);
    if (port.empty()) continue;
    const auto number = WholeNumber<uint16_t>(port);
    if (!number || *number == 0) return std::nullopt;
    found->port = *number;
  }
  return found;
}

std::set<std::pair<uint16_t, uint32_t>> LoopbackListeners(std::string_view text) {
  std::set<std::pair<uint16_t, uint32_t>> listeners;
  LineScanner lines(text);
  std::string_view line;
  while (lines.Next(&line)) {
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid
    const std::vector<std::string_view> fields = SplitAt(line, " ");
    if (fields.size() < 8 || fields[3] != kListens) continue;
    const size_t colon = fields[1].find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view address = fields[1].substr(0, colon);
    const bool is_loopback = address.size() == 8 && address.ends_with("7F");
    if (!is_loopback &&
        std::find(std::begin(kAnyAddresses), std::end(kAnyAddresses), address) == std::end(kAnyAddresses)) {
      continue;
    }
    const auto port = WholeNumber<uint16_t>(fields[1].substr(colon + 1), 16);
    const auto uid = WholeNumber<uint32_t>(fields[7]);
    if (port && uid) listeners.emplace(*port, *uid);
  }
  return listeners;
}

std::vector<FoundEngine> FindEngines(const std::function<bool(uint32_t uid)>& allowed, const std::string& root) {
  SmallFiles files;
  std::set<std::pair<uint16_t, uint32_t>> listeners;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    // Those that listen come first, so that what is cut are connections.
    const auto text = files.Text(root + table);
    if (text) listeners.merge(LoopbackListeners(*text));
  }
  const std::string here = NamespaceOf(root + "/self");
  std::map<uint16_t, FoundEngine> found;
  for (const int32_t pid : proc::ListProcesses(root)) {
    const std::string folder = fmt::format("{}/{}", root, pid);
    struct stat info = {};
    if (::stat(folder.c_str(), &info) != 0 || !allowed(info.st_uid)) continue;
    const auto command = files.Text(folder + "/cmdline");
    const auto engine = command ? EngineOfCommand(*command) : std::nullopt;
    if (!engine || !listeners.contains({engine->port, info.st_uid}) || NamespaceOf(folder) != here) continue;
    found.emplace(engine->port, *engine);
  }
  std::vector<FoundEngine> all;
  for (const auto& [port, engine] : found) all.push_back(engine);
  return all;
}

}  // namespace lockstep::agent
