#include "base/http/connection_table.h"

#include <utility>

namespace lockstep::http {

std::optional<ConnectionTable::Id> ConnectionTable::Enter(const std::string& source, Clock::time_point now) {
  std::function<void()> give_way;
  Id id = 0;
  {
    const MutexLock lock(mutex_);
    const auto same = by_source_.find(source);
    const bool is_source_full = same != by_source_.end() && same->second >= limits_.connection_count_per_source;
    if (is_source_full || entries_.size() >= limits_.connection_count) {
      const std::optional<Id> other = LongestWaiting(is_source_full ? &source : nullptr, now);
      if (!other) {
        ++counts_.refused;
        return std::nullopt;
      }
      const auto entry = entries_.find(*other);
      give_way = std::move(entry->second.give_way);
      Erase(entry);
      ++counts_.displaced;
    }
    id = next_id_++;
    entries_.emplace(id, Entry{.source = source});
    ++by_source_[source];
    ++counts_.accepted;
  }
  if (give_way) give_way();
  return id;
}

void ConnectionTable::Waiting(Id id, Clock::time_point now, std::function<void()> give_way) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.give_way = std::move(give_way);
  entry.waiting_since = now;
  if (entry.waiting) waiting_.erase(*entry.waiting);
  entry.waiting = waiting_.insert(waiting_.end(), id);
}

void ConnectionTable::Busy(Id id) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (found->second.waiting) waiting_.erase(*found->second.waiting);
  found->second.waiting.reset();
  found->second.give_way = nullptr;
}

void ConnectionTable::Leave(Id id) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) Erase(found);
}

ConnectionCounts ConnectionTable::counts() const {
  const MutexLock lock(mutex_);
  ConnectionCounts counts = counts_;
  counts.open = entries_.size();
  return counts;
}

std::optional<ConnectionTable::Id> ConnectionTable::LongestWaiting(const std::string* source,
                                                                   Clock::time_point now) const {
  const auto crowded = std::chrono::seconds(limits_.crowded_seconds);
  for (const Id id : waiting_) {
    const Entry& entry = entries_.at(id);
    if (entry.waiting_since + crowded > now) break;
    if (!source || entry.source == *source) return id;
  }
  return std::nullopt;
}

void ConnectionTable::Erase(std::unordered_map<Id, Entry>::iterator entry) {
  if (entry->second.waiting) waiting_.erase(*entry->second.waiting);
  const auto source = by_source_.find(entry->second.source);
  if (source != by_source_.end() && --source->second == 0) by_source_.erase(source);
  entries_.erase(entry);
}

}  // namespace lockstep::http
