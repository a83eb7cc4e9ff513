#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ingest/logs/log_reader.h"

namespace lockstep::logs {

/// The lines of several logs in the order of their times; of one time, in the logs' order. A log's own order is kept.
/// Cost: O(log of logs) for each change from one log to another. Borrows the readers.
class LogMerger {
 public:
  void Add(LogReader* reader);

  /// The next line; false: there is none now. With `follows` only lines before `until_ns` are given, and logs that had
  /// nothing more are asked again after Retry.
  bool Next(LogLine* line, bool follows = false, int64_t until_ns = INT64_MAX);
  void Retry();

 private:
  struct Head {
    int64_t time_ns;
    size_t idx;
    bool operator<(const Head& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : idx > other.idx;  // A heap's top is its largest.
    }
  };
  void Advance(size_t idx, bool follows);

  std::vector<LogReader*> readers_;
  std::vector<LogLine> lines_;  ///< By reader: the line it stands at.
  std::vector<Head> heap_;      ///< Of readers that have one.
  std::vector<size_t> asked_;   ///< Those to be asked with the next call.
  std::vector<size_t> idle_;    ///< Those that had none.
  size_t given_ = SIZE_MAX;     ///< The reader whose line was given last: it goes on with the next call.
};

}  // namespace lockstep::logs
