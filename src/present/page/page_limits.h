#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lockstep::page {

inline constexpr size_t kFewestSeriesPoints = 16;
inline constexpr size_t kMostSeriesPoints = 512;
inline constexpr uint64_t kDefaultPageBytes = uint64_t{64} << 20;

/// How much of a run goes into a page. The defaults are what a browser holds at ease, and what a server sends; an
/// embedded page is lowered from here until it fits its size.
struct PageLimits {
  bool sql = true;                                 ///< SQLite itself.
  bool python_events = true;                       ///< Python frames.
  bool cpu_events = true;                          ///< Other events of CPU threads.
  bool device_events = true;                       ///< Events of device streams.
  int64_t shortest_event_ns = 0;                   ///< Shorter ones are left out.
  int64_t event_unit_ns = 1;                       ///< Times of events are whole multiples of this.
  uint64_t events_per_rank = uint64_t{1'000'000};  ///< Longest first.
  size_t collective_instances = 200'000;
  size_t collective_members = 4'000'000;     ///< Over all instances.
  size_t step_cells = 4'000'000;             ///< Ranks x steps.
  size_t exact_step_cells = 250'000;         ///< Above it cells are rounded to 16 bits.
  size_t timeline_bytes = size_t{16} << 20;  ///< Of the finest level.
  size_t name_rows = 2'000;                  ///< Kernels, and operators.
  size_t rank_columns = 64;                  ///< Names have a value per rank up to this many ranks.
  size_t wait_pairs = 20'000;
  size_t causes = 200;              ///< Of waiting.
  size_t path_steps = 2'000;        ///< Steps whose critical path is told one by one.
  size_t path_rows = 40'000;        ///< What it is made of, over these steps; and slack of their ranks.
  size_t path_pieces = 40'000;      ///< Where it ran, over these steps.
  size_t table_rows = 5'000;        ///< Of each table about groups, pipelines and matrix operators.
  size_t memory_points = 100'000;   ///< Over all ranks.
  size_t counter_points = 100'000;  ///< Over all counters of all ranks.
};

/// Of how many points each of so many series is, where there is room for `points` in all.
inline size_t PointsPerSeries(size_t points, size_t series_count) {
  return std::clamp(points / std::max<size_t>(series_count, 1), kFewestSeriesPoints, kMostSeriesPoints);
}

}  // namespace lockstep::page
