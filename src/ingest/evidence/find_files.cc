#include "ingest/evidence/find_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/timespec.h"
#include "ingest/bytes/file_names.h"
#include "ingest/bytes/folder_entries.h"
#include "ingest/bytes/natural_order.h"
#include "ingest/evidence/evidence_names.h"

namespace lockstep::ingest {
namespace {

constexpr int kMaxDepth = 64;

class Finder {
 public:
  explicit Finder(std::vector<evidence::EvidenceProblem>* problems) : problems_(problems) {}

  Status TakeNamed(const std::string& path, size_t root) {
    root_ = root;
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) {
        return Error{.code = ErrorCode::kNotFound, .message = "no such file or folder; check the path", .file = path};
      }
      Refuse(path, std::generic_category().message(errno));
    } else if (S_ISDIR(status.st_mode)) {
      WalkFolder(path, status, 0);
    } else if (!S_ISREG(status.st_mode)) {
      Refuse(path, "is not a regular file (a pipe, socket or device); write it to a file first");
    } else {
      TakeFile(path, status, true);
    }
    return {};
  }

  std::vector<EvidenceFile> Take() { return std::move(found_); }

 private:
  using FileId = std::pair<dev_t, ino_t>;

  void WalkFolder(const std::string& path, const struct stat& status, int depth) {
    if (!seen_.insert({status.st_dev, status.st_ino}).second) return;
    if (depth == kMaxDepth) return Refuse(path, "is too many folders deep; name it directly");
    const Result<std::vector<FolderEntry>> entries = EntriesOf(path);
    if (!entries) return Refuse(path, entries.error().message);
    for (const auto& [name, child, child_status, error] : *entries) {
      if (error != 0) {
        if (!IsNeverEvidence(name)) Refuse(child, std::generic_category().message(error));
      } else if (S_ISDIR(child_status.st_mode)) {
        WalkFolder(child, child_status, depth + 1);
      } else if (S_ISREG(child_status.st_mode)) {
        TakeFile(child, child_status, false);
      }
    }
  }

  void TakeFile(const std::string& path, const struct stat& status, bool named) {
    if (!named && IsNeverEvidence(path)) return;
    if (!seen_.insert({status.st_dev, status.st_ino}).second) return;
    found_.push_back({.path = path,
                      .root = root_,
                      .named_by_user = named,
                      .is_archive = KindOfName(path) == NameKind::kArchive,
                      .size_bytes = static_cast<uint64_t>(status.st_size),
                      .modified_ns = Nanoseconds(status.st_mtim),
                      .inode = status.st_ino});
  }

  void Refuse(const std::string& path, std::string message) {
    problems_->push_back({.file = PrintableName(path), .rank = {}, .message = std::move(message)});
  }

  std::vector<evidence::EvidenceProblem>* problems_;
  size_t root_ = 0;
  std::set<FileId> seen_;
  std::vector<EvidenceFile> found_;
};

}  // namespace

bool InOrderOfWalk(const EvidenceFile& a, const EvidenceFile& b) {
  if (a.root != b.root) return a.root < b.root;
  const auto parts = [](const std::string& path) {
    std::vector<std::string> names;
    for (const auto& name : std::filesystem::path(path)) names.push_back(name.string());
    return names;
  };
  const std::vector<std::string> of_a = parts(a.path);
  const std::vector<std::string> of_b = parts(b.path);
  return std::lexicographical_compare(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), NaturalLess);
}

Result<std::vector<EvidenceFile>> FindEvidenceFiles(const std::vector<std::string>& paths,
                                                    std::vector<evidence::EvidenceProblem>* problems) {
  Finder finder(problems);
  for (size_t i = 0; i < paths.size(); ++i) RETURN_IF_ERROR(finder.TakeNamed(paths[i], i));
  return finder.Take();
}

}  // namespace lockstep::ingest
