#include "base/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep {

TemporaryFolder::TemporaryFolder(const std::string& purpose, const std::string& parent) {
  std::error_code error;
  const std::filesystem::path base =
      parent.empty() ? std::filesystem::temp_directory_path(error) : std::filesystem::path(parent);
  if (error) {
    errno = error.value();
    return;
  }
  path_ = base / (purpose + "-" + std::string(6, 'X'));
  made_ = ::mkdtemp(path_.data()) != nullptr;  // Fills the six places in.
}

TemporaryFolder::~TemporaryFolder() {
  if (!made_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep
