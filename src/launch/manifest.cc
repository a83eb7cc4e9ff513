#include "launch/manifest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/utf8.h"

namespace lockstep::launch {
namespace {

class Line {
 public:
  Line() { writer_.StartObject(); }
  void Text(const char* name, const std::string& value) {
    writer_.Key(name);
    value.empty() ? static_cast<void>(writer_.Null()) : String(value);
  }
  void Texts(const char* name, const std::vector<std::string>& values) {
    writer_.Key(name);
    writer_.StartArray();
    for (const std::string& value : values) String(value);
    writer_.EndArray();
  }
  template <typename T>
  void Number(const char* name, const std::optional<T>& value) {
    writer_.Key(name);
    value ? writer_.Int64(*value) : writer_.Null();
  }
  std::string Take() {
    writer_.EndObject();
    return std::string(buffer_.GetString(), buffer_.GetSize()) + "\n";
  }

 private:
  void String(const std::string& value) {
    const std::string valid = ValidUtf8(value);
    writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  }

  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

std::string UtcText(int64_t unix_ns) {
  const std::time_t seconds = unix_ns / 1'000'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(seconds), unix_ns % 1'000'000'000);
}

}  // namespace

std::string ToJsonLine(const ManifestEntry& entry) {
  const RankIdentity& identity = entry.identity;
  const bool is_alone = identity.launcher == Launcher::kAlone;
  Line line;
  line.Text("format", "lockstep-launch");
  line.Number<int>("version", 1);
  line.Number("rank", is_alone ? std::optional<int32_t>(0) : identity.rank);
  line.Number("world_size", is_alone ? std::optional<int32_t>(1) : identity.world_size);
  line.Number("local_rank", identity.local_rank);
  line.Number("local_size", identity.local_size);
  line.Number("node", identity.node);
  line.Number<int32_t>("restart", identity.restart);
  line.Text("launcher", LauncherName(identity.launcher));
  line.Text("job", entry.job);
  line.Text("host", entry.host);
  line.Number<int32_t>("pid", entry.pid);
  line.Text("visible_devices", entry.visible_devices);
  line.Text("tool", entry.tool);
  line.Text("tool_version", entry.tool_version);
  line.Text("start_utc", UtcText(entry.start_unix_ns));
  line.Number<int64_t>("start_unix_ns", entry.start_unix_ns);
  line.Number("end_unix_ns", entry.end_unix_ns);
  line.Number("exit_code", entry.exit_code);
  line.Text("command", entry.command);
  line.Texts("files", entry.files);
  return line.Take();
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
