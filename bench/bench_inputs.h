#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::bench {

/// The same eight ranks as plain and as gzip files.
struct BenchInputs {
  std::string plain_folder;
  std::string gzip_folder;
  std::vector<std::string> plain_files;
  std::vector<std::string> gzip_files;
  uint64_t json_bytes = 0;      ///< Of all ranks.
  uint64_t event_count = 0;     ///< Elements of traceEvents, of all ranks.
  uint64_t complete_count = 0;  ///< Of them "X": those that columns keep.
};

/// Makes the inputs below `folder` unless they are there: 8 ranks, 200 layers, about `megabytes` of JSON each, one
/// straggler. Errors: throws std::runtime_error when they cannot be written.
BenchInputs PrepareInputs(const std::string& folder, double megabytes);

std::string ReadWholeFile(const std::string& path);

}  // namespace lockstep::bench
