#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace lockstep::cli {

/// Folders of captures that `lockstep watch --stages` made, within a budget of bytes.
class EvidenceStore {
 public:
  static constexpr const char* kVerdictFile = "verdict.json";  ///< Stays where the rest of a folder goes.

  explicit EvidenceStore(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// Takes the newest folder in, and removes what the oldest ones keep until the rest is within the budget. Of a folder
  /// that is larger by itself only the verdict stays, too: false.
  bool Keep(const std::string& folder);

 private:
  struct Folder {
    std::string path;
    uint64_t bytes = 0;
  };

  const uint64_t budget_bytes_;
  uint64_t kept_bytes_ = 0;
  std::deque<Folder> folders_;  ///< The oldest first.
};

}  // namespace lockstep::cli
