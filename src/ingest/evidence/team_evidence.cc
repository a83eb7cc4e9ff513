#include "ingest/evidence/team_evidence.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "ingest/evidence/evidence_part.h"
#include "ingest/evidence/find_files.h"
#include "ingest/evidence/read_files.h"

namespace lockstep::ingest {
namespace {

using evidence::EvidenceProblem;

constexpr const char* kFindQuestion = "evidence.find";
constexpr const char* kReadQuestion = "evidence.read";

struct FindRequest {
  std::vector<std::string> paths;
  uint64_t root_digest = 0;
};

/// Nothing but `same` where the process finds what the root found.
struct FindAnswer {
  bool same = false;
  std::vector<bool> has_path;  ///< Parallel to the paths.
  std::vector<EvidenceFile> files;
  std::vector<EvidenceProblem> problems;
};

struct ReadRequest {
  std::vector<std::vector<uint32_t>> files_by_process;  ///< Indices into the process's own list.
  unsigned thread_count = 0;
};

using ReadAnswer = std::vector<std::vector<EvidencePart>>;  // Parallel to the files asked for.

bool Exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

FindAnswer Find(const std::vector<std::string>& paths) {
  FindAnswer answer;
  std::vector<std::string> own;
  std::vector<size_t> roots;
  for (size_t i = 0; i < paths.size(); ++i) {
    answer.has_path.push_back(Exists(paths[i]));
    if (!answer.has_path.back()) continue;
    own.push_back(paths[i]);
    roots.push_back(i);
  }
  auto found = FindEvidenceFiles(own, &answer.problems);
  if (found) answer.files = std::move(*found);
  for (EvidenceFile& file : answer.files) file.root = roots[file.root];
  return answer;
}

uint64_t DigestOf(const FindAnswer& answer) { return std::hash<std::string>{}(ToBytes(answer)); }

/// A file and where it can be read: (process, index in its list).
struct SeenFile {
  EvidenceFile file;
  std::vector<std::pair<uint32_t, uint32_t>> seen_by;
};

std::vector<SeenFile> Unite(const std::vector<EvidenceFile>& root, const std::vector<FindAnswer>& found) {
  using Key = std::tuple<size_t, std::string, uint64_t, int64_t, uint64_t>;
  std::vector<SeenFile> files;
  std::map<Key, size_t> known;
  bool all_same = true;
  for (uint32_t process = 0; process < found.size(); ++process) {
    all_same = all_same && found[process].same;
    const std::vector<EvidenceFile>& own = found[process].same ? root : found[process].files;
    for (uint32_t i = 0; i < own.size(); ++i) {
      const EvidenceFile& file = own[i];
      const auto [place, is_new] =
          known.emplace(Key(file.root, file.path, file.size_bytes, file.modified_ns, file.inode), files.size());
      if (is_new) files.push_back({file, {}});
      files[place->second].seen_by.emplace_back(process, i);
    }
  }
  if (!all_same) {
    std::stable_sort(files.begin(), files.end(),
                     [](const SeenFile& a, const SeenFile& b) { return InOrderOfWalk(a.file, b.file); });
  }
  return files;
}

/// The largest first, each to the least loaded of those that see it. Out: by file, a pair of `seen_by`.
std::vector<std::pair<uint32_t, uint32_t>> ChooseReaders(const std::vector<SeenFile>& files, size_t process_count) {
  std::vector<size_t> order(files.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return files[a].file.size_bytes > files[b].file.size_bytes; });
  std::vector<uint64_t> load(process_count, 0);
  std::vector<std::pair<uint32_t, uint32_t>> readers(files.size());
  for (const size_t i : order) {
    readers[i] = *std::min_element(files[i].seen_by.begin(), files[i].seen_by.end(),
                                   [&](const auto& a, const auto& b) { return load[a.first] < load[b.first]; });
    load[readers[i].first] += files[i].file.size_bytes + 1;
  }
  return readers;
}

}  // namespace

