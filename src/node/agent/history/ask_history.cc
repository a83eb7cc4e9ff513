#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/nanoseconds.h"
#include "node/agent/history/recorder.h"

namespace lockstep::agent {
namespace {

/// Puts samples into spans of time: of each series the last one in a span counts.
class Picker {
 public:
  Picker(const control::HistoryQuery& query, int64_t since_ms, int64_t span_ms)
      : job_id_(query.job_id), since_ms_(since_ms), span_ms_(span_ms) {}

  bool Wants(const HistoryLabels& labels) const {
    const auto job = labels.find("job_id");
    return job_id_.empty() || job == labels.end() || job->second == job_id_;
  }

  void Take(int64_t time_ms, const HistoryFrameState::Series& series) {
    if (!Wants(series.labels)) return;
    const int64_t span = (time_ms - since_ms_) / span_ms_;
    std::string key = FrameKey(series.kind, series.labels);
    const auto [place, is_new] = series_.try_emplace(std::move(key));
    Picked& picked = place->second;
    if (is_new) {
      if (series_.size() > control::kMostHistorySeries) {
        series_.erase(place);
        is_cut_ = true;
        return;
      }
      picked.kind = series.kind;
      picked.labels = series.labels;
    }
    // If the wall clock was set back, the later look still counts.
    int64_t& last_ms = spans_[span];
    last_ms = std::max(last_ms, time_ms);
    const bool has_point = !picked.points.empty() && picked.points.back().span == span;
    if (!has_point) {
      if (value_count_ + kMostFigures > kMostValuesHeld) {
        is_cut_ = true;
        return;
      }
      value_count_ += kMostFigures;
      picked.points.push_back({span, 0, {}});
    }
    picked.points.back().present = series.present;
    picked.points.back().values = series.values;
    picked.present |= series.present;
  }

  void Finish(control::History* history) {
    // More than an answer holds: as many spans become one as it takes.
    size_t figure_count = 0;
    for (const auto& [key, picked] : series_) figure_count += static_cast<size_t>(std::popcount(picked.present));
    const size_t joined = std::max<size_t>(
        (figure_count * spans_.size() + control::kMostHistoryValues - 1) / control::kMostHistoryValues, 1);
    std::map<int64_t, size_t> columns;
    for (const auto& [span, last_ms] : spans_) {
      const size_t column = columns.size() / joined;
      columns.emplace(span, column);
      history->times_unix_ns.resize(column + 1);
      // Spans follow each other; so do the last looks in them.
      history->times_unix_ns[column] = last_ms * kMillisecondNs;
    }
    const size_t column_count = history->times_unix_ns.size();
    size_t values_left = control::kMostHistoryValues;
    for (auto& [key, picked] : series_) {
      const auto& figures = FiguresOf(picked.kind);
      control::HistorySeries series{picked.kind, std::move(picked.labels), {}};
      for (size_t i = 0; i < figures.size(); ++i) {
        if ((picked.present >> i & 1) == 0) continue;
        if (values_left < column_count) {
          is_cut_ = true;
          break;
        }
        values_left -= column_count;
        auto& values = series.figures[figures[i].name];
        values.resize(column_count);
        for (const Point& point : picked.points) {
          if ((point.present >> i & 1) == 0) continue;
          values[columns.at(point.span)] = FromStored(figures[i], point.values.at(i));
        }
      }
      history->series.push_back(std::move(series));
    }
    history->is_cut = is_cut_;
  }

 private:
  struct Point {
    int64_t span = 0;
    uint64_t present = 0;
    std::array<int64_t, kMostFigures> values = {};
  };
  struct Picked {
    HistoryKind kind = HistoryKind::kRank;
    HistoryLabels labels;
    uint64_t present = 0;
    std::vector<Point> points;
  };
  // 16 MiB of them.
  static constexpr size_t kMostValuesHeld = size_t{2} << 20;

  const std::string job_id_;
  const int64_t since_ms_;
  const int64_t span_ms_;
  std::map<std::string, Picked> series_;
  std::map<int64_t, int64_t> spans_;  ///< And when the last look in each was.
  size_t value_count_ = 0;
  bool is_cut_ = false;
};

}  // namespace

control::History AskHistory(const HistoryView& view, const control::HistoryQuery& query, int64_t now_unix_ns) {
  control::History history;
  history.now_unix_ns = now_unix_ns;
  const int64_t now_ms = now_unix_ns / kMillisecondNs;
  const std::optional<int64_t> fine_ms = view.OldestMs(HistoryTier::kFine, now_ms);
  const std::optional<int64_t> coarse_ms = view.OldestMs(HistoryTier::kCoarse, now_ms);
  const int64_t oldest_ms = std::min(fine_ms.value_or(now_ms), coarse_ms.value_or(now_ms));
  const int64_t until_ms = std::min(query.until_unix_ns.value_or(now_unix_ns) / kMillisecondNs, now_ms + 1);
  const int64_t since_ms = std::max(query.since_unix_ns.value_or(0) / kMillisecondNs, oldest_ms);
  if (until_ms <= since_ms) return history;
  const auto points = static_cast<int64_t>(query.points.value_or(control::kHistoryPoints));
  const int64_t span_ms = std::max<int64_t>((until_ms - since_ms + points - 1) / points, 1);
  // On a grid of its own length, so that a client that asks repeatedly gets the same instants.
  const int64_t origin_ms = points == 1 ? since_ms : since_ms - since_ms % span_ms;

  Picker picker(query, origin_ms, span_ms);
  HistoryView::Visitor visitor;
  visitor.sample = [&](int64_t time_ms, const HistoryFrameState::Series& series) { picker.Take(time_ms, series); };
  const int64_t fine_since_ms = fine_ms.value_or(until_ms);
  if (since_ms < fine_since_ms) {
    view.Read(HistoryTier::kCoarse, since_ms, std::min(fine_since_ms, until_ms), visitor);
  }
  view.Read(HistoryTier::kFine, std::max(since_ms, fine_since_ms), until_ms, visitor);
  HistoryView::Visitor events;
  events.event = [&](control::HistoryEvent event) {
    if (picker.Wants(event.labels)) history.events.push_back(std::move(event));
  };
  view.Read(HistoryTier::kCoarse, since_ms, until_ms, events);
  picker.Finish(&history);
  std::stable_sort(history.events.begin(), history.events.end(),
                   [](const auto& a, const auto& b) { return a.unix_ns < b.unix_ns; });
  if (history.events.size() > control::kMostHistoryEvents) {
    history.events.erase(history.events.begin(),
                         history.events.end() - static_cast<ptrdiff_t>(control::kMostHistoryEvents));
    history.is_cut = true;
  }
  return history;
}

}  // namespace lockstep::agent
