#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/bytes/input_files.h"
#include "model/ledger.h"

namespace lockstep::ingest {

class ArchiveReader;

/// What a file's name says of it. Every naming habit is listed in docs/formats/file-names.md.
struct NameFacts {
  std::optional<int32_t> rank = {};
  std::optional<int32_t> world_size = {};
  std::optional<std::string> host = {};
  std::optional<int64_t> process_id = {};
};

/// Reads a file's base name: "rank3...", "rank-3...", "rank_3", "rank{r}_iter{a}_{b}.json", "worker3...",
/// "{host}_{pid}.{ts}.pt.trace.json.gz", "{trace}-{rank}-of-{world}.json". Never fails: what is not said is absent.
NameFacts ReadNameFacts(std::string_view path);

/// Tells files of different nodes apart, and recognises a file that several nodes share. It does not use the file
/// system's device number, which differs between nodes for one network file system.
struct FileIdentity {
  int64_t modified_ns = 0;
  uint64_t inode = 0;
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};

/// One candidate trace.
struct TraceFile {
  std::string path;         ///< On disk.
  std::string member = {};  ///< Name inside an archive, or empty.
  uint64_t size_bytes = 0;  ///< Of the (compressed) file or member; for progress.
  NameFacts facts = {};
  bool named_by_user = false;  ///< Given on the command line itself, not found in a folder or archive.

  bool in_archive = false;
  bool in_order_only =
      false;                ///< Inside a compressed tar: reading the members in order with one TraceOpener is linear.
  uint32_t member_idx = 0;  ///< Where in the archive: the count of members before it, ...
  uint64_t member_position = 0;  ///< ... and the byte its header begins at, where that can be sought (plain tar).
  FileIdentity identity = {};    ///< Of the file on disk.

  /// For people: control characters and broken UTF-8 are escaped.
  std::string DisplayName() const;
};

/// Files besides traces that a walk finds. Only their bytes show what they are.
struct OtherFiles {
  /// *.csv, *.tsv, reports of ncu: those in folders, which are not traces, and those that were named, which are among
  /// the traces as well.
  std::vector<InputFile> tables;
  std::vector<TraceFile> lines;  ///< *.jsonl in folders.
};

/// Files that may be traces below `paths`, in natural order of name ("rank2" before "rank10"). Folders are read
/// recursively (symbolic links to folders are not followed twice); .tar, .tar.gz, .tar.zst, .tgz and .zip archives are
/// listed by member. Only names that can be a trace are taken from folders and archives (*.json, *.json.gz, *.json.zst,
/// *.pt.trace.*, ...). Errors: kNotFound for a path that does not exist, and when nothing at all was
/// found. Files that cannot be opened get a ledger row and are left out.
/// Where `others` is given, it gets files of other kinds, and finding only those is not an error.
Result<std::vector<TraceFile>> FindTraceFiles(const std::vector<std::string>& paths, const ByteLimits& limits,
                                              model::Ledger* ledger, OtherFiles* others = nullptr);

/// The order of FindTraceFiles.
bool InOrderOfName(const TraceFile& a, const TraceFile& b);

/// The error of FindTraceFiles when it finds nothing; kNotFound.
Error NoTraceFound(const std::vector<std::string>& paths, const model::Ledger& ledger);

/// Opens a file or an archive's member; a member that is itself compressed is decompressed.
/// Errors: those of OpenFile; kNotFound when the archive has changed since it was listed.
Result<std::unique_ptr<ByteSource>> OpenTraceFile(const TraceFile& file, const ByteLimits& limits);

/// Opens files one after another and keeps a compressed archive open between its members, so that members opened in
/// order of member_idx cost one pass over the archive. A source must be gone before the next one is opened. One thread.
class TraceOpener {
 public:
  explicit TraceOpener(const ByteLimits& limits) : limits_(limits) {}
  Result<std::unique_ptr<ByteSource>> Open(const TraceFile& file);

 private:
  ByteLimits limits_;
  std::string archive_path_;
  std::shared_ptr<ArchiveReader> archive_;  // Shared with the source of the present member.
};

}  // namespace lockstep::ingest
