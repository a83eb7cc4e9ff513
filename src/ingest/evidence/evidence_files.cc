#include "ingest/evidence/evidence_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/timespec.h"
#include "ingest/bytes/archive_reader.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/bytes/file_names.h"
#include "ingest/evidence/evidence_names.h"
#include "ingest/evidence/evidence_part.h"
#include "ingest/evidence/find_files.h"
#include "ingest/evidence/read_files.h"

namespace lockstep::ingest {
namespace {

const ByteLimits kLimits = {};

EvidencePart Failed(const EvidenceFile& file, const Error& error) {
  EvidencePart part;
  part.file = PrintableName(file.path);
  part.path = file.path;
  part.root = file.root;
  part.problems.push_back({.file = part.file, .rank = {}, .message = error.message});
  return part;
}

/// The present member of an archive as a source of its own.
class MemberSource : public ByteSource {
 public:
  MemberSource(ArchiveReader& archive, uint64_t size_bytes) : archive_(archive), size_bytes_(size_bytes) {}
  Result<size_t> Read(std::span<char> window) override {
    auto got = archive_.Read(window);
    if (got) consumed_ += *got;
    return got;
  }
  uint64_t consumed_bytes() const override { return consumed_; }
  uint64_t total_bytes() const override { return size_bytes_; }

 private:
  ArchiveReader& archive_;
  uint64_t size_bytes_;
  uint64_t consumed_ = 0;
};

bool IsCompressedName(std::string_view name) { return name.ends_with(".gz") || name.ends_with(".zst"); }

/// Compressed members are taken whole, since decoding needs a source that it may own.
Result<std::string> WholeMember(ArchiveReader& archive) {
  constexpr size_t kLimit = size_t{256} << 20;
  std::string bytes;
  for (size_t got = 1; got > 0;) {
    const size_t before = bytes.size();
    if (before >= kLimit) return Error{.code = ErrorCode::kLimitExceeded, .message = "is longer than 256 MiB"};
    bytes.resize(before + (size_t{1} << 20));
    ASSIGN_OR_RETURN(got, archive.Read(std::span(bytes).subspan(before)));
    bytes.resize(before + got);
  }
  return bytes;
}

std::vector<EvidencePart> ReadMember(ArchiveReader& archive, const ArchiveMember& member, const EvidenceFile& file,
                                     std::string& scratch) {
  const std::string path = file.path + "!/" + member.name;
  if (member.encrypted) {
    return {Failed(file, {.code = ErrorCode::kUnsupported, .message = "is encrypted; decrypt the archive first"})};
  }
  if (IsCompressedName(member.name)) {
    auto bytes = WholeMember(archive);
    auto source = bytes ? OpenMemory(std::move(*bytes), kLimits) : Result<std::unique_ptr<ByteSource>>(bytes.error());
    if (!source) return {Failed(file, source.error())};
    return ReadEvidenceParts(**source, path, false, scratch);
  }
  MemberSource source(archive, member.size_bytes);
  return ReadEvidenceParts(source, path, false, scratch);
}

std::vector<EvidencePart> ReadArchive(const EvidenceFile& file, std::string& scratch) {
  std::vector<EvidencePart> parts;
  auto archive = ArchiveReader::Open(file.path, kLimits);
  if (!archive) return {Failed(file, archive.error())};
  while (true) {
    auto next = (*archive)->Next();
    if (!next) {
      parts.push_back(Failed(file, next.error()));
      return parts;
    }
    if (!*next) return parts;
    if (IsNeverEvidence((*next)->name)) continue;
    for (EvidencePart& part : ReadMember(**archive, **next, file, scratch)) {
      part.root = file.root;
      if (part.IsEvidence()) parts.push_back(std::move(part));
    }
  }
}

std::optional<int64_t> ModifiedUnixNs(const std::string& path) {
  struct stat about = {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return Nanoseconds(about.st_mtim);
}

std::vector<EvidencePart> ReadFile(const EvidenceFile& file, std::string& scratch) {
  if (file.is_archive) return ReadArchive(file, scratch);
  auto source = OpenFile(file.path, kLimits);
  if (!source) return {Failed(file, source.error())};
  std::vector<EvidencePart> parts = ReadEvidenceParts(**source, file.path, file.named_by_user, scratch);
  for (EvidencePart& part : parts) {
    part.root = file.root;
    if (!part.is_written_in_place) part.modified_unix_ns = ModifiedUnixNs(file.path);
  }
  std::erase_if(parts, [](const EvidencePart& part) { return !part.IsEvidence(); });
  return parts;
}

}  // namespace

/// Each file by whichever thread is free.
std::vector<std::vector<EvidencePart>> ReadEvidenceFiles(const std::vector<EvidenceFile>& files,
                                                         const EvidenceOptions& options) {
  std::vector<std::vector<EvidencePart>> results(files.size());
  std::atomic<size_t> next = 0;
  Mutex progress_mutex;
  size_t done = 0;
  const auto work = [&] {
    std::string scratch;
    for (size_t i = next++; i < files.size(); i = next++) {
      results[i] = ReadFile(files[i], scratch);
      const MutexLock lock(progress_mutex);
      ++done;
      if (options.on_progress) options.on_progress(done, files.size());
    }
  };
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const size_t count = std::min<size_t>(options.thread_count > 0 ? options.thread_count : cores, files.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
    work();
  }
  return results;
}

Result<evidence::JobEvidence> ReadEvidence(const std::vector<std::string>& paths, const EvidenceOptions& options) {
  std::vector<evidence::EvidenceProblem> problems;
  ASSIGN_OR_RETURN(const std::vector<EvidenceFile> files, FindEvidenceFiles(paths, &problems));
  return FinishEvidence(paths, problems, ReadEvidenceFiles(files, options));
}

Result<evidence::JobEvidence> FinishEvidence(const std::vector<std::string>& paths,
                                             const std::vector<evidence::EvidenceProblem>& found_problems,
                                             std::vector<std::vector<EvidencePart>> by_file) {
  std::vector<evidence::EvidenceProblem> problems = found_problems;
  std::vector<EvidencePart> parts;
  for (std::vector<EvidencePart>& of_file : by_file) {
    for (EvidencePart& part : of_file) parts.push_back(std::move(part));
  }
  const bool any = std::any_of(parts.begin(), parts.end(), [](const EvidencePart& part) {
    return part.record || !part.stacks.empty() || part.log || part.ras || !part.nccl.empty() || part.process ||
           part.header;
  });
  if (!any) {
    std::string message =
        "it contains no evidence; evidence is: flight-recorder dumps (nccl_trace_rank_3), stacks (faulthandler, "
        "py-spy, eu-stack, gdb), logs of ranks, NCCL logs, answers of RAS, folders that lockstep hang wrote";
    for (const EvidencePart& part : parts) {
      problems.insert(problems.end(), part.problems.begin(), part.problems.end());
    }
    for (size_t i = 0; i < problems.size() && i < 5; ++i) {
      message += fmt::format("; {}: {}", problems[i].file, problems[i].message);
    }
    return Error{.code = ErrorCode::kNotFound,
                 .message = std::move(message),
                 .file = paths.empty() ? std::string() : PrintableName(paths.front())};
  }
  ASSIGN_OR_RETURN(evidence::JobEvidence job, MergeEvidence(std::move(parts)));
  job.problems.insert(job.problems.begin(), problems.begin(), problems.end());
  return job;
}

}  // namespace lockstep::ingest
