#include "analysis/profile_history/history_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/bytes_below.h"
#include "base/calendar.h"

namespace lockstep::profile_history {
namespace {

namespace fs = std::filesystem;

// A year of captures, one each five minutes: what is older is not read.
constexpr int64_t kMostReadBytes = int64_t{256} << 20;
constexpr const char* kTraces = "traces";
constexpr const char* kReport = "report.html";
constexpr const char* kComparison = "comparison.html";

Error SystemError(const std::string& path, const char* what) {
  return Error{errno == EACCES || errno == EPERM || errno == EROFS ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               fmt::format("{}: {}", what, std::strerror(errno)), path};
}

bool IsCaptureName(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789TZ-") == std::string::npos;
}

}  // namespace

Result<HistoryStore> HistoryStore::Open(const std::string& folder) {
  HistoryStore store;
  store.folder_ = folder;
  std::error_code error;
  fs::create_directories(fs::path(folder) / "captures", error);
  if (error) {
    return Error{error == std::errc::permission_denied ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
                 fmt::format("cannot be made: {}; name another with --profiles", error.message()), folder};
  }
  const std::string lock = folder + "/lock";
  store.lock_ = UniqueFd(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!store.lock_.valid()) return SystemError(lock, "cannot be opened");
  if (::flock(store.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kFailedPrecondition,
                 "another lockstep watch keeps its captures here: end it, or name another folder with --profiles",
                 folder};
  }
  const std::string path = folder + "/profile.jsonl";
  store.file_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!store.file_.valid()) return SystemError(path, "cannot be opened");
  RETURN_IF_ERROR(store.ReadPast());
  return store;
}

Status HistoryStore::ReadPast() {
  struct stat facts = {};
  if (::fstat(file_.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return Error{ErrorCode::kIo, "is not a file", folder_ + "/profile.jsonl"};
  }
  int64_t at = std::max<int64_t>(facts.st_size - kMostReadBytes, 0);
  std::string line;
  bool is_whole = at == 0;  // Else it begins inside a line.
  bool is_long = false;
  const auto take = [&] {
    if (is_whole && !line.empty()) {
      Result<CaptureRecord> record = is_long ? Error{ErrorCode::kLimitExceeded, ""} : ReadRecord(line);
      if (record) past_.push_back(std::move(*record));
      if (!record) ++skipped_line_count_;
    }
    line.clear();
    is_whole = true;
    is_long = false;
  };
  std::vector<char> block(size_t{1} << 16);
  for (;;) {
    const ssize_t got = ::pread(file_.get(), block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(folder_ + "/profile.jsonl", "cannot be read");
    if (got == 0) break;
    at += got;
    for (ssize_t i = 0; i < got; ++i) {
      if (block[static_cast<size_t>(i)] == '\n') {
        take();
      } else if (line.size() <= kMostLineBytes) {
        line.push_back(block[static_cast<size_t>(i)]);
      } else {
        is_long = true;
      }
    }
  }
  ends_inside_line_ = !line.empty();
  take();
  return {};
}

Result<std::string> HistoryStore::Begin(int64_t unix_ns) {
  const std::string base = UtcName(unix_ns);
  for (int i = 1; i <= 1000; ++i) {
    std::string name = i == 1 ? base : fmt::format("{}-{}", base, i);
    const std::string folder = folder_ + "/captures/" + name;
    if (::mkdir(folder.c_str(), 0700) == 0) {
      if (::mkdir((folder + "/" + kTraces).c_str(), 0700) != 0) return SystemError(folder, "cannot be made");
      return name;
    }
    if (errno != EEXIST) return SystemError(folder, "cannot be made");
  }
  return Error{ErrorCode::kIo, "a thousand captures of this second are there", folder_};
}

std::string HistoryStore::TraceFolder(const std::string& capture) const {
  return fmt::format("{}/captures/{}/{}", folder_, capture, kTraces);
}
std::string HistoryStore::ReportFile(const std::string& capture) const {
  return fmt::format("{}/captures/{}/{}", folder_, capture, kReport);
}
std::string HistoryStore::ComparisonFile(const std::string& capture) const {
  return fmt::format("{}/captures/{}/{}", folder_, capture, kComparison);
}

bool HistoryStore::HasTraces(const std::string& capture) const {
  std::error_code error;
  return IsCaptureName(capture) && fs::is_directory(fs::symlink_status(TraceFolder(capture), error)) &&
         !fs::is_empty(TraceFolder(capture), error) && !error;
}

Status HistoryStore::Append(const CaptureRecord& record) {
  std::string line = WriteRecord(record) + '\n';
  // What was left of a line that was cut off stays a line of its own, which is skipped.
  if (ends_inside_line_) line.insert(line.begin(), '\n');
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(file_.get(), line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      ends_inside_line_ = ends_inside_line_ || written > 0;
      return SystemError(folder_ + "/profile.jsonl", "cannot be written");
    }
    written += static_cast<size_t>(count);
  }
  ends_inside_line_ = false;
  if (::fsync(file_.get()) != 0) return SystemError(folder_ + "/profile.jsonl", "cannot be written");
  return {};
}

std::vector<std::string> HistoryStore::Captures() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(folder_ + "/captures", error), end; !error && each != end; each.increment(error)) {
    std::error_code ignored;
    const std::string name = each->path().filename().string();
    // Other files in it do not belong to this program and are not removed.
    if (IsCaptureName(name) && fs::is_directory(each->symlink_status(ignored))) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const auto key = [](const std::string& name) { return std::pair(name.substr(0, 16), name.size()); };
    return key(a) != key(b) ? key(a) < key(b) : a < b;
  });
  return names;
}

KeptBytes HistoryStore::KeepWithin(uint64_t budget_bytes) {
  KeptBytes kept;
  struct Capture {
    std::string name;
    uint64_t traces = 0;
    uint64_t reports = 0;
  };
  std::vector<Capture> captures;
  for (std::string& name : Captures()) {
    Capture capture{.name = std::move(name)};
    capture.traces = BytesBelow(TraceFolder(capture.name));
    capture.reports = BytesBelow(ReportFile(capture.name)) + BytesBelow(ComparisonFile(capture.name));
    kept.traces += capture.traces;
    kept.reports += capture.reports;
    captures.push_back(std::move(capture));
  }
  struct stat facts = {};
  if (::fstat(file_.get(), &facts) == 0) kept.history = static_cast<uint64_t>(facts.st_size);
  std::error_code ignored;
  for (const Capture& capture : captures) {
    if (kept.total() <= budget_bytes) break;
    if (capture.traces == 0) continue;
    fs::remove_all(TraceFolder(capture.name), ignored);
    kept.traces -= capture.traces - BytesBelow(TraceFolder(capture.name));
  }
  for (const Capture& capture : captures) {
    if (kept.total() <= budget_bytes) break;
    if (capture.reports == 0) continue;
    fs::remove(ReportFile(capture.name), ignored);
    fs::remove(ComparisonFile(capture.name), ignored);
    kept.reports -= capture.reports - BytesBelow(ReportFile(capture.name)) - BytesBelow(ComparisonFile(capture.name));
  }
  for (const Capture& capture : captures) {
    // Only where nothing is left in them.
    fs::remove(TraceFolder(capture.name), ignored);
    fs::remove(fs::path(folder_) / "captures" / capture.name, ignored);
  }
  return kept;
}

}  // namespace lockstep::profile_history
