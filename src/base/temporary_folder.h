#pragma once

#include <string>

namespace lockstep {

/// A folder in TMPDIR, or in another folder, that no other user may enter. Removed with its content when this ends.
class TemporaryFolder {
 public:
  /// `purpose` is part of its name: "lockstep-open" for one of `lockstep open`.
  /// `parent`: where; empty: TMPDIR.
  explicit TemporaryFolder(const std::string& purpose = "lockstep", const std::string& parent = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  bool made() const { return made_; }  ///< Else errno says why not.
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace lockstep
