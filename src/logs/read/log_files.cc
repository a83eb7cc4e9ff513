#include "logs/read/log_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/text_scan.h"
#include "ingest/bytes/file_names.h"
#include "ingest/bytes/input_files.h"
#include "ingest/bytes/natural_order.h"
#include "ingest/bytes/trace_files.h"
#include "logs/line/log_name.h"

namespace lockstep::logs {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kMostAge = 999;

bool IsLogName(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string_view stem = ReadRotatedName(name).stem;
  constexpr std::array<std::string_view, 7> kEndings = {".log", ".jsonl", ".out", ".err", ".txt", ".stdout", ".stderr"};
  if (name.starts_with(".")) return false;
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view end) { return stem.ends_with(end); });
}

std::optional<int32_t> RankOfPath(const std::string& path) {
  if (const auto rank = ingest::ReadNameFacts(path).rank) return rank;
  // torchrun's --log-dir: attempt_0/3/stderr.log.
  const auto number = WholeNumber<int32_t>(fs::path(path).parent_path().filename().string());
  return number && *number >= 0 ? number : std::nullopt;
}

struct stat StatOf(const std::string& path, bool* is_there) {
  struct stat status = {};
  *is_there = ::stat(path.c_str(), &status) == 0;
  return status;
}

}  // namespace

std::optional<FileNumber> NumberOf(const std::string& path) {
  bool is_there = false;
  const struct stat status = StatOf(path, &is_there);
  if (!is_there) return std::nullopt;
  return FileNumber{status.st_dev, status.st_ino};
}

std::optional<FoundFile> FindByNumber(const std::string& family_path, const FileNumber& number) {
  if (NumberOf(family_path) == number) return FoundFile{family_path, 0};
  for (int32_t age = 1; age <= kMostAge; ++age) {
    const std::string path = fmt::format("{}.{}", family_path, age);
    const auto found = NumberOf(path);
    if (found == number) return FoundFile{path, age};
    if (!found) break;
  }
  return std::nullopt;
}

Result<std::vector<LogFamily>> FindLogs(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const std::vector<ingest::InputFile> files, ingest::FindInputFiles(paths, IsLogName));
  struct Aged {
    int32_t age;
    LogFile file;
  };
  std::map<std::string, std::vector<Aged>, decltype(&ingest::NaturalLess)> families(&ingest::NaturalLess);
  for (const ingest::InputFile& file : files) {
    bool is_there = false;
    const struct stat status = StatOf(file.path, &is_there);
    if (!is_there) continue;  // Rotated away meanwhile.
    const fs::path path(file.path);
    const RotatedName name = ReadRotatedName(std::string_view(file.path));
    families[std::string(name.stem)].push_back(
        {name.age,
         {.path = file.path,
          .number = {status.st_dev, status.st_ino},
          .modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec}});
  }
  std::vector<LogFamily> found;
  for (auto& [path, aged] : families) {
    // The oldest first; of one that is being compressed the plain one.
    std::sort(aged.begin(), aged.end(), [](const Aged& a, const Aged& b) {
      return a.age != b.age ? a.age > b.age : a.file.path.size() < b.file.path.size();
    });
    LogFamily family{.path = path, .files = {}, .rank = RankOfPath(path)};
    for (size_t i = 0; i < aged.size(); ++i) {
      if (i == 0 || aged[i].age != aged[i - 1].age) family.files.push_back(std::move(aged[i].file));
    }
    found.push_back(std::move(family));
  }
  if (found.empty()) {
    return Error{.code = ErrorCode::kNotFound,
                 .message =
                     "no log is here; 'lockstep run --logs DIR -- CMD' writes some, and *.log, *.jsonl, *.out, "
                     "*.err and *.txt are read",
                 .file = paths.empty() ? "" : paths.front()};
  }
  return found;
}

}  // namespace lockstep::logs
