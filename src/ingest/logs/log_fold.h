#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/logs/log_reader.h"

namespace lockstep::logs {

/// A line, and all ranks that say it.
struct FoldedLine {
  int64_t time_unix_ns = 0;  ///< Of the first.
  bool has_time = false;
  Level level = Level::kInfo;
  std::vector<int32_t> ranks = {};  ///< Ascending; empty: not known whose it is.
  std::string host = {};            ///< Of the first; "" = unknown.
  std::string source = {};
  std::string text = {};
};

/// Joins lines that several ranks say within a second of the first: the same text, level and source. A rank that says
/// it twice begins a new one. They come out in the order of their first times. Lines must come in the order of theirs.
/// Strings are used again: no allocation for a line once it runs.
class LogFold {
 public:
  using Take = std::function<void(const FoldedLine& line)>;
  /// `window_ns` 0: each line comes out alone.
  LogFold(int64_t window_ns, Take take);

  void Add(const LogLine& line);
  /// Gives out what began before `time_ns` less the window: none can be joined to it any more.
  void Advance(int64_t time_ns);
  /// Gives out all.
  void Flush();

 private:
  struct Group {
    FoldedLine line;
    uint64_t hash = 0;
    uint64_t number = 0;    ///< Counts them, from 1.
    Group* next = nullptr;  ///< In its bucket, the older first.
  };
  Group* NewGroup();
  bool Join(const LogLine& line, uint64_t hash);
  void GiveOutFirst();
  uint64_t& LastOf(int32_t rank);

  const int64_t window_ns_;
  Take take_;
  std::deque<Group> pool_;  ///< Where groups lie; never shrinks.
  std::vector<Group*> free_;
  std::deque<Group*> waiting_;  ///< In the order of their times.
  std::vector<Group*> buckets_;
  uint64_t group_count_ = 0;
  std::vector<uint64_t> last_of_rank_;  ///< Number of the group that its last line is in.
};

}  // namespace lockstep::logs
