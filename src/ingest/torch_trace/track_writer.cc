#include "ingest/torch_trace/track_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ingest/torch_trace/trace_category.h"

namespace lockstep::ingest {
namespace {

template <typename T>
void Permute(const std::vector<uint32_t>& order, Column<T>* column) {
  if (column->empty()) return;
  Column<T> sorted;
  sorted.resize_uninitialized(order.size());
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = (*column)[order[i]];
  *column = std::move(sorted);
}

/// Sorts by (start, longer first, file order). Producers write mostly ascending runs: each run is found and runs are
/// merged, so an almost sorted track costs little more than one pass.
void SortEvents(model::EventColumns* events) {
  const size_t count = events->size();
  const Column<int64_t>& start = events->start_ns;
  const Column<int64_t>& duration = events->duration_ns;
  const auto before = [&](uint32_t a, uint32_t b) {
    return start[a] != start[b] ? start[a] < start[b] : duration[a] > duration[b];
  };
  std::vector<uint32_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  std::vector<size_t> runs = {0};
  for (size_t i = 1; i < count; ++i) {
    if (before(order[i], order[i - 1])) runs.push_back(i);
  }
  runs.push_back(count);
  const auto at = [&](size_t i) { return order.begin() + static_cast<ptrdiff_t>(i); };
  while (runs.size() > 2) {
    std::vector<size_t> merged = {0};
    for (size_t i = 0; i + 2 < runs.size(); i += 2) {
      std::inplace_merge(at(runs[i]), at(runs[i + 1]), at(runs[i + 2]), before);
      merged.push_back(runs[i + 2]);
    }
    if (merged.back() != count) merged.push_back(count);
    runs = std::move(merged);
  }
  Permute(order, &events->start_ns);
  Permute(order, &events->duration_ns);
  Permute(order, &events->name);
  Permute(order, &events->category);
  Permute(order, &events->correlation);
}

}  // namespace

TrackWriter::TrackWriter(model::Lane lane, int64_t process_id, int64_t thread_id) {
  track_.lane = lane;
  track_.process_id = process_id;
  track_.thread_id = thread_id;
}

void TrackWriter::Grow() {
  model::EventColumns& events = track_.events;
  capacity_ = std::max<size_t>(64, capacity_ + capacity_ / 2);
  events.start_ns.resize_uninitialized(capacity_);
  events.duration_ns.resize_uninitialized(capacity_);
  events.name.resize_uninitialized(capacity_);
  events.category.resize_uninitialized(capacity_);
  start_ = events.start_ns.data();
  duration_ = events.duration_ns.data();
  name_ = events.name.data();
  category_ = events.category.data();
  if (HasCorrelation(track_.lane)) {
    events.correlation.resize_uninitialized(capacity_);
    correlation_ = events.correlation.data();
  }
}

model::Track TrackWriter::Finish(int64_t base_ns) {
  model::EventColumns& events = track_.events;
  events.start_ns.resize_uninitialized(size_);
  events.duration_ns.resize_uninitialized(size_);
  events.name.resize_uninitialized(size_);
  events.category.resize_uninitialized(size_);
  if (HasCorrelation(track_.lane)) events.correlation.resize_uninitialized(size_);
  events.start_ns.shrink_to_fit();
  events.duration_ns.shrink_to_fit();
  events.name.shrink_to_fit();
  events.category.shrink_to_fit();
  events.correlation.shrink_to_fit();
  if (!sorted_) SortEvents(&events);
  if (base_ns != 0) {
    for (int64_t& start : events.start_ns) {
      if (__builtin_add_overflow(start, base_ns, &start)) start = INT64_MAX / 2;
    }
  }
  return std::move(track_);
}

}  // namespace lockstep::ingest
