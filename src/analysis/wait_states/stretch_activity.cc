#include "analysis/wait_states/stretch_activity.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/wait_states/host_pieces.h"
#include "analysis/wait_states/piece_list.h"

namespace lockstep::analysis {
namespace {

constexpr uint32_t kWaitEntry = kRootCauseCount;
constexpr uint32_t kTransferEntry = kRootCauseCount + 1;

/// Sums by (segment, what), segments being what lies between any two borders of stretches.
class Ledger {
 public:
  explicit Ledger(std::vector<int64_t> borders) : borders_(std::move(borders)) {}

  /// Quick for spans that come in order.
  void Book(Interval span, uint32_t what, uint32_t which) {
    if (borders_.empty() || span.end_ns <= borders_.front()) return;
    span.start_ns = std::max(span.start_ns, borders_.front());
    if (span.start_ns >= span.end_ns) return;
    if (next_ == 0 || borders_[next_ - 1] > span.start_ns) {
      next_ = static_cast<size_t>(std::upper_bound(borders_.begin(), borders_.end(), span.start_ns) - borders_.begin());
    }
    while (next_ < borders_.size() && borders_[next_] <= span.start_ns) ++next_;
    if (next_ == borders_.size()) return;
    std::vector<int64_t>* sums = what < kWaitEntry ? &SumsOf(what, which) : nullptr;
    for (size_t at = next_; at < borders_.size() && span.start_ns < span.end_ns; ++at) {
      const int64_t until_ns = std::min(span.end_ns, borders_[at]);
      if (sums != nullptr) {
        (*sums)[at - 1] += until_ns - span.start_ns;
      } else {
        waits_.push_back({at - 1, {what, which, until_ns - span.start_ns}});
      }
      span.start_ns = until_ns;
    }
  }

  struct Entry {
    uint32_t what = 0;
    uint32_t which = 0;
    int64_t duration_ns = 0;
  };

  /// What was booked in the segments [from, to): of collectives piece by piece in the order of booking, of all else
  /// added up, by (what, which); only where there is any.
  std::vector<Entry> Sums(size_t from, size_t to) const {
    std::vector<Entry> entries;
    const auto begins = [](const WaitPiece& piece, size_t segment) { return piece.segment < segment; };
    const auto last = std::lower_bound(waits_.begin(), waits_.end(), to, begins);
    for (auto at = std::lower_bound(waits_.begin(), last, from, begins); at != last; ++at) entries.push_back(at->entry);
    const auto first_sum = static_cast<std::ptrdiff_t>(entries.size());
    for (const Column& column : columns_) {
      int64_t sum_ns = 0;
      for (size_t segment = from; segment < to; ++segment) sum_ns += column.sums[segment];
      if (sum_ns > 0) entries.push_back({column.what, column.which, sum_ns});
    }
    std::sort(entries.begin() + first_sum, entries.end(),
              [](const Entry& a, const Entry& b) { return std::tie(a.what, a.which) < std::tie(b.what, b.which); });
    return entries;
  }

  /// Once all is booked.
  void Finish() {
    SortRuns(&waits_, [](const WaitPiece& piece) { return piece.segment; });
  }

  const std::vector<int64_t>& borders() const { return borders_; }

 private:
  /// Many collectives, each in a few segments.
  struct WaitPiece {
    size_t segment = 0;
    Entry entry;
  };
  /// Few names, each in most segments.
  struct Column {
    uint32_t what = 0;
    uint32_t which = 0;
    std::vector<int64_t> sums;  // by segment
  };

  std::vector<int64_t>& SumsOf(uint32_t what, uint32_t which) {
    std::vector<uint32_t>& slots = slots_[what];
    if (slots.size() <= which) slots.resize(size_t{which} + 1, 0);
    if (slots[which] == 0) {
      columns_.push_back({what, which, std::vector<int64_t>(borders_.size(), 0)});
      slots[which] = static_cast<uint32_t>(columns_.size());
    }
    return columns_[slots[which] - 1].sums;
  }

