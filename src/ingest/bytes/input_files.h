#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::ingest {

struct InputFile {
  std::string path;
  bool named = false;  ///< By the caller, not found in a folder.
};

/// The files that were named, and those below the folders that were named for which `wanted` holds, of each folder in
/// natural order; at most a million of each. Folders that may not be entered are passed over.
/// Errors: kNotFound (a path is not there).
Result<std::vector<InputFile>> FindInputFiles(const std::vector<std::string>& paths,
                                              const std::function<bool(const std::filesystem::path&)>& wanted);

}  // namespace lockstep::ingest
