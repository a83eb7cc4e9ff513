#include "inside/launch/tool_version.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/split.h"
#include "base/subprocess.h"
#include "base/utf8.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

bool CanRun(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// "opt/nvidia/nsight-systems/2024.5.1/bin/nsys": versions that are not in PATH on clusters. Newest first.
std::vector<fs::path> UsualPlaces(const std::string& name) {
  const bool is_compute = name == "ncu";
  std::vector<fs::path> places;
  std::error_code error;
  std::vector<fs::path> versions;
  for (const auto& entry :
       fs::directory_iterator(is_compute ? "/opt/nvidia/nsight-compute" : "/opt/nvidia/nsight-systems", error)) {
    versions.push_back(entry.path());
  }
  std::ranges::sort(versions, [](const fs::path& left, const fs::path& right) {
    const auto version = [](const fs::path& path) {
      return ParseToolVersion("version " + path.filename().string()).value_or(ToolVersion{});
    };
    return version(left) > version(right);
  });
  for (const fs::path& folder : versions) places.push_back(is_compute ? folder / name : folder / "bin" / name);
  places.push_back(fs::path("/usr/local/cuda/bin") / name);
  return places;
}

Result<std::string> InPath(const std::string& name, const Environment& environment) {
  std::string_view folders = environment.Get("PATH");
  while (!folders.empty()) {
    const std::string_view folder = TakePart(&folders, ':');
    const fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    if (CanRun(path)) return path.string();
  }
  return Error{ErrorCode::kNotFound, fmt::format("there is no {} in PATH", name)};
}

}  // namespace

std::string ToText(const ToolVersion& version) {
  return fmt::format("{}.{}.{}", version.year, version.release, version.patch);
}

Result<ToolVersion> ParseToolVersion(std::string_view output) {
  // The first number of four digits with a dot behind it, after the word: copyright's years have none.
  for (size_t at = 0; (at = output.find("ersion ", at)) != std::string_view::npos;) {
    at += 7;
    const char* next = output.data() + at;
    const char* end = output.data() + output.size();
    int numbers[3] = {0, 0, 0};
    int count = 0;
    while (count < 3) {
      const auto [after, error] = std::from_chars(next, end, numbers[count]);
      if (error != std::errc() || numbers[count] < 0) break;
      ++count;
      next = after;
      if (next == end || *next != '.') break;
      ++next;
    }
    if (count >= 2 && numbers[0] >= 2018 && numbers[0] < 2100) return ToolVersion{numbers[0], numbers[1], numbers[2]};
  }
  return Error{ErrorCode::kCorruptData, fmt::format("no version in its answer: {}", Printable(output.substr(0, 200)))};
}

Result<std::string> FindTool(const std::string& name, const std::string& given, const Environment& environment) {
  if (!given.empty()) {
    if (given.find('/') == std::string::npos) return InPath(given, environment);
    if (CanRun(given)) return given;
    return Error{ErrorCode::kNotFound, fmt::format("{}: there is no such program", given)};
  }
  Result<std::string> found = InPath(name, environment);
  if (found) return found;
  for (const fs::path& place : UsualPlaces(name)) {
    if (CanRun(place)) return place.string();
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{0} is not on this node (PATH, /opt/nvidia, /usr/local/cuda/bin): load its module, install "
                           "it, mount its folder into the container, or give its path with --tool",
                           name)};
}

Result<ToolVersion> AskToolVersion(const std::string& path) {
  ASSIGN_OR_RETURN(const CommandOutput answer, RunCommand({path, "--version"}, {.timeout_ns = 60'000'000'000}));
  Result<ToolVersion> version = ParseToolVersion(answer.output);
  if (version) return version;
  return Error{version.error().code,
               fmt::format("{} --version: {}", path,
                           answer.exit_status == 0 ? version.error().message
                                                   : fmt::format("exit status {}: {}", answer.exit_status,
                                                                 Printable(answer.error.substr(0, 200))))};
}

}  // namespace lockstep::launch