/// One process's part.
class TeamEvidence::Share {
 public:
  Share(size_t process, unsigned default_thread_count)
      : process_(process), default_thread_count_(default_thread_count) {}

  const FindAnswer& FindOwn(const std::vector<std::string>& paths) { return found_ = Find(paths); }

  FindAnswer AnswerFind(const FindRequest& request) {
    if (process_ != 0) FindOwn(request.paths);  // The root has looked, so that it could ask.
    if (DigestOf(found_) == request.root_digest) return {.same = true, .has_path = {}, .files = {}, .problems = {}};
    return found_;
  }

  ReadAnswer AnswerRead(const ReadRequest& request) {
    std::vector<EvidenceFile> files;
    for (const uint32_t index : request.files_by_process[process_]) files.push_back(found_.files.at(index));
    EvidenceOptions options;
    options.thread_count = request.thread_count != 0 ? request.thread_count : default_thread_count_;
    options.on_progress = on_progress;
    return ReadEvidenceFiles(files, options);
  }

  std::function<void(size_t, size_t)> on_progress;  ///< Root only, while it reads.

 private:
  const size_t process_;
  const unsigned default_thread_count_;
  FindAnswer found_;
};

TeamEvidence::TeamEvidence(Team* team, unsigned default_thread_count)
    : team_(*team), share_(std::make_unique<Share>(team->process(), default_thread_count)) {
  Share* share = share_.get();
  team->Handle<FindAnswer, FindRequest>(kFindQuestion,
                                        [share](const FindRequest& request) { return share->AnswerFind(request); });
  team->Handle<ReadAnswer, ReadRequest>(kReadQuestion,
                                        [share](const ReadRequest& request) { return share->AnswerRead(request); });
}

TeamEvidence::~TeamEvidence() = default;

Result<evidence::JobEvidence> TeamEvidence::Read(const std::vector<std::string>& paths,
                                                 const EvidenceOptions& options) {
  const FindAnswer own = share_->FindOwn(paths);
  std::vector<FindAnswer> found = team_.Ask<FindAnswer>(kFindQuestion, FindRequest{paths, DigestOf(own)});
  std::vector<bool> has_path = own.has_path;
  std::vector<EvidenceProblem> problems = own.problems;
  for (const FindAnswer& answer : found) {
    for (size_t i = 0; i < answer.has_path.size(); ++i) has_path[i] = has_path[i] || answer.has_path[i];
    for (const EvidenceProblem& problem : answer.problems) {
      const auto same = [&](const EvidenceProblem& known) { return ToBytes(known) == ToBytes(problem); };
      if (std::none_of(problems.begin(), problems.end(), same)) problems.push_back(problem);
    }
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (has_path[i]) continue;
    std::vector<EvidenceProblem> unused;
    Result<std::vector<EvidenceFile>> missing = FindEvidenceFiles({paths[i]}, &unused);
    if (!missing) return std::move(missing).error();
  }
  const std::vector<SeenFile> files = Unite(own.files, found);
  ReadRequest read;
  read.thread_count = options.thread_count;
  read.files_by_process.resize(team_.process_count());
  std::vector<std::pair<uint32_t, size_t>> read_as;  // By file: the process, and which of its files.
  for (const auto& [process, index] : ChooseReaders(files, team_.process_count())) {
    read_as.emplace_back(process, read.files_by_process[process].size());
    read.files_by_process[process].push_back(index);
  }
  share_->on_progress = options.on_progress;
  std::vector<ReadAnswer> answers = team_.Ask<ReadAnswer>(kReadQuestion, read);
  share_->on_progress = {};
  std::vector<std::vector<EvidencePart>> by_file;
  for (const auto& [process, index] : read_as) by_file.push_back(std::move(answers[process].at(index)));
  return FinishEvidence(paths, problems, std::move(by_file));
}

}  // namespace lockstep::ingest
