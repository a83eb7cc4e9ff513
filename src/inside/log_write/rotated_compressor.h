#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace lockstep::logs {

/// Turns a log's rotated files into gzip, one after the other, in a thread that the system runs when nobody else wants
/// the processor or the disk. The thread has two open files and knows no name: names are changed by who writes the log,
/// between two lines, so that nobody ever waits for it. What goes wrong (no thread, a full disk) leaves the plain file,
/// and so does the end of the process, whenever it comes; a plain file goes when its compressed one is whole on disk.
/// The forked child of a process compresses nothing. Not thread-safe.
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
  bool is_off_ = false;         ///< After a failure: who has no room for one has none for the next.
};

}  // namespace lockstep::logs
