#include "ingest/logs/log_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/text_scan.h"
#include "base/timespec.h"
#include "base/unique_fd.h"
#include "ingest/bytes/file_names.h"
#include "ingest/bytes/input_files.h"
#include "ingest/bytes/natural_order.h"
#include "ingest/bytes/trace_files.h"
#include "model/log_line/compressed_log.h"
#include "model/log_line/log_name.h"

namespace lockstep::logs {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kMostAge = 999;

bool MayBeLog(const fs::path& path) {
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

std::optional<LogFile> Look(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  LogFile file{.path = path, .number = {status.st_dev, status.st_ino}, .modified_ns = Nanoseconds(status.st_mtim)};
  if (!path.ends_with(".gz")) return file;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::array<char, kCompressedHeadBytes> head = {};
  const ssize_t count = fd.valid() ? ::read(fd.get(), head.data(), head.size()) : 0;
  const auto plain = CompressedFrom({head.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))});
  if (plain) file.number.second = *plain;
  return file;
}

}  // namespace

std::optional<FileNumber> NumberOf(const std::string& path) {
  const auto file = Look(path);
  if (!file) return std::nullopt;
  return file->number;
}

std::optional<LogFile> FileOfAge(const std::string& family_path, int32_t age) {
  const std::string plain = age == 0 ? family_path : fmt::format("{}.{}", family_path, age);
  // While one is being compressed there are both.
  for (const char* ending : {"", ".gz", ".zst", ".xz"}) {
    if (auto file = Look(plain + ending)) return file;
  }
  return std::nullopt;
}

std::optional<FoundFile> FindFile(const std::string& family_path, const LogFile& file, bool is_open) {
  std::optional<FoundFile> found;
  // Files move to the next age while this goes through the ages: never past it, but they leave a gap.
  constexpr int32_t kMostMissing = 2;
  int32_t missing = 0;
  for (int32_t age = 0; age <= kMostAge && missing < kMostMissing; ++age) {
    const auto there = FileOfAge(family_path, age);
    missing = there || age == 0 ? 0 : missing + 1;
    if (!there || there->number != file.number) continue;
    if (is_open) return FoundFile{there->path, age};
    if (there->modified_ns >= file.modified_ns) found = FoundFile{there->path, age};
  }
  return found;
}

Result<std::vector<LogFamily>> FindLogs(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const std::vector<ingest::InputFile> files, ingest::FindInputFiles(paths, MayBeLog));
  struct Aged {
    int32_t age;
    LogFile file;
  };
  std::map<std::string, std::vector<Aged>, decltype(&ingest::NaturalLess)> families(&ingest::NaturalLess);
  for (const ingest::InputFile& file : files) {
    auto there = Look(file.path);
    if (!there) continue;  // Rotated away meanwhile.
    const RotatedName name = ReadRotatedName(std::string_view(file.path));
    families[std::string(name.stem)].push_back({name.age, std::move(*there)});
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
                     "no log found; 'lockstep run --logs DIR -- CMD' writes logs, and *.log, *.jsonl, *.out, *.err and "
                     "*.txt are read",
                 .file = paths.empty() ? "" : paths.front()};
  }
  return found;
}

}  // namespace lockstep::logs
