#include "ingest/logs/log_fold.h"

#include <algorithm>
#include <utility>

namespace lockstep::logs {
namespace {

constexpr size_t kBuckets = size_t{1} << 16;  ///< Above kMostWaiting: chains are short.
constexpr int kMostSearched = 32;             ///< Of one bucket: a rank that says one thing all the time.
constexpr int32_t kMostRanks = 1 << 20;       ///< Higher ones stay alone.
constexpr size_t kMostWaiting = 32'768;       ///< Then the oldest come out before their time.

}  // namespace

LogFold::LogFold(int64_t window_ns, Take take) : window_ns_(window_ns), take_(std::move(take)), buckets_(kBuckets) {}

LogFold::Group* LogFold::NewGroup() {
  if (free_.empty()) return &pool_.emplace_back();
  Group* group = free_.back();
  free_.pop_back();
  return group;
}

uint64_t& LogFold::LastOf(int32_t rank) {
  const auto place = static_cast<size_t>(rank);
  if (place >= last_of_rank_.size()) last_of_rank_.resize(place + 1);
  return last_of_rank_[place];
}

bool LogFold::Join(const LogLine& line, uint64_t hash) {
  if (!line.rank || *line.rank >= kMostRanks) return false;
  uint64_t& last = LastOf(*line.rank);
  int searched = 0;
  for (Group* group = buckets_[hash % kBuckets]; group != nullptr && searched < kMostSearched; group = group->next) {
    ++searched;
    if (group->number <= last || group->hash != hash || group->line.level != line.level ||
        group->line.text != line.text || group->line.source != line.source) {
      continue;
    }
    group->line.ranks.push_back(*line.rank);
    last = group->number;
    return true;
  }
  return false;
}

void LogFold::Add(const LogLine& line) {
  if (line.has_time) Advance(line.time_unix_ns);
  const uint64_t hash = window_ns_ > 0 ? std::hash<std::string_view>()(line.text) : 0;
  if (window_ns_ > 0 && Join(line, hash)) return;
  Group* group = NewGroup();
  FoldedLine& folded = group->line;
  folded.time_unix_ns = line.time_unix_ns;
  folded.has_time = line.has_time;
  folded.level = line.level;
  folded.host.assign(line.host);
  folded.source.assign(line.source);
  folded.text.assign(line.text);
  folded.ranks.clear();
  group->hash = hash;
  group->number = ++group_count_;
  group->next = nullptr;
  if (line.rank) folded.ranks.push_back(*line.rank);
  if (waiting_.size() >= kMostWaiting) GiveOutFirst();
  waiting_.push_back(group);
  if (window_ns_ == 0) return GiveOutFirst();
  if (!line.rank || *line.rank >= kMostRanks) return;  // Nobody joins it.
  LastOf(*line.rank) = group->number;
  Group** place = &buckets_[hash % kBuckets];
  for (int passed = 0; *place != nullptr; place = &(*place)->next) {
    if (++passed < 2 * kMostSearched) continue;
    // More of them are not needed.
    return;
  }
  *place = group;
}

void LogFold::GiveOutFirst() {
  Group* group = waiting_.front();
  waiting_.pop_front();
  for (Group** place = &buckets_[group->hash % kBuckets]; *place != nullptr; place = &(*place)->next) {
    if (*place != group) continue;
    *place = group->next;
    break;
  }
  std::vector<int32_t>& ranks = group->line.ranks;
  std::sort(ranks.begin(), ranks.end());
  take_(group->line);
  free_.push_back(group);
}

void LogFold::Advance(int64_t time_ns) {
  while (!waiting_.empty() &&
         (!waiting_.front()->line.has_time || waiting_.front()->line.time_unix_ns < time_ns - window_ns_)) {
    GiveOutFirst();
  }
}

void LogFold::Flush() {
  while (!waiting_.empty()) GiveOutFirst();
}

}  // namespace lockstep::logs
