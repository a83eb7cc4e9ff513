#include "ingest/job/join_spans.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "model/step_name.h"

namespace lockstep::ingest {
namespace {

using model::EventColumns;
using model::RankTrace;
using model::Track;

auto KeyOf(const Track& track) { return std::tuple(track.lane, track.process_id, track.thread_id); }

std::vector<bool> StepNames(const model::NameTable& names) {
  std::vector<bool> is_step(names.size());
  for (uint32_t id = 0; id < names.size(); ++id) is_step[id] = model::ReadProfilerStep(names[NameId{id}]).has_value();
  return is_step;
}

bool HasSteps(const RankTrace& trace, const std::vector<bool>& is_step) {
  return std::any_of(trace.tracks.begin(), trace.tracks.end(), [&](const Track& track) {
    return std::any_of(track.events.name.begin(), track.events.name.end(),
                       [&](NameId id) { return is_step[id.value]; });
  });
}

void AddRow(const EventColumns& from, size_t i, EventColumns* into) {
  into->start_ns.push_back(from.start_ns[i]);
  into->duration_ns.push_back(from.duration_ns[i]);
  into->name.push_back(from.name[i]);
  into->category.push_back(from.category[i]);
  if (!from.correlation.empty()) into->correlation.push_back(from.correlation[i]);
}

bool IsBefore(const EventColumns& a, size_t i, const EventColumns& b, size_t j) {
  return a.start_ns[i] != b.start_ns[j] ? a.start_ns[i] < b.start_ns[j] : a.duration_ns[i] > b.duration_ns[j];
}

void Sort(EventColumns* events) {
  std::vector<size_t> order(events->size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto before = [&](size_t a, size_t b) { return IsBefore(*events, a, *events, b); };
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::stable_sort(order.begin(), order.end(), before);
  EventColumns sorted;
  for (const size_t i : order) AddRow(*events, i, &sorted);
  *events = std::move(sorted);
}

/// Both sorted; of equals the span comes first, since it encloses what the profiler saw.
EventColumns Merge(const EventColumns& spans, const EventColumns& others) {
  EventColumns merged;
  size_t i = 0, j = 0;
  while (i < spans.size() || j < others.size()) {
    const bool take_span = j == others.size() || (i < spans.size() && !IsBefore(others, j, spans, i));
    take_span ? AddRow(spans, i++, &merged) : AddRow(others, j++, &merged);
  }
  return merged;
}

/// [first, last]: what is taken over.
struct Window {
  int64_t first_ns = INT64_MIN;
  int64_t last_ns = INT64_MAX;

  bool Touches(int64_t start_ns, int64_t duration_ns) const {
    return start_ns <= last_ns && start_ns + duration_ns >= first_ns;
  }
};

void JoinCounters(const RankTrace& spans, const Window& window, RankTrace* into) {
  for (const model::CounterSeries& series : spans.counters) {
    model::CounterSeries part;
    part.name = series.name;
    part.unit = series.unit;
    part.device = series.device;
    for (size_t i = 0; i < series.size(); ++i) {
      if (!window.Touches(series.time_ns[i], 0)) continue;
      part.time_ns.push_back(series.time_ns[i]);
      part.value.push_back(series.value[i]);
    }
    if (part.size() > 0) into->counters.push_back(std::move(part));
  }
  std::stable_sort(into->counters.begin(), into->counters.end(), [](const auto& a, const auto& b) {
    return std::tie(a.device, a.name) < std::tie(b.device, b.name);
  });
}

template <typename Row>
void JoinRows(const std::vector<Row>& from, const Window& window, std::vector<Row>* into) {
  for (const Row& row : from) {
    if (window.Touches(row.start_ns, row.duration_ns)) into->push_back(row);
  }
  std::stable_sort(into->begin(), into->end(), [](const Row& a, const Row& b) { return a.start_ns < b.start_ns; });
}

}  // namespace

uint64_t JoinSpans(const RankTrace& spans, const model::NameTable& names, SpanScope scope, RankTrace* into) {
  Window window;
  if (scope == SpanScope::kOwnTime && into->first_ns && into->last_ns) window = {*into->first_ns, *into->last_ns};
  const std::vector<bool> is_step = StepNames(names);
  const bool has_steps = HasSteps(*into, is_step);
  uint64_t left_out = 0;
  for (const Track& track : spans.tracks) {
    EventColumns taken;
    for (size_t i = 0; i < track.events.size(); ++i) {
      const int64_t start_ns = track.events.start_ns[i], end_ns = track.events.end_ns(i);
      if (has_steps && is_step[track.events.name[i].value]) continue;
      if (!window.Touches(start_ns, end_ns - start_ns)) {
        ++left_out;
        continue;
      }
      AddRow(track.events, i, &taken);
      taken.start_ns.back() = std::max(start_ns, window.first_ns);
      taken.duration_ns.back() = std::min(end_ns, window.last_ns) - taken.start_ns.back();
    }
    if (taken.empty()) continue;
    Sort(&taken);  // Cut ones begin together.
    into->event_count += taken.size();
    into->complete_event_count += taken.size();
    const auto place = std::lower_bound(into->tracks.begin(), into->tracks.end(), track,
                                        [](const Track& a, const Track& b) { return KeyOf(a) < KeyOf(b); });
    if (place != into->tracks.end() && KeyOf(*place) == KeyOf(track)) {
      place->events = Merge(taken, place->events);
      continue;
    }
    Track own;
    own.lane = track.lane;
    own.process_id = track.process_id;
    own.thread_id = track.thread_id;
    own.thread_name = track.thread_name;
    own.events = std::move(taken);
    into->tracks.insert(place, std::move(own));
  }
  JoinCounters(spans, window, into);
  JoinRows(spans.linked_spans, window, &into->linked_spans);
  JoinRows(spans.requests, window, &into->requests);
  if (scope == SpanScope::kAll && spans.first_ns && spans.last_ns) {
    into->first_ns = std::min(into->first_ns.value_or(INT64_MAX), *spans.first_ns);
    into->last_ns = std::max(into->last_ns.value_or(INT64_MIN), *spans.last_ns);
  }
  return left_out;
}

}  // namespace lockstep::ingest
