#include "ingest/bytes/trace_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include "base/timespec.h"
#include "ingest/bytes/archive_reader.h"
#include "ingest/bytes/file_names.h"
#include "ingest/bytes/folder_entries.h"
#include "ingest/bytes/natural_order.h"

namespace lockstep::ingest {
namespace {

// Deeper than any real layout; a network file system may claim any depth.
constexpr int kMaxDepth = 64;

FileIdentity IdentityOf(const struct stat& status) {
  return {.modified_ns = Nanoseconds(status.st_mtim), .inode = status.st_ino};
}

std::string_view WithoutCompression(std::string_view path) {
  for (const std::string_view compression : {".gz", ".zst", ".xz"}) {
    if (path.ends_with(compression)) return path.substr(0, path.size() - compression.size());
  }
  return path;
}

bool MayBeTable(std::string_view path, NameKind kind) {
  path = WithoutCompression(path);
  return kind == NameKind::kNcuReport || path.ends_with(".csv") || path.ends_with(".tsv");
}

class Finder {
 public:
  Finder(const ByteLimits& limits, model::Ledger* ledger, OtherFiles* others)
      : limits_(limits), ledger_(ledger), others_(others) {}

  Status TakeNamed(const std::string& path) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) {
        return Error{.code = ErrorCode::kNotFound, .message = "no such file or folder; check the path", .file = path};
      }
      Refuse("unreadable_file", path, std::generic_category().message(errno), "make it readable");
    } else if (S_ISDIR(status.st_mode)) {
      WalkFolder(path, status, 0);
    } else if (!S_ISREG(status.st_mode)) {
      Refuse("unreadable_file", path, "is not a regular file (a pipe, socket or device)", "write it to a file first");
    } else {
      if (others_ != nullptr && MayBeTable(path, KindOfName(path))) others_->tables.push_back({path, true});
      TakeFile(path, status, KindOfName(path) == NameKind::kArchive ? NameKind::kArchive : NameKind::kTrace, true);
    }
    return {};
  }

  std::vector<TraceFile> TakeFound() { return std::move(found_); }

 private:
  using FileId = std::pair<dev_t, ino_t>;

  void WalkFolder(const std::string& path, const struct stat& status, int depth) {
    // A folder is entered once, however many links lead to it: no loops, no doubles.
    if (!folders_.insert({status.st_dev, status.st_ino}).second) return;
    if (depth == kMaxDepth) {
      Refuse("unreadable_folder", path, fmt::format("is more than {} folders deep", kMaxDepth), "name it itself");
      return;
    }
    const Result<std::vector<FolderEntry>> entries = EntriesOf(path);
    if (!entries) return Refuse("unreadable_folder", path, entries.error().message, "make it readable");
    NoteFolderOfColumns(path);
    for (const auto& [name, child, child_status, error] : *entries) {
      if (error != 0) {
        if (KindOfName(name) != NameKind::kOther) {
          Refuse("unreadable_file", child, std::generic_category().message(error), "make it readable, or remove it");
        }
      } else if (S_ISDIR(child_status.st_mode)) {
        WalkFolder(child, child_status, depth + 1);
      } else if (S_ISREG(child_status.st_mode)) {
        TakeFile(child, child_status, KindOfName(name), false);
      }
    }
  }

  void TakeFile(const std::string& path, const struct stat& status, NameKind kind, bool named) {
    if (others_ != nullptr && !named && MayBeTable(path, kind)) others_->tables.push_back({path, false});
    const bool is_lines =
        others_ != nullptr && kind == NameKind::kOther && WithoutCompression(path).ends_with(".jsonl");
    if (kind == NameKind::kOther && !is_lines) return;
    if (kind == NameKind::kNcuReport) {
      Note("ncu_report", model::Severity::kWarning, path,
           "an Nsight Compute report, which is not a trace, was left out",
           "write its kernels as a table: ncu --import FILE --csv --page raw > FILE.csv");
      return;
    }
    if (kind == NameKind::kNsightRaw) {
      if (HasSibling(path, {".nsys-rep"})) return;
      Refuse(
          "nsight_raw", path, "this recording of Nsight Systems was never made into a report: its importer was missing",
          "run QdstrmImporter of a full Nsight Systems installation on it, then nsys export -t sqlite on the report");
      return;
    }
    // Its export says the same, and can be read without nsys.
    if (kind == NameKind::kNsightReport && HasSibling(path, {".sqlite", ".sqlite.gz", ".sqlite.zst", ".sqlite.xz"}))
      return;
    if (kind == NameKind::kUnfinishedTrace) {
      Note("unfinished_trace", model::Severity::kWarning, path,
           "a trace that its profiler had not finished writing was left out",
           "if the process has ended, the trace is lost; else wait and run again");
      return;
    }
    if (!files_.insert({status.st_dev, status.st_ino}).second) {
      Note("same_file_twice", model::Severity::kWarning, path, "was already read by another path", "name it once");
      return;
    }
    if (kind == NameKind::kArchive) {
      ListArchive(path, IdentityOf(status));
      return;
    }
    TraceFile file;
    file.identity = IdentityOf(status);
    file.path = path;
    file.size_bytes = static_cast<uint64_t>(status.st_size);
    file.facts = ReadNameFacts(path);
    file.named_by_user = named;
    (is_lines ? others_->lines : found_).push_back(std::move(file));
  }

  /// "report_pqtdir": Nsight Systems' export as a file of columns for each table.
  void NoteFolderOfColumns(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    for (const char* ending : {"_pqtdir", "_arwdir"}) {
      if (!path.ends_with(ending)) continue;
      const std::string stem = path.substr(0, path.size() - std::string_view(ending).size());
      if (StemHas(stem, {".sqlite", ".sqlite.gz", ".sqlite.zst", ".sqlite.xz", ".nsys-rep", ".json", ".json.gz"}))
        return;
      Refuse("nsight_columns", path, "an Nsight Systems export as Parquet or Arrow was left out, which is not read",
             "export the report as SQLite, which holds the same: nsys export -t sqlite");
    }
  }

  /// Whether a file lies beside `path` whose name ends otherwise.
  static bool HasSibling(const std::string& path, std::initializer_list<const char*> endings) {
    return StemHas(path.substr(0, path.rfind('.')), endings);
  }

  static bool StemHas(const std::string& stem, std::initializer_list<const char*> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](const char* ending) {
      struct stat status = {};
      return ::stat((stem + ending).c_str(), &status) == 0 && S_ISREG(status.st_mode);
    });
  }

  void ListArchive(const std::string& path, const FileIdentity& identity) {
    auto archive = ArchiveReader::Open(path, limits_);
    if (!archive) {
      Refuse("unreadable_archive", path, archive.error().message, "");
      return;
    }
    while (true) {
      auto next = (*archive)->Next();
      if (!next) {
        // What was listed before the damage is still read.
        Refuse("unreadable_archive", path, next.error().message, "copy it again, or unpack what can be unpacked");
        return;
      }
      if (!*next) return;
      TakeMember(path, identity, **archive, **next);
    }
  }

  void TakeMember(const std::string& path, const FileIdentity& identity, const ArchiveReader& archive,
                  const ArchiveMember& member) {
    TraceFile file;
    file.identity = identity;
    file.path = path;
    file.member = member.name;
    file.size_bytes = member.size_bytes;
    file.facts = ReadNameFacts(member.name);
    file.in_archive = true;
    file.in_order_only = !archive.has_random_access();
    file.member_idx = member.idx;
    file.member_position = archive.has_positions() ? member.position : 0;
    switch (KindOfName(member.name)) {
      case NameKind::kTrace:
        if (member.encrypted) {
          Refuse("unreadable_file", file.DisplayName(), "is encrypted", "decrypt the archive first");
        } else {
          found_.push_back(std::move(file));
        }
        break;
      case NameKind::kArchive:
        Note("nested_archive", model::Severity::kWarning, file.DisplayName(),
             "an archive inside an archive was left out", "unpack it first");
        break;
      case NameKind::kNsightReport:
        Note("nested_report", model::Severity::kWarning, file.DisplayName(),
             "an Nsight Systems report inside an archive was left out", "unpack it, then nsys export -t sqlite on it");
        break;
      case NameKind::kNsightRaw:
      case NameKind::kNcuReport:
      case NameKind::kUnfinishedTrace:
      case NameKind::kOther: break;
    }
  }

  void Note(const char* code, model::Severity severity, const std::string& source, std::string message,
            std::string advice) {
    model::LedgerEntry entry;
    entry.code = code;
    entry.severity = severity;
    entry.source = PrintableName(source);
    entry.message = std::move(message);
    entry.advice = std::move(advice);
    ledger_->Add(std::move(entry));
  }

  void Refuse(const char* code, const std::string& source, const std::string& message, const char* advice) {
    Note(code, model::Severity::kError, source, message, advice);
  }

  const ByteLimits& limits_;
  model::Ledger* ledger_;
  OtherFiles* others_;  // Null: not asked for.
  std::set<FileId> folders_;
  std::set<FileId> files_;
  std::vector<TraceFile> found_;
};

