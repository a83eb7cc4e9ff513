#include "analysis/host_idle.h"

#include <algorithm>
#include <array>
#include <limits>

#include "analysis/host_role.h"

namespace lockstep::analysis {
namespace {

enum class HostClass : uint8_t { kRuntime, kDataLoader, kOperator, kNone };

/// Cursor of MergeByStart over one CPU track. Events that lie wholly inside what the track already covered with the
/// same or a higher class are skipped: they cannot change a union.
class HostClassCursor {
 public:
  HostClassCursor(const model::Track& track, HostRoles& roles) : track_(&track), roles_(&roles) {
    covered_.fill(std::numeric_limits<int64_t>::min());
    Settle();
  }

  bool done() const { return row_ >= track_->events.size(); }
  int64_t start() const { return track_->events.start_ns[row_]; }
  int64_t end() const { return end_ns_; }
  HostClass host_class() const { return class_; }
  void Next() {
    ++row_;
    Settle();
  }

 private:
  void Settle() {
    const model::EventColumns& events = track_->events;
    for (; row_ < events.size(); ++row_) {
      end_ns_ = events.end_ns(row_);
      // Covered by the highest class: no need to ask what it is.
      if (end_ns_ <= covered_[0]) continue;
      class_ = Classify();
      if (class_ == HostClass::kNone || end_ns_ <= covered_[static_cast<size_t>(class_)]) continue;
      for (size_t i = static_cast<size_t>(class_); i < covered_.size(); ++i)
        covered_[i] = std::max(covered_[i], end_ns_);
      return;
    }
  }
  HostClass Classify() {
    if (track_->lane == model::Lane::kRuntime) return HostClass::kRuntime;
    const HostRole role = (*roles_)[track_->events.name[row_]];
    if (role == HostRole::kDataLoader) return HostClass::kDataLoader;
    const bool is_operator = track_->events.category[row_] == model::Category::kCpuOp &&
                             (role == HostRole::kWork || role == HostRole::kCollectiveCall);
    return is_operator ? HostClass::kOperator : HostClass::kNone;
  }

  const model::Track* track_;
  HostRoles* roles_;
  size_t row_ = 0;
  int64_t end_ns_ = 0;
  HostClass class_ = HostClass::kNone;
  std::array<int64_t, 3> covered_{};  // by class: end of what this class or a higher one covers
};

/// Walks the gaps and the host's events together. As in ActivitySweep every class covers a prefix of the stretch
/// between two starts, here cut down to the gaps.
class GapWalk {
 public:
  explicit GapWalk(const std::vector<Interval>& gaps) : gaps_(gaps) { ends_.fill(std::numeric_limits<int64_t>::min()); }

  void Add(int64_t start_ns, int64_t end_ns, HostClass host_class) {
    Advance(start_ns);
    int64_t& end = ends_[static_cast<size_t>(host_class)];
    end = std::max(end, end_ns);
  }
  void Advance(int64_t to_ns) {
    while (gap_ < gaps_.size() && gaps_[gap_].start_ns < to_ns) {
      const Interval& gap = gaps_[gap_];
      const int64_t from = std::max(gap.start_ns, now_ns_);
      const int64_t until = std::min(gap.end_ns, to_ns);
      if (from < until) Count(from, until);
      if (gap.end_ns > to_ns) break;
      ++gap_;
    }
    now_ns_ = std::max(now_ns_, to_ns);
  }
  HostShares Finish() {
    if (!gaps_.empty()) Advance(gaps_.back().end_ns);
    return shares_;
  }

 private:
  void Count(int64_t from, int64_t until) {
    const auto until_end = [&](int64_t end) { return std::clamp(end, from, until); };
    const int64_t runtime = until_end(ends_[0]);
    const int64_t data_loader = std::max(runtime, until_end(ends_[1]));
    const int64_t operators = std::max(data_loader, until_end(ends_[2]));
    shares_.runtime_ns += runtime - from;
    shares_.data_loader_ns += data_loader - runtime;
    shares_.operator_ns += operators - data_loader;
    shares_.unknown_ns += until - operators;
  }

  const std::vector<Interval>& gaps_;
  size_t gap_ = 0;
  int64_t now_ns_ = std::numeric_limits<int64_t>::min();
  std::array<int64_t, 3> ends_{};
  HostShares shares_;
};

}  // namespace

HostShares AttributeToHost(const RankContext& context, const std::vector<Interval>& gaps) {
  std::vector<HostClassCursor> cursors;
  HostRoles roles(context.names());
  for (const model::Track& track : context.trace().tracks) {
    if (track.lane == model::Lane::kOperators || track.lane == model::Lane::kRuntime)
      cursors.emplace_back(track, roles);
  }
  GapWalk walk(gaps);
  MergeByStart(cursors,
               [&walk](const HostClassCursor& cursor) { walk.Add(cursor.start(), cursor.end(), cursor.host_class()); });
  return walk.Finish();
}

}  // namespace lockstep::analysis
