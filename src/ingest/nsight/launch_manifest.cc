#include "ingest/nsight/launch_manifest.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/utf8.h"

namespace lockstep::ingest::nsight {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{64} << 10;
constexpr size_t kMaxFiles = 1000;

std::optional<int32_t> CountOf(simdjson::dom::object members, std::string_view key) {
  int64_t number = 0;
  if (members[key].get_int64().get(number) != simdjson::SUCCESS || number < 0 || number > INT32_MAX) {
    return std::nullopt;
  }
  return static_cast<int32_t>(number);
}

/// "train.rank3.nsys-rep" and "train.rank3.sqlite" are of one recording.
std::string_view WithoutForm(std::string_view name) {
  for (const std::string_view ending : {".nsys-rep", ".sqlite"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

}  // namespace

std::optional<LaunchManifest> ParseLaunchManifest(std::string_view text) {
  if (text.size() > kMaxBytes) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::object members;
  std::string_view format;
  if (parser.parse(text.data(), text.size()).get_object().get(members) != simdjson::SUCCESS ||
      members["format"].get_string().get(format) != simdjson::SUCCESS || format != "lockstep-launch") {
    return std::nullopt;
  }
  const std::optional<int32_t> rank = CountOf(members, "rank");
  if (!rank) return std::nullopt;
  LaunchManifest manifest{.rank = *rank, .world_size = CountOf(members, "world_size"), .host = {}, .files = {}};
  if (manifest.world_size && manifest.rank >= *manifest.world_size) return std::nullopt;
  std::string_view host;
  if (members["host"].get_string().get(host) == simdjson::SUCCESS) manifest.host = Printable(host.substr(0, 255));
  simdjson::dom::array files;
  if (members["files"].get_array().get(files) != simdjson::SUCCESS) return manifest;
  for (const simdjson::dom::element file : files) {
    std::string_view name;
    if (manifest.files.size() < kMaxFiles && file.get_string().get(name) == simdjson::SUCCESS) {
      manifest.files.emplace_back(name);
    }
  }
  return manifest;
}

void TakeLaunchManifest(const std::string& report_path, std::vector<TraceContent>* contents) {
  if (report_path.empty() || contents->size() != 1) return;
  const fs::path report(report_path);
  const std::string name(WithoutForm(report.filename().native()));
  std::ifstream file(report.parent_path() / (name + ".launch"), std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof()) return;
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const std::optional<LaunchManifest> manifest = ParseLaunchManifest(text);
  const auto names_it = [&](const std::string& listed) { return WithoutForm(listed) == name; };
  // One that was killed lists nothing; one that lists other files is not this report's.
  if (!manifest || (!manifest->files.empty() && std::none_of(manifest->files.begin(), manifest->files.end(), names_it)))
    return;
  TraceContent& content = contents->front();
  model::RankTrace& trace = content.trace;
  if (content.has_rank && trace.rank.value != manifest->rank) {
    content.ledger.Add({.code = "rank_disagreement",
                        .severity = model::Severity::kWarning,
                        .source = trace.source,
                        .rank = {},
                        .byte_offset = {},
                        .count = 1,
                        .message = fmt::format("the launch manifest beside it says rank {}, the report says rank {}: "
                                               "the first was taken",
                                               manifest->rank, trace.rank.value),
                        .advice = "check which launcher numbered the job"});
  }
  content.has_rank = true;
  trace.rank = {manifest->rank};
  if (manifest->world_size) trace.world_size = manifest->world_size;
  if (trace.host.empty()) trace.host = manifest->host;
}

}  // namespace lockstep::ingest::nsight
