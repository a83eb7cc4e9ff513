#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep::logs {

/// Which file it is, whatever its name is by now, and of one that was compressed since (compressed_log.h) the number
/// that the plain one had. Numbers come back once their files are gone.
using FileNumber = std::pair<uint64_t, uint64_t>;  ///< Device and inode.

struct LogFile {
  std::string path;
  FileNumber number;
  int64_t modified_ns = 0;
};

/// What one process wrote: its log and what that was before it was rotated.
struct LogFamily {
  std::string path;                  ///< The one that is written: without number and compression.
  std::vector<LogFile> files;        ///< The oldest first.
  std::optional<int32_t> rank = {};  ///< As the name or its folder says; a line's head goes first.
};

/// Logs among `paths` and in the folders among them: *.log, *.jsonl, *.out, *.err, *.txt and their like, rotated ones
/// (.1, .2.gz) with those they belong to; named ones whatever they are called. In natural order. Errors: kNotFound (a
/// path is not there, or nothing is a log).
Result<std::vector<LogFamily>> FindLogs(const std::vector<std::string>& paths);

/// The number of a file by that name now; nullopt: there is none.
std::optional<FileNumber> NumberOf(const std::string& path);

/// The file of a family that has the age, as in "x.log.AGE", compressed or not; 0: the one that is written.
std::optional<LogFile> FileOfAge(const std::string& family_path, int32_t age);

/// Under which name a file of a family is by now, and its age; nullopt: under none.
struct FoundFile {
  std::string path;
  int32_t age = 0;
};
/// For an open file: no other file can have its inode number. Otherwise, of the files with that number, the oldest one
/// that is not older than `file` was.
std::optional<FoundFile> FindFile(const std::string& family_path, const LogFile& file, bool is_open);

}  // namespace lockstep::logs
