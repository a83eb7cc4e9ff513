#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::ingest {

struct FolderEntry {
  std::string name;
  std::string path;         ///< The folder's, a slash, and the name.
  struct stat status = {};  ///< Of what a link leads to.
  int error = 0;            ///< errno where there is no status.
};

/// What is in a folder, in natural order, so that the same of two links to one file is taken each time; without what
/// begins with a dot. Errors: kIo, with the system's words for it.
Result<std::vector<FolderEntry>> EntriesOf(const std::string& path);

}  // namespace lockstep::ingest
