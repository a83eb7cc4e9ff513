#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace lockstep::logs {

/// Turns a log's rotated files into gzip, one after the other, in a thread that the system runs when processor and disk
/// are otherwise idle. The thread has two open files and knows no name: the writer of the log changes names, between
/// two lines, so that it never waits for the thread. After an error (no thread, a full disk) or the end of the process
/// the plain file is still there; it is removed when the compressed one is complete on disk. The forked child of a
/// process compresses nothing. Not thread-safe.
class RotatedCompressor {
 public:
  /// Of the files PATH.1 to PATH.`oldest_age`.
  RotatedCompressor(std::string path, int oldest_age);
  /// Gives up what is under way. Does not wait.
  ~RotatedCompressor();
  RotatedCompressor(const RotatedCompressor&) = delete;
  RotatedCompressor& operator=(const RotatedCompressor&) = delete;

  /// Every file is one older by now, and PATH.1 is new.
  void OnRotated();
  /// Gives a file that has been compressed meanwhile its name. Cost: two loads where there is none.
  void Look();

 private:
  struct Work;
  static void Run(const std::shared_ptr<Work>& work);
  void StartNext();
  bool Start(const std::string& from);
  void Finish();
  bool is_owner() const;
  std::string Aged(int age) const;
  std::string temporary() const;

  const std::string path_;
  const int oldest_age_;
  const pid_t owner_;
  std::shared_ptr<Work> work_;  ///< Null: none is under way.
  int age_ = 0;                 ///< Of the file that it compresses.
  bool is_off_ = false;         ///< After a failure: if there is no room for one file, there is none for the next.
};

}  // namespace lockstep::logs