  std::vector<int64_t> borders_;
  size_t next_ = 0;                                      ///< Border behind the last span's start.
  std::array<std::vector<uint32_t>, kWaitEntry> slots_;  ///< By what and which: 1 + index of the column.
  std::vector<Column> columns_;
  std::vector<WaitPiece> waits_;
};

struct Booked {
  Interval span;
  uint32_t what = 0;
  uint32_t which = 0;
};

/// In order of start; each instant stays with the piece that had it first.
void MakeDisjoint(std::vector<Booked>* pieces) {
  SortRuns(pieces, [](const Booked& piece) { return piece.span.start_ns; });
  int64_t covered_ns = std::numeric_limits<int64_t>::min();
  for (Booked& piece : *pieces) {
    piece.span.start_ns = std::max(piece.span.start_ns, covered_ns);
    covered_ns = std::max(covered_ns, piece.span.end_ns);
  }
  std::erase_if(*pieces, [](const Booked& piece) { return piece.span.start_ns >= piece.span.end_ns; });
}

class StretchMeter {
 public:
  StretchMeter(const RunContext& shared, const WaitRankTask& task, size_t rank_index)
      : shared_(shared),
        trace_(shared.run->ranks[rank_index]),
        task_(task),
        kinds_(shared.run->names),
        threads_(trace_, &kinds_),
        ledger_({}) {}

