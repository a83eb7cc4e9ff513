#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::agent {

/// The system calls by which state gets to disk: the edge at which tests let them fail. Each returns -1 with errno.
class StoreFiles {
 public:
  virtual ~StoreFiles() = default;
  virtual int Create(int folder, const char* name);  ///< New, for writing, 0600.
  virtual ssize_t Write(int file, const char* bytes, size_t size);
  virtual int Sync(int file);
  virtual int Rename(int folder, const char* from, const char* to);
  virtual int Unlink(int folder, const char* name);
};

/// Texts by id, one file each (`ID.json`), in a private folder. A text is replaced completely or not at all, whichever
/// call fails and whenever we are killed: written beside, flushed, renamed, and the folder flushed. Not thread-safe,
/// but for const functions.
class CaptureStore {
 public:
  struct Entry {
    std::string id;
    std::string text;
  };
  struct Loaded {
    std::vector<Entry> entries;         ///< By id.
    std::vector<std::string> problems;  ///< Files that cannot be read, in words.
  };

  /// Makes the folder, and those above it, with mode 0700. `files` is borrowed; null: the real ones.
  /// Errors: kIo; kPermissionDenied when it belongs to someone else or is open to others and cannot be closed.
  static Result<std::unique_ptr<CaptureStore>> Open(const std::string& folder, StoreFiles* files = nullptr);

  /// All that is there; removes what an interrupted Write left. Texts over 16 MiB are a problem.
  Loaded Load();
  /// `id`: [a-z0-9]{1,64}. Errors: kIo; the old text is then whole, or, where only the last flush failed, the new one.
  Status Write(const std::string& id, const std::string& text);
  Status Remove(const std::string& id);
  /// Renames a file with an invalid text to ID.json.corrupt, and reports it.
  std::string SetAside(const std::string& id, const std::string& why);

  const std::string& folder() const { return folder_; }

 private:
  CaptureStore() = default;
  Error Failed(const std::string& what, const std::string& name) const;

  std::string folder_;
  UniqueFd fd_;
  StoreFiles* files_ = nullptr;
};

}  // namespace lockstep::agent
