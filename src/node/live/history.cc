#include "node/live/history.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"

namespace lockstep::live {
namespace {

constexpr int64_t kHoldsForNs = 12 * kSecondNs;  // A look of the coarse history, and a little.

constexpr std::pair<std::string_view, double> kQuantiles[] = {
    {"p50_seconds", 0.5}, {"p90_seconds", 0.9}, {"p95_seconds", 0.95}, {"p99_seconds", 0.99}};

std::string LabelOf(const control::HistorySeries& series, const char* name) {
  const auto found = series.labels.find(name);
  return found == series.labels.end() ? std::string() : found->second;
}

std::optional<double> At(const control::HistorySeries& series, std::string_view figure, size_t idx) {
  const auto found = series.figures.find(std::string(figure));
  return found == series.figures.end() || idx >= found->second.size() ? std::nullopt : found->second[idx];
}

/// Whether anything of the series is known of the instant: else it was not there.
bool IsThere(const control::HistorySeries& series, size_t idx) {
  return std::any_of(series.figures.begin(), series.figures.end(),
                     [&](const auto& figure) { return idx < figure.second.size() && figure.second[idx]; });
}

template <typename Reading>
void Fill(const control::HistorySeries& series, size_t idx, Reading* reading) {
  for (const Field<Reading>& field : FieldsOf(*reading)) {
    if (field.figure.empty()) continue;
    const std::optional<double> value = At(series, field.figure, idx);
    if (value) reading->*field.field = (reading->*field.field).value_or(0) + *value;
  }
}

RankReading RankAt(const control::HistorySeries& series, size_t idx) {
  RankReading rank;
  rank.job_id = LabelOf(series, "job_id");
  rank.rank = LabelOf(series, "rank");
  rank.host = LabelOf(series, "host");
  rank.pid = LabelOf(series, "pid");
  rank.local_rank = LabelOf(series, "local_rank");
  rank.user = LabelOf(series, "user");
  rank.device = LabelOf(series, "device");
  Fill(series, idx, &rank);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    rank.phase_s.at(i) = At(series, std::string(PhaseName(static_cast<Phase>(i))) + "_seconds", idx);
  }
  return rank;
}

GpuReading GpuAt(const control::HistorySeries& series, size_t idx) {
  GpuReading gpu;
  gpu.gpu = LabelOf(series, "gpu");
  gpu.uuid = LabelOf(series, "uuid");
  gpu.model = LabelOf(series, "model");
  gpu.is_there = std::any_of(series.figures.begin(), series.figures.end(), [&](const auto& figure) {
    return figure.first != "xid_events" && At(series, figure.first, idx);
  });
  Fill(series, idx, &gpu);
  gpu.temperature_celsius = At(series, "temperature_celsius", idx);
  return gpu;
}

ServingReading ServingAt(const control::HistorySeries& series, size_t idx) {
  ServingReading serving;
  serving.job_id = LabelOf(series, "job_id");
  serving.model = LabelOf(series, "model");
  serving.engine = LabelOf(series, "engine");
  Fill(series, idx, &serving);
  for (const auto& [name, quantile] : kQuantiles) {
    const auto duration = At(series, "request_" + std::string(name), idx);
    const auto first = At(series, "first_token_" + std::string(name), idx);
    const auto between = At(series, "inter_token_" + std::string(name), idx);
    if (duration) serving.recent_duration_s[quantile] = *duration;
    if (first) serving.recent_first_token_s[quantile] = *first;
    if (between) serving.recent_inter_token_s[quantile] = *between;
  }
  return serving;
}

/// By the caller's monotonic clock.
int64_t TakenNs(const NodePast& past, size_t idx) {
  // A clock that is years off keeps the order.
  constexpr int64_t kMostNs = 10LL * 366 * 24 * 3600 * kSecondNs;
  return past.answered_ns - std::clamp(past.history.now_unix_ns - past.history.times_unix_ns[idx], -kMostNs, kMostNs);
}

}  // namespace