  WaitRankActivity Measure() {
    std::vector<Interval> spans;
    std::vector<int64_t> borders;
    for (const WaitStretch& stretch : task_.stretches) {
      Interval span;
      span.start_ns = stretch.from ? MemberAt(*stretch.from).trace_end_ns : task_.record_start_ns;
      span.end_ns = std::max(span.start_ns, MemberAt(stretch.to).trace_start_ns);
      spans.push_back(span);
      borders.push_back(span.start_ns);
      borders.push_back(span.end_ns);
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    ledger_ = Ledger(std::move(borders));
    wanted_ = Unite(spans);
    for (const CollectiveMember& member : task_.members) {
      if (member.issue) threads_.AddIssuer({member.issue->process_id, member.issue->thread_id});
    }
    if (trace_.HasDeviceEvents()) {
      BookDevice();
    } else {
      BookHostOnly();
    }
    return Collect(spans);
  }

 private:
  const CollectiveMember& MemberAt(uint32_t p) const { return task_.members[p]; }

  void Book(const Booked& piece) { ledger_.Book(piece.span, piece.what, piece.which); }

  /// Books what of `pieces` lies outside `cover` and in the wanted time, and adds it to the cover.
  void BookOutside(std::vector<Booked> pieces, std::vector<Interval>* cover) {
    MakeDisjoint(&pieces);
    std::vector<Interval> spans;
    for (const Booked& piece : pieces) spans.push_back(piece.span);
    VisitOutside(spans, *cover, [&](size_t i, Interval part) { Book({part, pieces[i].what, pieces[i].which}); });
    cover->insert(cover->end(), spans.begin(), spans.end());
    *cover = Unite(std::move(*cover));
  }

  /// The rank's own collectives: waiting up to the last arrival, then transfer.
  std::vector<Booked> OwnCollectives() const {
    std::vector<Booked> pieces;
    for (uint32_t p = 0; p < task_.members.size(); ++p) {
      const CollectiveMember& member = MemberAt(p);
      const int64_t wait_ns = task_.waits_ns[p];
      const int64_t ready_ns = std::clamp(member.trace_start_ns + wait_ns, member.trace_start_ns, member.trace_end_ns);
      pieces.push_back({{member.trace_start_ns, ready_ns}, kWaitEntry, p});
      pieces.push_back({{ready_ns, member.trace_end_ns}, kTransferEntry, p});
    }
    return pieces;
  }

  class StreamCursor {
   public:
    explicit StreamCursor(const model::EventColumns* events) : events_(events) {}
    bool done() const { return row_ >= events_->size(); }
    int64_t start() const { return events_->start_ns[row_]; }
    const model::EventColumns& events() const { return *events_; }
    size_t row() const { return row_; }
    void Next() { ++row_; }

   private:
    const model::EventColumns* events_;
    size_t row_ = 0;
  };

  /// A device event before which the device was idle.
  struct GapEnd {
    int64_t start_ns = 0;
    uint32_t correlation = 0;
    NameId name;
  };

  void BookDevice() {
    std::vector<StreamCursor> cursors;
    for (const model::Track& track : trace_.tracks) {
      if (track.lane == model::Lane::kDevice) cursors.emplace_back(&track.events);
    }
    std::vector<Booked> kernels;
    std::vector<Booked> copies;
    std::vector<Interval> others;
    std::vector<GapEnd> gap_ends;
    int64_t busy_until_ns = std::numeric_limits<int64_t>::min();
    size_t window = 0;
    MergeByStart(cursors, [&](const StreamCursor& cursor) {
      const model::EventColumns& events = cursor.events();
      const size_t i = cursor.row();
      const int64_t end_ns = events.end_ns(i);
      const bool after_gap = cursor.start() > busy_until_ns;
      busy_until_ns = std::max(busy_until_ns, end_ns);
      while (window < wanted_.size() && wanted_[window].end_ns < cursor.start()) ++window;
      if (window == wanted_.size() || end_ns < wanted_[window].start_ns) return;
      if (after_gap) gap_ends.push_back({cursor.start(), events.correlation[i], events.name[i]});
      const uint32_t name = events.name[i].value;
      const Interval span{cursor.start(), end_ns};
      if (events.category[i] != model::Category::kKernel) {
        copies.push_back({span, static_cast<uint32_t>(RootCause::kCopy), name});
      } else if (name < shared_.is_communication.size() && shared_.is_communication[name]) {
        others.push_back(span);
      } else {
        kernels.push_back({span, static_cast<uint32_t>(RootCause::kKernel), name});
      }
    });
    std::vector<Interval> cover;
    BookOutside(std::move(kernels), &cover);
    BookOutside(std::move(copies), &cover);
    BookOutside(OwnCollectives(), &cover);
    cover.insert(cover.end(), others.begin(), others.end());
    BookIdle(Unite(std::move(cover)), gap_ends);
  }

  struct Launch {
    int64_t end_ns = 0;
    ThreadKey thread;
  };

  std::unordered_map<uint32_t, Launch> FindLaunches(const std::vector<GapEnd>& gap_ends) const {
    std::unordered_map<uint32_t, Launch> launches;
    for (const GapEnd& gap : gap_ends) {
      if (gap.correlation != 0) launches.emplace(gap.correlation, Launch{std::numeric_limits<int64_t>::min(), {}});
    }
    if (launches.empty()) return launches;
    for (const model::Track& track : trace_.tracks) {
      if (track.lane != model::Lane::kRuntime) continue;
      for (size_t i = 0; i < track.events.correlation.size(); ++i) {
        const auto found = launches.find(track.events.correlation[i]);
        if (found != launches.end()) {
          found->second = {track.events.end_ns(i), {track.process_id, track.thread_id}};
        }
      }
    }
    return launches;
  }

  void BookIdle(const std::vector<Interval>& busy, const std::vector<GapEnd>& gap_ends) {
    const std::unordered_map<uint32_t, Launch> launches = FindLaunches(gap_ends);
    std::map<ThreadKey, std::vector<Interval>> by_thread;
    std::vector<Interval> rest;
    VisitOutside(wanted_, busy, [&](size_t, Interval gap) {
      const auto end = std::lower_bound(gap_ends.begin(), gap_ends.end(), gap.end_ns,
                                        [](const GapEnd& at, int64_t time_ns) { return at.start_ns < time_ns; });
      const auto launch = end == gap_ends.end() ? launches.end() : launches.find(end->correlation);
      if (launch == launches.end() || launch->second.end_ns == std::numeric_limits<int64_t>::min()) {
        rest.push_back(gap);
        return;
      }
      const int64_t called_ns = std::clamp(launch->second.end_ns, gap.start_ns, gap.end_ns);
      if (called_ns > gap.start_ns) by_thread[launch->second.thread].push_back({gap.start_ns, called_ns});
      Book({{called_ns, gap.end_ns}, static_cast<uint32_t>(RootCause::kLaunchDelay), end->name.value});
    });
    for (const auto& [thread, windows] : by_thread) {
      threads_.AddIssuer(thread);
      BookThread(thread, windows, &rest);
    }
    for (const ThreadKey& thread : threads_.Issuers()) {
      std::vector<Interval> left;
      BookThread(thread, Unite(std::move(rest)), &left);
      rest = std::move(left);
    }
    for (const Interval& span : rest) Book({span, static_cast<uint32_t>(RootCause::kNothingRecorded), 0});
  }

  void BookThread(ThreadKey thread, const std::vector<Interval>& windows, std::vector<Interval>* rest) {
    for (const ThreadPortion& piece : threads_.Cut(thread, windows, rest)) {
      Book({piece.span, static_cast<uint32_t>(piece.cause), piece.name.value});
    }
  }

  void BookHostOnly() {
    std::map<HostGrip, std::vector<Booked>> pieces;
    const std::vector<ThreadKey> issuers = threads_.Issuers();
    for (const ThreadKey& thread : threads_.Workers()) {
      const bool issues = std::binary_search(issuers.begin(), issuers.end(), thread);
      std::vector<Interval> unused;
      for (const ThreadPortion& piece : threads_.Cut(thread, wanted_, &unused)) {
        if (!issues && piece.grip == HostGrip::kAround) continue;
        pieces[piece.grip].push_back({piece.span, static_cast<uint32_t>(piece.cause), piece.name.value});
      }
    }
    std::vector<Interval> cover;
    BookOutside(std::move(pieces[HostGrip::kNamed]), &cover);
    BookOutside(std::move(pieces[HostGrip::kOperator]), &cover);
    BookOutside(OwnCollectives(), &cover);
    cover.insert(cover.end(), task_.unexplained.begin(), task_.unexplained.end());
    cover = Unite(std::move(cover));
    BookOutside(std::move(pieces[HostGrip::kAround]), &cover);
    VisitOutside(wanted_, cover, [&](size_t, Interval span) {
      Book({span, static_cast<uint32_t>(RootCause::kNothingRecorded), 0});
    });
  }

  /// Adds the segments of every stretch.
  WaitRankActivity Collect(const std::vector<Interval>& spans) {
    ledger_.Finish();
    const std::vector<int64_t>& borders = ledger_.borders();
    const auto segment_at = [&](int64_t time_ns) {
      return static_cast<size_t>(std::lower_bound(borders.begin(), borders.end(), time_ns) - borders.begin());
    };
    WaitRankActivity activity;
    for (const Interval& span : spans) {
      std::map<uint32_t, OwnWait> waits;
      StretchActivity& stretch = activity.stretches.emplace_back();
      for (const Ledger::Entry& entry : ledger_.Sums(segment_at(span.start_ns), segment_at(span.end_ns))) {
        if (entry.what < kWaitEntry) {
          stretch.shares.push_back({static_cast<RootCause>(entry.what), NameId{entry.which}, entry.duration_ns});
        } else {
          OwnWait& wait = waits[entry.which];
          wait.place = entry.which;
          (entry.what == kWaitEntry ? wait.wait_ns : wait.transfer_ns) += entry.duration_ns;
        }
      }
      for (const auto& [place, wait] : waits) stretch.waits.push_back(wait);
    }
    return activity;
  }

  const RunContext& shared_;
  const model::RankTrace& trace_;
  const WaitRankTask& task_;
  HostKinds kinds_;
  HostThreads threads_;
  Ledger ledger_;
  std::vector<Interval> wanted_;
};

}  // namespace

WaitRankTask MakeWaitRankTask(const Collectives& collectives, const WaitPlan& plan, size_t rank_index) {
  WaitRankTask task;
  if (plan.stretches[rank_index].empty()) return task;
  task.record_start_ns = plan.record_start_ns[rank_index];
  task.stretches = plan.stretches[rank_index];
  task.unexplained = plan.unexplained[rank_index];
  for (const SequencePlace& place : plan.places[rank_index]) {
    task.members.push_back(collectives.instances[place.instance].members[place.member]);
    task.waits_ns.push_back(plan.WaitOf(collectives, place.instance, place.member));
  }
  return task;
}

WaitRankActivity MapWaitActivity(const RunContext& shared, const WaitRankTask& task, size_t rank_index) {
  if (task.stretches.empty()) return {};
  return StretchMeter(shared, task, rank_index).Measure();
}

}  // namespace lockstep::analysis
