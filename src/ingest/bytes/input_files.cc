#include "ingest/bytes/input_files.h"

#include <algorithm>
#include <system_error>

#include "ingest/bytes/natural_order.h"

namespace lockstep::ingest {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileCountLimit = 1'000'000;

std::vector<InputFile> FilesBelow(const std::string& folder, const std::function<bool(const fs::path&)>& wanted) {
  std::vector<InputFile> files;
  std::error_code error;
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && walk != fs::recursive_directory_iterator() && files.size() < kFileCountLimit;
       walk.increment(error)) {
    std::error_code ignored;
    if (walk->is_regular_file(ignored) && wanted(walk->path())) files.push_back({walk->path().string(), false});
  }
  std::sort(files.begin(), files.end(),
            [](const InputFile& a, const InputFile& b) { return NaturalLess(a.path, b.path); });
  return files;
}

}  // namespace

Result<std::vector<InputFile>> FindInputFiles(const std::vector<std::string>& paths,
                                              const std::function<bool(const fs::path&)>& wanted) {
  std::vector<InputFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
      return Error{.code = ErrorCode::kNotFound, .message = "no such file or folder", .file = path};
    }
    if (status.type() != fs::file_type::directory) {
      files.push_back({path, true});
      continue;
    }
    const std::vector<InputFile> below = FilesBelow(path, wanted);
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

}  // namespace lockstep::ingest
