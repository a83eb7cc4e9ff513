#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "analysis/hang/progress.h"
#include "base/json_writer.h"

namespace lockstep::cli {

/// What `lockstep watch` says: a line each, or a JSON object each (lockstep.watch/1, docs/json.md). Flushed after every
/// event, because a reader may wait for it.
class WatchEvents {
 public:
  WatchEvents(std::ostream& out, bool json) : out_(out), json_(json) {}

  void Begin(const std::string& job_id, size_t process_count, size_t node_count, int64_t interval_ns);
  void Rhythm(const hang::ProgressTracker& tracker);
  void RankEnded(int32_t rank, size_t left);  ///< -1: without a rank.
  void NodeLost(const std::string& host, const std::string& problem);
  void Silent(const hang::ProgressTracker& tracker);
  /// `is_stuck` false: the evidence says that it is slow, or well.
  void Verdict(const hang::Verdict& verdict, bool is_stuck, const std::string& folder);
  void NotCollected(const std::string& reason);
  void Moves(int64_t silence_ns, const hang::ProgressTracker& tracker);
  void Ended(bool was_stuck);

  // For those who say more (profiler_events.h).
  bool json() const { return json_; }
  /// An event's object, begun.
  static JsonWriter& Start(JsonWriter& json, const char* event);
  void Line(const std::string& text);
  static std::string ClockTime(int64_t unix_ns);                    ///< "10:45:02", of this machine.
  static std::string RanksText(const std::vector<int32_t>& ranks);  ///< "ranks 1, 3".

 private:
  std::ostream& out_;
  const bool json_;
};

}  // namespace lockstep::cli
