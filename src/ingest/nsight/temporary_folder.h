#pragma once

#include <string>

namespace lockstep::ingest::nsight {

/// A folder in TMPDIR that nobody else may enter, gone with this and with the files that File named.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  bool made() const { return made_; }  ///< Else errno says why not.
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace lockstep::ingest::nsight
