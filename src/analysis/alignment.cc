#include "analysis/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "analysis/clock_fit.h"
#include "analysis/parts_in_time.h"
#include "analysis/stamping_error.h"

namespace lockstep::analysis {
namespace {

using model::ClockMap;

constexpr size_t kMaxMembers = 4'000'000;     // beyond it, every k-th instance of each group is used
constexpr uint64_t kTrustedSampleCount = 8;   // fewer tie points are used only where nothing better connects a rank
constexpr int64_t kHostClockErrorNs = 1'000;  // processes of one host stamp with one clock, converted in each process
constexpr int kUnreached = std::numeric_limits<int>::max();

bool SameKnownHost(const model::RankTrace& a, const model::RankTrace& b) { return !a.host.empty() && a.host == b.host; }

/// Aligns the ranks of one window, [first, first + count) of the run.
class WindowAligner {
 public:
  WindowAligner(const Collectives& collectives, size_t first, size_t count, model::Run* run)
      : run_(run), first_(first), level_(count, kUnreached) {
    Collect(collectives);
  }

  void Align() {
    ClockMap& reference = Clock(0);
    reference = {};
    reference.basis = ClockMap::Basis::kReference;
    reference.uncertainty_ns = 0;
    level_[0] = 0;
    uint64_t fewest = kTrustedSampleCount;
    while (true) {
      if (Extend(fewest)) {
        fewest = kTrustedSampleCount;
      } else if (fewest > 1) {
        fewest = 1;
      } else {
        break;
      }
    }
    ShareHostClocks();
    NoteUnaligned();
    NoteImpossible();
  }

 private:
  ClockMap& Clock(size_t r) { return run_->ranks[first_ + r].clock; }
  const model::RankTrace& Trace(size_t r) const { return run_->ranks[first_ + r]; }

  void Collect(const Collectives& collectives) {
    const auto is_tie_point = [this](const CollectiveInstance& instance) {
      return instance.synchronising && instance.members.size() > 1 && instance.members.front().rank_index >= first_ &&
             instance.members.back().rank_index < first_ + level_.size();
    };
    size_t members = 0;
    for (const CollectiveInstance& instance : collectives.instances) {
      if (is_tie_point(instance)) members += instance.members.size();
    }
    const size_t stride = members / kMaxMembers + 1;
    std::unordered_map<std::string, size_t> seen;
    for (const CollectiveInstance& instance : collectives.instances) {
      if (!is_tie_point(instance)) continue;
      if (stride == 1 || seen[instance.group]++ % stride == 0) ties_.push_back(&instance);
    }
  }

  /// The member whose clock is known best: nearest to the reference, then lowest. nullptr if none is known.
  const CollectiveMember* KnownMember(const CollectiveInstance& instance) const {
    const CollectiveMember* best = nullptr;
    for (const CollectiveMember& member : instance.members) {
      const int level = level_[member.rank_index - first_];
      if (level == kUnreached) continue;
      if (best == nullptr || level < level_[best->rank_index - first_]) best = &member;
    }
    return best;
  }

