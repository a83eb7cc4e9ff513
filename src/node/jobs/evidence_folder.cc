#include "node/jobs/evidence_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/ascii.h"
#include "base/calendar.h"
#include "base/json_writer.h"
#include "base/unique_fd.h"

namespace lockstep::jobs {
namespace {

namespace fs = std::filesystem;

/// Host names and job ids come from elsewhere: in a path they are one plain word.
std::string Word(std::string_view text) {
  std::string word;
  for (const char c : text.substr(0, 64)) {
    const bool is_plain = IsAlphanumeric(c) || c == '.' || c == '-' || c == '_';
    word += is_plain ? c : '_';
  }
  if (word.starts_with('.')) word.front() = '_';
  return word.empty() ? "unknown" : word;
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  const auto fail = [&] {
    return Error{ErrorCode::kIo, fmt::format("cannot be written: {}", std::strerror(errno)), path};
  };
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return fail();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status MakeFolder(const std::string& path, bool may_be_there) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  std::error_code error;
  if (errno != EEXIST || !may_be_there) {
    return Error{ErrorCode::kIo, fmt::format("cannot be made: {}", std::strerror(errno)), path};
  }
  if (!fs::is_directory(path, error) || !fs::is_empty(path, error)) {
    return Error{ErrorCode::kFailedPrecondition, "exists and is not an empty folder; name another one with --keep",
                 path};
  }
  return {};
}

std::string ProcessFolder(const evidence::InspectedProcess& process) {
  const std::string rank = process.rank ? fmt::format("rank{}", *process.rank) : "process";
  return fmt::format("{}-{}-pid{}", rank, Word(process.host), process.pid);
}

const char* StateOf(evidence::Liveness liveness) {
  switch (liveness) {
    case evidence::Liveness::kRunning: return "running";
    case evidence::Liveness::kGone: return "gone";
    case evidence::Liveness::kUnknown: break;
  }
  return "unknown";
}

/// A file for each answer: "ras_n001_1.json". Numbered by the node, since nodes are asked at the same time.
std::vector<std::string> RasFiles(const CollectedJob& job) {
  std::vector<std::string> files;
  std::map<std::string, int> counts;
  for (const CollectedRas& ras : job.ras) {
    const std::string host = Word(ras.host);
    files.push_back(fmt::format("ras_{}_{}.{}", host, ++counts[host], ras.reply.is_json ? "json" : "txt"));
  }
  return files;
}

std::string IndexText(const CollectedJob& job) {
  JsonWriter json;
  json.StartObject().Key("schema").Text("lockstep.evidence/1");
  json.Key("job").StartObject().Key("kind").TextOrNull(job.job_kind).Key("id").TextOrNull(job.job_id).EndObject();
  json.Key("collected_unix_ns").Int(job.collected_unix_ns).Key("world_size").Optional(job.world_size);
  json.Key("nodes").StartArray();
  for (const CollectedNode& node : job.nodes) {
    json.StartObject().Key("host").Text(node.host).Key("problem").TextOrNull(node.problem).EndObject();
  }
  json.EndArray().Key("processes").StartArray();
  for (const evidence::InspectedProcess& process : job.processes) {
    json.StartObject().Key("rank").Optional(process.rank).Key("host").Text(process.host).Key("pid").Int(process.pid);
    json.Key("folder").Text(ProcessFolder(process)).Key("state").Text(StateOf(process.liveness)).EndObject();
  }
  json.EndArray().Key("ras").StartArray();
  const std::vector<std::string> ras_files = RasFiles(job);
  for (size_t i = 0; i < job.ras.size(); ++i) {
    const CollectedRas& ras = job.ras[i];
    json.StartObject().Key("file").Text(ras_files[i]).Key("host").Text(ras.host).Key("address").Text(ras.reply.address);
    json.Key("asked_unix_ns").Int(ras.reply.asked_unix_ns).EndObject();
  }
  json.EndArray().Key("missing").StartArray();
  for (const evidence::MissingEvidence& missing : job.missing) {
    json.StartObject().Key("rank").Optional(missing.rank).Key("host").TextOrNull(missing.host);
    json.Key("what")
        .Text(missing.what)
        .Key("reason")
        .Text(missing.reason)
        .Key("remedy")
        .TextOrNull(missing.remedy)
        .EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace

Status WriteEvidenceFolder(const CollectedJob& job, const std::string& folder) {
  std::error_code error;
  const fs::path parent = fs::path(folder).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  RETURN_IF_ERROR(MakeFolder(folder, true));
  for (const evidence::InspectedProcess& process : job.processes) {
    const std::string path = folder + "/" + ProcessFolder(process);
    RETURN_IF_ERROR(MakeFolder(path, false));
    RETURN_IF_ERROR(WriteFile(path + "/process.json", WriteInspectedProcess(process, false)));
    if (!process.record_bytes.empty()) {
      const char* name = process.record_format == "json" ? "flight_recorder.json" : "flight_recorder.pickle";
      RETURN_IF_ERROR(WriteFile(path + "/" + name, process.record_bytes));
    }
    if (!process.ring_bytes.empty()) RETURN_IF_ERROR(WriteFile(path + "/nccl.ring", process.ring_bytes));
    if (!process.log_tail.empty()) RETURN_IF_ERROR(WriteFile(path + "/log_tail.txt", process.log_tail));
  }
  const std::vector<std::string> ras_files = RasFiles(job);
  for (size_t i = 0; i < job.ras.size(); ++i) {
    RETURN_IF_ERROR(WriteFile(folder + "/" + ras_files[i], job.ras[i].reply.text));
  }
  // Last: a folder with this is whole.
  return WriteFile(folder + "/evidence.json", IndexText(job));
}

std::string FreshFolderName(const std::string& parent, const char* what, const std::string& job_id, int64_t unix_ns) {
  const std::string own = fmt::format("lockstep-{}{}{}-{}", what, job_id.empty() ? "" : "-",
                                      job_id.empty() ? "" : Word(job_id), UtcName(unix_ns));
  const std::string name = (fs::path(parent) / own).string();  // "evidence/" is "evidence".
  std::error_code error;
  std::string fresh = name;
  for (int i = 2; fs::exists(fresh, error); ++i) fresh = fmt::format("{}-{}", name, i);
  return fresh;
}

}  // namespace lockstep::jobs