std::string Joined(const std::vector<std::string>& paths) {
  std::string joined;
  for (const std::string& path : paths) joined += (joined.empty() ? "" : ", ") + PrintableName(path);
  return joined;
}

}  // namespace

bool InOrderOfName(const TraceFile& a, const TraceFile& b) {
  return a.path != b.path ? NaturalLess(a.path, b.path) : NaturalLess(a.member, b.member);
}

Error NoTraceFound(const std::vector<std::string>& paths, const model::Ledger& ledger) {
  std::string message = fmt::format(
      "no trace found in {}: looked for *.json and *.pftrace, *.sqlite, *.nsys-rep and *.spans, plain, .gz, .zst and "
      ".xz",
      Joined(paths));
  for (const model::LedgerEntry& entry : ledger.entries()) {
    if (entry.severity != model::Severity::kInfo) message += fmt::format("; {}: {}", entry.source, entry.message);
  }
  return Error{.code = ErrorCode::kNotFound, .message = std::move(message)};
}

Result<std::vector<TraceFile>> FindTraceFiles(const std::vector<std::string>& paths, const ByteLimits& limits,
                                              model::Ledger* ledger, OtherFiles* others) {
  Finder finder(limits, ledger, others);
  for (const std::string& path : paths) RETURN_IF_ERROR(finder.TakeNamed(path));
  std::vector<TraceFile> found = finder.TakeFound();
  const bool has_others = others != nullptr && !(others->tables.empty() && others->lines.empty());
  if (found.empty() && !has_others) return NoTraceFound(paths, *ledger);
  std::stable_sort(found.begin(), found.end(), InOrderOfName);
  return found;
}

}  // namespace lockstep::ingest
