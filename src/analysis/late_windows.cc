#include "analysis/late_windows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

namespace lockstep::analysis {
namespace {

/// An arrival at or an end of a collective, on the late rank's clock.
struct Point {
  int64_t trace_ns = 0;
  size_t instance = 0;
  bool is_end = false;
};

const CollectiveMember* FindMember(const CollectiveInstance& instance, size_t rank_index) {
  const auto at = std::lower_bound(instance.members.begin(), instance.members.end(), rank_index,
                                   [](const CollectiveMember& member, size_t r) { return member.rank_index < r; });
  return at != instance.members.end() && at->rank_index == rank_index ? &*at : nullptr;
}

std::vector<Point> PointsOf(const Collectives& collectives, size_t rank_index) {
  std::vector<Point> points;
  for (size_t i = 0; i < collectives.instances.size(); ++i) {
    const CollectiveMember* member = FindMember(collectives.instances[i], rank_index);
    if (member == nullptr) continue;
    points.push_back({member->trace_start_ns, i, false});
    points.push_back({member->trace_end_ns, i, true});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.trace_ns, a.instance, a.is_end) < std::tie(b.trace_ns, b.instance, b.is_end);
  });
  return points;
}

/// The last point of another collective at or before an arrival.
const Point* PreviousPoint(const std::vector<Point>& points, int64_t arrival_ns, size_t instance) {
  auto at = std::upper_bound(points.begin(), points.end(), arrival_ns,
                             [](int64_t time_ns, const Point& point) { return time_ns < point.trace_ns; });
  while (at != points.begin()) {
    --at;
    if (at->instance != instance) return &*at;
  }
  return nullptr;
}

int64_t ToTrace(const model::ClockMap& clock, int64_t run_ns) {
  return run_ns + clock.OffsetAt(run_ns + clock.offset_ns);
}

class WindowFinder {
 public:
  WindowFinder(const model::Run& run, const Collectives& collectives, const std::vector<size_t>& ranks)
      : run_(run),
        collectives_(collectives),
        ranks_(ranks),
        covered_ns_(ranks.size(), std::numeric_limits<int64_t>::min()) {
    for (const size_t r : ranks) {
      const model::RankTrace& trace = run.ranks[r];
      if (trace.first_ns) all_record_ns_ = std::max(all_record_ns_, trace.clock.ToRun(*trace.first_ns));
    }
  }

  LateArrival Find(size_t instance_index, const Point* previous) {
    const CollectiveInstance& instance = collectives_.instances[instance_index];
    LateArrival arrival;
    arrival.instance = instance_index;
    arrival.present.resize(ranks_.size(), 0);
    arrival.windows.resize(ranks_.size());
    for (size_t slot = 0; slot < ranks_.size(); ++slot) {
      const CollectiveMember* member = FindMember(instance, ranks_[slot]);
      if (member == nullptr) continue;
      arrival.present[slot] = 1;
      const int64_t start_ns = std::max(StartOf(slot, previous), covered_ns_[slot]);
      LateWindow& window = arrival.windows[slot];
      window.device = {start_ns, std::max(start_ns, member->trace_start_ns)};
      const int64_t issue_ns = member->issue ? member->issue->trace_ns : member->trace_start_ns;
      window.host = {start_ns, std::max(start_ns, issue_ns)};
      covered_ns_[slot] = std::max(window.device.end_ns, window.host.end_ns);
    }
    return arrival;
  }

 private:
  int64_t StartOf(size_t slot, const Point* previous) const {
    const model::ClockMap& clock = run_.ranks[ranks_[slot]].clock;
    if (previous == nullptr) return ToTrace(clock, all_record_ns_);
    const CollectiveMember* member = FindMember(collectives_.instances[previous->instance], ranks_[slot]);
    if (member != nullptr) return previous->is_end ? member->trace_end_ns : member->trace_start_ns;
    return ToTrace(clock, run_.ranks[ranks_[0]].clock.ToRun(previous->trace_ns));
  }

  const model::Run& run_;
  const Collectives& collectives_;
  const std::vector<size_t>& ranks_;
  std::vector<int64_t> covered_ns_;
  int64_t all_record_ns_ = std::numeric_limits<int64_t>::min();
};

}  // namespace

LateWindows FindLateWindows(const model::Run& run, const Collectives& collectives, size_t rank_index,
                            std::vector<LateSpell> spells, size_t max_others) {
  LateWindows result;
  std::set<size_t> others;
  for (const LateSpell& spell : spells) {
    for (const CollectiveMember& member : collectives.instances[spell.last_instance].members) {
      if (member.rank_index != rank_index) others.insert(member.rank_index);
    }
  }
  result.ranks.push_back(rank_index);
  const size_t stride = others.size() / (max_others + 1) + 1;
  size_t seen = 0;
  for (const size_t r : others) {
    if (seen++ % stride == 0) result.ranks.push_back(r);
  }

  const auto arrival_of = [&](size_t i) {
    const CollectiveMember* member = FindMember(collectives.instances[i], rank_index);
    return member == nullptr ? std::optional<int64_t>() : member->trace_start_ns;
  };
  std::erase_if(spells, [&](const LateSpell& spell) {
    return !arrival_of(spell.first_instance) || !arrival_of(spell.last_instance);
  });
  std::sort(spells.begin(), spells.end(), [&](const LateSpell& a, const LateSpell& b) {
    return std::pair(arrival_of(a.last_instance), a.last_instance) <
           std::pair(arrival_of(b.last_instance), b.last_instance);
  });
  const std::vector<Point> points = PointsOf(collectives, rank_index);
  WindowFinder finder(run, collectives, result.ranks);
  for (const LateSpell& spell : spells) {
    const Point* previous = PreviousPoint(points, *arrival_of(spell.first_instance), spell.first_instance);
    result.arrivals.push_back(finder.Find(spell.last_instance, previous));
  }
  return result;
}

}  // namespace lockstep::analysis