NodeReading ReadingAt(const control::History& history, size_t idx) {
  NodeReading reading;
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (const control::HistorySeries& series : history.series) {
    if (!IsThere(series, idx)) continue;
    switch (series.kind) {
      case control::HistoryKind::kRank: {
        RankReading rank = RankAt(series, idx);
        // A rank that was restarted within a span occurs twice.
        const auto [place, is_new] = ranks.emplace(std::pair(rank.job_id, rank.rank), reading.ranks.size());
        if (is_new) reading.ranks.push_back(std::move(rank));
        break;
      }
      case control::HistoryKind::kGpu: reading.gpus[LabelOf(series, "gpu")] = GpuAt(series, idx); break;
      case control::HistoryKind::kServing: reading.serving.push_back(ServingAt(series, idx)); break;
      case control::HistoryKind::kJob: {
        JobReading& job = reading.jobs[LabelOf(series, "job_id")];
        job.world_size = At(series, "world_size", idx);
        job.step_median_s = At(series, "step_median_seconds", idx);
        break;
      }
    }
  }
  return reading;
}

void History::Replay(
    int64_t every_ns, int64_t until_ns,
    const std::function<void(std::vector<NodeLook> looks, int64_t taken_ns, int64_t unix_ns)>& take) const {
  every_ns = std::clamp<int64_t>(every_ns, 1, 24 * 3600 * kSecondNs);
  std::optional<int64_t> oldest_ns;
  for (const NodePast& past : nodes_) {
    if (!past.error && !past.history.times_unix_ns.empty()) {
      oldest_ns = std::min(oldest_ns.value_or(INT64_MAX), TakenNs(past, 0));
    }
  }
  constexpr int64_t kMostLooks = 10'000;
  if (!oldest_ns || *oldest_ns >= until_ns) return;
  oldest_ns = std::max(*oldest_ns, until_ns - every_ns * kMostLooks);
  const int64_t steady_to_unix_ns = UnixNow() - SteadyNow();
  std::vector<size_t> next(nodes_.size());
  for (int64_t span_ns = *oldest_ns; span_ns < until_ns; span_ns += every_ns) {
    const int64_t end_ns = std::min(span_ns + every_ns, until_ns);
    std::vector<NodeLook> looks(nodes_.size());
    bool knows_any = false;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const NodePast& past = nodes_[i];
      looks[i].host = past.host;
      looks[i].place = past.place;
      looks[i].clock_offset_ns = past.clock_offset_ns;
      looks[i].taken_ns = end_ns;
      std::optional<size_t> newest;
      while (!past.error && next[i] < past.history.times_unix_ns.size() && TakenNs(past, next[i]) < end_ns) {
        newest = next[i]++;
      }
      // Daemons do not look in our time: for a moment what was seen last still holds.
      if (!newest && next[i] > 0 && end_ns - TakenNs(past, next[i] - 1) < std::max(3 * every_ns, kHoldsForNs)) {
        newest = next[i] - 1;
      }
      if (newest) {
        looks[i].taken_ns = TakenNs(past, *newest);
        looks[i].reading = ReadingAt(past.history, *newest);
        knows_any = true;
      } else {
        looks[i].error = Error{ErrorCode::kNotFound, "there is no history for this time"};
      }
    }
    if (knows_any) take(std::move(looks), end_ns, end_ns + steady_to_unix_ns);
  }
}

void Recall(NodePoller* poller, const std::vector<NodeLook>& looks, int64_t length_ns, int64_t deadline_ns,
            JobTracker* tracker) {
  int64_t until_ns = INT64_MAX;
  for (const NodeLook& look : looks) {
    if (!look.error) until_ns = std::min(until_ns, look.taken_ns);
  }
  if (until_ns == INT64_MAX) return;
  const History history(poller->LookBack(length_ns, kHistory, deadline_ns));
  history.Replay(std::max<int64_t>(length_ns / static_cast<int64_t>(kHistory), kSecondNs / 10), until_ns,
                 [&](std::vector<NodeLook> past, int64_t taken_ns, int64_t unix_ns) {
                   tracker->Recall(std::move(past), taken_ns, unix_ns);
                 });
}

}  // namespace lockstep::live
