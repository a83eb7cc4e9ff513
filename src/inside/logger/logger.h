#pragma once

#include <spdlog/logger.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

struct LoggerOptions {
  /// Where each rank's file goes. Empty: under `lockstep run --logs` everything goes to standard error, whose log takes
  /// over the lines as they are; elsewhere there is no file, and rank 0 is on the console.
  std::string folder = {};
  std::string name = "job";          ///< Who logs: the source in each line.
  std::optional<int32_t> rank = {};  ///< As the launcher says, unless it is given.
  bool is_json = false;              ///< JSON lines in the file.
  bool is_on_console = true;         ///< Rank 0, and a process without a rank, on standard error too.
  /// Lines below warning wait until 64 KiB, a warning or flush(). Else each is with the system when the call returns,
  /// and survives the process.
  bool is_buffered = false;
  uint64_t max_bytes = 100'000'000;  ///< Of a file, which then becomes .log.1.
  int file_count = 5;                ///< In all.
  /// Rotated files become .log.1.gz, by a thread that runs when nothing else wants a processor; a forked child's stay
  /// plain. Off: a job has no thread that it did not ask for.
  bool compresses = false;
};

/// An spdlog::logger that writes the lines of docs/formats/rank-log.md, for `lockstep logs` to read:
///
///     auto log = lockstep::Logger::Create({.folder = "logs"});
///     log->info("step {} loss {:.3f}", step, loss);
///
/// Nothing that goes wrong with the file reaches the caller: it is said once on standard error, and lines that are lost
/// are counted in the file. Thread-safe. After fork() the child has a file of its own from its first line on; one that
/// forks in the middle of a line of another thread waits for it.
class Logger : public spdlog::logger {
 public:
  static std::shared_ptr<Logger> Create(const LoggerOptions& options);

  /// The file of this process; "" = none.
  std::string path() const;

 private:
  using spdlog::logger::logger;
};

}  // namespace lockstep
