#include "programs/cli/merge_logs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/nanoseconds.h"
#include "ingest/logs/log_files.h"
#include "ingest/logs/log_reader.h"
#include "present/report/utf8.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kAfter_ns = kSecondNs;  ///< What a rank says of its end comes after it.
constexpr uint64_t kMostLogLines = 1'000'000;
constexpr size_t kMostTextBytes = 4096;

/// Which trace of a rank a time of its host's wall clock belongs to.
class TraceFinder {
 public:
  explicit TraceFinder(const model::Run& run) : run_(run) {
    for (size_t i = 0; i < run.ranks.size(); ++i) {
      const model::RankTrace& trace = run.ranks[i];
      if (!trace.first_ns || !trace.last_ns) continue;
      // Without the base of its times a trace does not say when it was.
      if (trace.base_time_known) traces_[trace.rank.value][*trace.first_ns] = i;
      if (!trace.base_time_known) undated_.insert(trace.rank.value);
    }
  }

  bool IsUndated(int32_t rank) const { return undated_.contains(rank) && !traces_.contains(rank); }

  std::optional<size_t> Find(int32_t rank, int64_t time_ns) const {
    const auto of_rank = traces_.find(rank);
    if (of_rank == traces_.end()) return {};
    const auto behind = of_rank->second.upper_bound(time_ns);
    if (behind == of_rank->second.begin()) return {};
    const size_t found = std::prev(behind)->second;
    if (time_ns > *run_.ranks[found].last_ns + kAfter_ns) return {};
    return found;
  }

 private:
  const model::Run& run_;
  std::map<int32_t, std::map<int64_t, size_t>> traces_;  ///< By rank, then first event.
  std::set<int32_t> undated_;
};

}  // namespace

Result<MergeLogs> ReadMergeLogs(const std::vector<std::string>& paths, const logs::LogFilter& filter,
                                const model::Run& run) {
  ASSIGN_OR_RETURN(std::vector<logs::LogFamily> families, logs::FindLogs(paths));
  const TraceFinder traces(run);
  MergeLogs found;
  found.lines.resize(run.ranks.size());
  for (logs::LogFamily& family : families) {
    logs::LogReader reader(std::move(family), filter, nullptr);
    logs::LogLine line;
    while (reader.Next(&line, false)) {
      if (line.text.empty()) continue;
      if (!line.has_time || !line.rank) {
        ++found.unplaced_count;
        continue;
      }
      const std::optional<size_t> rank_index = traces.Find(*line.rank, line.time_unix_ns);
      if (!rank_index) {
        ++(traces.IsUndated(*line.rank) ? found.undated_count : found.outside_count);
      } else if (found.kept_count == kMostLogLines) {
        ++found.over_limit_count;
      } else {
        ++found.kept_count;
        found.lines[*rank_index].push_back({line.time_unix_ns, logs::LevelName(line.level),
                                            report::ValidUtf8(line.source),
                                            report::ValidUtf8(line.text.substr(0, kMostTextBytes))});
      }
    }
    const std::vector<std::string>& problems = reader.counts().problems;
    found.problems.insert(found.problems.end(), problems.begin(), problems.end());
  }
  // A rank may have several logs, as of its streams.
  for (std::vector<timeline::LogPoint>& lines : found.lines) {
    std::stable_sort(lines.begin(), lines.end(),
                     [](const timeline::LogPoint& a, const timeline::LogPoint& b) { return a.time_ns < b.time_ns; });
  }
  return found;
}

}  // namespace lockstep::cli