  /// Aligns every rank that shares `fewest` tie points or more with one that is aligned; false when there is none.
  bool Extend(uint64_t fewest) {
    std::map<std::pair<size_t, size_t>, uint64_t> shared;  // (unknown rank, known rank) -> tie points
    for (const CollectiveInstance* tie : ties_) {
      const CollectiveMember* known = KnownMember(*tie);
      if (known == nullptr) continue;
      for (const CollectiveMember& member : tie->members) {
        const size_t r = member.rank_index - first_;
        if (level_[r] == kUnreached) ++shared[{r, known->rank_index - first_}];
      }
    }
    std::map<size_t, std::pair<uint64_t, size_t>> parents;  // rank -> (tie points, known rank)
    for (const auto& [pair, count] : shared) {
      auto& best = parents[pair.first];
      if (count >= fewest && count > best.first) best = {count, pair.second};
    }
    std::map<size_t, std::vector<ClockSample>> samples;
    for (const CollectiveInstance* tie : ties_) {
      const CollectiveMember* known = KnownMember(*tie);
      if (known == nullptr) continue;
      const size_t p = known->rank_index - first_;
      const int64_t known_end_ns = Clock(p).ToRun(known->trace_end_ns);
      for (const CollectiveMember& member : tie->members) {
        const size_t r = member.rank_index - first_;
        const auto parent = parents.find(r);
        if (parent == parents.end() || parent->second.first == 0 || parent->second.second != p) continue;
        samples[r].push_back({member.trace_end_ns, member.trace_end_ns - known_end_ns});
      }
    }
    for (auto& [r, points] : samples) {
      const size_t p = parents[r].second;
      SetClock(r, p, FitClock(std::move(points)));
    }
    for (auto& [r, points] : samples) level_[r] = level_[parents[r].second] + 1;
    return !samples.empty();
  }

  void SetClock(size_t r, size_t parent, const ClockFit& fit) {
    ClockMap& clock = Clock(r);
    const int64_t uncertainty_ns = fit.uncertainty_ns + Clock(parent).uncertainty_ns.value_or(0);
    clock = {};
    clock.basis = ClockMap::Basis::kCollectives;
    clock.offset_ns = fit.offset_ns;
    clock.reference_ns = fit.reference_ns;
    clock.drift_ppm = fit.drift_ppm;
    clock.uncertainty_ns = uncertainty_ns;
    clock.sample_count = fit.sample_count;
    KeepWallClockIfItAgrees(r, fit.span_ns);
  }

  /// If the wall clocks agree over all tie points, within their uncertainty, they are better than a correction by
  /// noise: the ranks of one host use one clock, and a busy host delays the ends of collectives for seconds, which
  /// looks like drift.
  void KeepWallClockIfItAgrees(size_t r, int64_t span_ns) {
    ClockMap& clock = Clock(r);
    if (!Trace(r).base_time_known || !Trace(0).base_time_known) return;
    const bool same_host = SameKnownHost(Trace(r), Trace(0));
    const int64_t agreed_ns = *clock.uncertainty_ns * (same_host ? 3 : 1);
    for (const int64_t end_ns : {clock.reference_ns - span_ns / 2, clock.reference_ns + span_ns / 2}) {
      if (std::abs(clock.OffsetAt(end_ns)) > agreed_ns) return;
    }
    clock.basis = ClockMap::Basis::kWallClock;
    clock.offset_ns = 0;
    clock.drift_ppm = 0;
    if (same_host) clock.uncertainty_ns = std::min(*clock.uncertainty_ns, kHostClockErrorNs);
  }

  /// Ranks of one host take over the estimate of the one that knows best, if theirs agree with it.
  void ShareHostClocks() {
    std::map<std::string, size_t> best;
    for (size_t r = 0; r < level_.size(); ++r) {
      if (Trace(r).host.empty() || level_[r] == kUnreached || !Trace(r).base_time_known) continue;
      const auto [slot, is_new] = best.emplace(Trace(r).host, r);
      if (!is_new && *Clock(r).uncertainty_ns < *Clock(slot->second).uncertainty_ns) slot->second = r;
    }
    for (size_t r = 1; r < level_.size(); ++r) {
      const auto slot = best.find(Trace(r).host);
      if (slot == best.end() || slot->second == r || !Trace(r).base_time_known) continue;
      const ClockMap& source = Clock(slot->second);
      ClockMap& clock = Clock(r);
      if (source.basis == ClockMap::Basis::kReference) continue;  // KeepWallClockIfItAgrees has seen to it
      if (level_[r] != kUnreached) {
        const int64_t apart_ns = std::abs(clock.offset_ns - source.OffsetAt(clock.reference_ns));
        if (clock.basis != ClockMap::Basis::kCollectives || apart_ns > *clock.uncertainty_ns + *source.uncertainty_ns)
          continue;
      }
      const uint32_t own_samples = clock.sample_count;
      clock = source;
      clock.sample_count = own_samples;
      clock.uncertainty_ns = *source.uncertainty_ns + (level_[r] == kUnreached ? kHostClockErrorNs : 0);
      level_[r] = level_[slot->second];
    }
  }

