#include "ingest/span_trace/tick_clock.h"

#include <algorithm>
#include <cmath>

namespace lockstep::ingest::span_trace {
namespace {

constexpr int64_t kMostNs = int64_t{1} << 62;
constexpr int64_t kGroupNs = 1'000'000;
constexpr int64_t kStepNs = 1'000'000;

int64_t Bounded(double ns) {
  if (!(ns > -static_cast<double>(kMostNs))) return -kMostNs;
  if (!(ns < static_cast<double>(kMostNs))) return kMostNs;
  return std::llround(ns);
}

int64_t SumOf(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? -kMostNs : kMostNs;
  return std::clamp(sum, -kMostNs, kMostNs);
}

bool IsSane(const Anchor& anchor) {
  return anchor.monotonic_ns >= 0 && anchor.monotonic_ns < kMostNs && anchor.wall_ns > -kMostNs &&
         anchor.wall_ns < kMostNs;
}

}  // namespace

TickClock::TickClock(std::vector<Anchor> anchors) {
  std::erase_if(anchors, [](const Anchor& anchor) { return !IsSane(anchor); });
  std::sort(anchors.begin(), anchors.end(), [](const Anchor& a, const Anchor& b) { return a.tick < b.tick; });
  std::vector<Anchor> kept;
  for (const Anchor& anchor : anchors) {
    if (!kept.empty() && anchor.monotonic_ns - kept.back().monotonic_ns < kGroupNs) {
      const bool is_next = anchor.monotonic_ns >= kept.back().monotonic_ns;
      if (is_next && anchor.bracket_ticks < kept.back().bracket_ticks && kept.size() > 1) kept.back() = anchor;
      continue;  // One that goes back belongs to damage.
    }
    kept.push_back(anchor);
  }
  if (kept.empty()) return;
  const Anchor &first = kept.front(), &last = kept.back();
  const double whole_rate = last.tick > first.tick ? static_cast<double>(last.monotonic_ns - first.monotonic_ns) /
                                                         static_cast<double>(last.tick - first.tick)
                                                   : 1.0;
  uint64_t worst = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    Line line{kept[i].tick, kept[i].wall_ns, whole_rate};
    worst = std::max(worst, kept[i].bracket_ticks);
    if (i + 1 < kept.size()) {
      const auto ticks = static_cast<double>(kept[i + 1].tick - kept[i].tick);
      const int64_t monotonic_ns = kept[i + 1].monotonic_ns - kept[i].monotonic_ns;
      const int64_t wall_ns = kept[i + 1].wall_ns - kept[i].wall_ns;
      const bool is_step = wall_ns - monotonic_ns > kStepNs || monotonic_ns - wall_ns > kStepNs;
      step_count_ += is_step ? 1 : 0;
      if (ticks > 0) line.ns_per_tick = static_cast<double>(is_step ? monotonic_ns : wall_ns) / ticks;
    }
    lines_.push_back(line);
  }
  uncertainty_ns_ = Bounded(static_cast<double>(worst) * whole_rate);
}

int64_t TickClock::ToWall(uint64_t tick) const {
  if (lines_.empty()) return 0;
  auto line =
      std::upper_bound(lines_.begin(), lines_.end(), tick, [](uint64_t t, const Line& l) { return t < l.tick; });
  if (line != lines_.begin()) --line;
  const double ticks =
      tick >= line->tick ? static_cast<double>(tick - line->tick) : -static_cast<double>(line->tick - tick);
  return SumOf(line->wall_ns, Bounded(ticks * line->ns_per_tick));
}

}  // namespace lockstep::ingest::span_trace
