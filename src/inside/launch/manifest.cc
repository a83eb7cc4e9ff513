#include "inside/launch/manifest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/json_writer.h"
#include "base/nanoseconds.h"

namespace lockstep::launch {
namespace {

std::string UtcText(int64_t unix_ns) {
  const std::time_t seconds = unix_ns / kSecondNs;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(seconds), unix_ns % kSecondNs);
}

}  // namespace

std::string ToJsonLine(const ManifestEntry& entry) {
  const RankIdentity& identity = entry.identity;
  const bool is_alone = identity.launcher == Launcher::kAlone;
  JsonWriter line;
  line.StartObject().Key("format").Text("lockstep-launch").Key("version").Int(1);
  line.Key("rank").Optional(is_alone ? 0 : identity.rank);
  line.Key("world_size").Optional(is_alone ? 1 : identity.world_size);
  line.Key("local_rank").Optional(identity.local_rank).Key("local_size").Optional(identity.local_size);
  line.Key("node").Optional(identity.node).Key("restart").Int(identity.restart);
  line.Key("launcher").TextOrNull(LauncherName(identity.launcher)).Key("job").TextOrNull(entry.job);
  line.Key("host").TextOrNull(entry.host).Key("pid").Int(entry.pid);
  line.Key("visible_devices").TextOrNull(entry.visible_devices);
  line.Key("tool").TextOrNull(entry.tool).Key("tool_version").TextOrNull(entry.tool_version);
  line.Key("start_utc").TextOrNull(UtcText(entry.start_unix_ns)).Key("start_unix_ns").Int(entry.start_unix_ns);
  line.Key("end_unix_ns").Optional(entry.end_unix_ns).Key("exit_code").Optional(entry.exit_code);
  line.Key("command").TextOrNull(entry.command).Key("files").StartArray();
  for (const std::string& file : entry.files) line.Text(file);
  return line.EndArray().EndObject().Take() + "\n";
}

Status WriteManifest(const std::string& path, const ManifestEntry& entry) {
  const std::string unfinished = fmt::format("{}.{}.tmp", path, entry.pid);
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file << ToJsonLine(entry);
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (file && !error) return {};
  const std::string reason = error ? error.message() : std::strerror(errno);
  std::filesystem::remove(unfinished, error);
  return Error{.code = ErrorCode::kIo,
               .message = fmt::format("cannot be written: {}", reason),
               .file = path,
               .rank = entry.identity.rank};
}

}  // namespace lockstep::launch