  void NoteUnaligned() {
    for (size_t r = 0; r < level_.size(); ++r) {
      if (level_[r] != kUnreached) continue;
      Clock(r) = {};
      model::LedgerEntry entry;
      entry.code = "clock_not_aligned";
      entry.source = Trace(r).source;
      entry.rank = Trace(r).rank.value;
      entry.message = "shares no synchronising collective with the other ranks; its times are its own wall clock";
      entry.advice = "do not compare its arrival times with other ranks'";
      run_->ledger.Add(std::move(entry));
    }
  }

  /// Causality: no member leaves a synchronising collective before all have arrived.
  void NoteImpossible() {
    uint64_t count = 0;
    int64_t worst_ns = 0;
    for (const CollectiveInstance* tie : ties_) {
      int64_t worst_here_ns = 0;
      const CollectiveMember* late = Latest(*tie);
      const ClockMap& late_clock = Clock(late->rank_index - first_);
      for (const CollectiveMember& early : tie->members) {
        const ClockMap& early_clock = Clock(early.rank_index - first_);
        if (!early_clock.uncertainty_ns || !late_clock.uncertainty_ns) continue;
        const int64_t gap_ns = late_clock.ToRun(late->trace_start_ns) - early_clock.ToRun(early.trace_end_ns);
        const int64_t doubt_ns = *early_clock.uncertainty_ns + *late_clock.uncertainty_ns + kStampingErrorNs;
        if (gap_ns > doubt_ns) worst_here_ns = std::max(worst_here_ns, gap_ns);
      }
      if (worst_here_ns > 0) ++count;
      worst_ns = std::max(worst_ns, worst_here_ns);
    }
    if (count == 0) return;
    model::LedgerEntry entry;
    entry.code = "collective_causality";
    entry.count = count;
    entry.message = fmt::format("{} of {} collectives end on one rank before they begin on another, by up to {:.3f} ms",
                                count, ties_.size(), static_cast<double>(worst_ns) / 1e6);
    entry.advice = "these were joined wrongly or a clock jumped; no waiting is counted for them";
    run_->ledger.Add(std::move(entry));
  }

  const CollectiveMember* Latest(const CollectiveInstance& instance) {
    const CollectiveMember* latest = &instance.members.front();
    int64_t latest_ns = Clock(latest->rank_index - first_).ToRun(latest->trace_start_ns);
    for (const CollectiveMember& member : instance.members) {
      const int64_t arrival_ns = Clock(member.rank_index - first_).ToRun(member.trace_start_ns);
      if (arrival_ns <= latest_ns) continue;
      latest_ns = arrival_ns;
      latest = &member;
    }
    return latest;
  }

  model::Run* const run_;
  const size_t first_;
  std::vector<int> level_;  // hops to the reference, by rank of the window
  std::vector<const CollectiveInstance*> ties_;
};

}  // namespace

void AlignClocks(const Collectives& collectives, model::Run* run) {
  for (const model::LedgerEntry& note : collectives.notes) run->ledger.Add(note);
  for (size_t first = 0; first < run->ranks.size();) {
    size_t count = 1;
    while (first + count < run->ranks.size() && run->ranks[first + count].window == run->ranks[first].window) ++count;
    const auto begin = run->ranks.begin() + static_cast<ptrdiff_t>(first);
    const bool aligned = std::all_of(begin, begin + static_cast<ptrdiff_t>(count),
                                     [](const model::RankTrace& trace) { return trace.clock_is_aligned; });
    if (!aligned) WindowAligner(collectives, first, count, run).Align();
    CloseGaps(first, count, run);
    first += count;
  }
}

}  // namespace lockstep::analysis
