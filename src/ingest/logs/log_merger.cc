#include "ingest/logs/log_merger.h"

#include <algorithm>
#include <utility>

namespace lockstep::logs {

void LogMerger::Add(LogReader* reader) {
  readers_.push_back(reader);
  lines_.emplace_back();
  asked_.push_back(readers_.size() - 1);
}

void LogMerger::Retry() {
  asked_.insert(asked_.end(), idle_.begin(), idle_.end());
  idle_.clear();
}

void LogMerger::Advance(size_t idx, bool follows) {
  if (!readers_[idx]->Next(&lines_[idx], follows)) {
    idle_.push_back(idx);
    return;
  }
  heap_.push_back({lines_[idx].time_unix_ns, idx});
  std::push_heap(heap_.begin(), heap_.end());
}

bool LogMerger::Next(LogLine* line, bool follows, int64_t until_ns) {
  if (given_ != SIZE_MAX) Advance(std::exchange(given_, SIZE_MAX), follows);
  for (const size_t idx : asked_) Advance(idx, follows);
  asked_.clear();
  if (heap_.empty() || heap_.front().time_ns >= until_ns) return false;
  std::pop_heap(heap_.begin(), heap_.end());
  given_ = heap_.back().idx;
  heap_.pop_back();
  *line = lines_[given_];
  return true;
}

}  // namespace lockstep::logs
