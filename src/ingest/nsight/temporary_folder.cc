#include "ingest/nsight/temporary_folder.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace lockstep::ingest::nsight {

TemporaryFolder::TemporaryFolder() {
  const char* const base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/lockstep-XXXXXX";
  made_ = ::mkdtemp(path_.data()) != nullptr;
}

TemporaryFolder::~TemporaryFolder() {
  if (!made_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep::ingest::nsight
