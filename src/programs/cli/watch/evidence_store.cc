#include "programs/cli/watch/evidence_store.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "base/bytes_below.h"

namespace lockstep::cli {

namespace fs = std::filesystem;

bool EvidenceStore::Keep(const std::string& folder) {
  folders_.push_back({folder, BytesBelow(folder)});
  kept_bytes_ += folders_.back().bytes;
  while (kept_bytes_ > budget_bytes_ && !folders_.empty()) {
    const Folder& oldest = folders_.front();
    std::error_code ignored;
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(oldest.path, ignored)) {
      if (entry.path().filename() != kVerdictFile) files.push_back(entry.path());
    }
    for (const fs::path& file : files) fs::remove(file, ignored);
    fs::remove(oldest.path, ignored);  // Only where nothing is left in it.
    kept_bytes_ -= oldest.bytes;
    folders_.pop_front();
  }
  return !folders_.empty();
}

}  // namespace lockstep::cli
