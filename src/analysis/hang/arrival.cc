#include "analysis/hang/arrival.h"

#include <algorithm>

#include "base/median.h"
#include "base/nanoseconds.h"

namespace lockstep::hang {
namespace {

constexpr int64_t kNoTime = INT64_MIN;
constexpr int64_t kLateNs = kMillisecondNs;
/// What a straggler is: late on its own account, beyond the job's median rank, for this share of the time and so long
/// in all, and so often.
constexpr double kShare = 0.15;
constexpr int64_t kTimes = 3;
constexpr int64_t kTotalNs = 50'000'000;
/// Times come from files: longer ones (104 days) are nonsense, and count as so much only, so that sums do not overflow.
constexpr int64_t kLongestNs = int64_t{1} << 53;

/// Of each of a group's calls that all its members' records hold.
struct Span {
  int64_t first = INT64_MAX;  ///< Arrival.
  int64_t last = INT64_MIN;
  int64_t least_own = INT64_MAX;  ///< Of the members: from being let go by the call before to arriving here.
  uint32_t count = 0;
};

/// Only the newest calls of each rank: enough to tell which rank is late, and what that cost recently.
constexpr size_t kNewestCalls = 256;

struct GroupSpans {
  int64_t low = INT64_MAX;
  std::vector<Span> spans;
  Span* At(int64_t sequence, size_t members) {
    const auto index = static_cast<uint64_t>(sequence) - static_cast<uint64_t>(low);
    if (sequence < low || index >= spans.size() || spans[index].count < members) {
      return nullptr;
    }
    return &spans[index];
  }
};

GroupSpans SpansOf(const JobView& view, const GroupView& group) {
  GroupSpans result;
  int64_t high = INT64_MAX;
  result.low = INT64_MIN;
  for (const Track& track : group.tracks) {
    if (!track.calls.empty()) {
      result.low = std::max(result.low, track.calls.front().sequence);
      high = std::min(high, track.calls.back().sequence);
    }
  }
  result.low = std::max(result.low, high - static_cast<int64_t>(kNewestCalls));
  constexpr int64_t kMaxSpan = 1 << 20;
  if (group.tracks.size() < group.members.size() || high < result.low ||
      static_cast<uint64_t>(high) - static_cast<uint64_t>(result.low) > kMaxSpan) {
    return {};
  }
  result.spans.resize(static_cast<size_t>(high - result.low) + 1);
  for (const Track& track : group.tracks) {
    for (size_t i = track.calls.size(); i-- > 0 && track.calls[i].sequence >= result.low;) {
      const Call& call = track.calls[i];
      if (call.sequence > high) {
        continue;
      }
      const int64_t created = view.EntryOf(track, call.entry).created_unix_ns;
      if (created == evidence::kNotRecorded) {
        continue;
      }
      Span& span = result.spans[static_cast<size_t>(call.sequence - result.low)];
      span.first = std::min(span.first, created);
      span.last = std::max(span.last, created);
      ++span.count;
    }
  }
  return result;
}

struct Item {
  uint32_t entry = 0;
  uint32_t group = 0;
  int64_t sequence = 0;
  int64_t created = 0;
  int64_t own = kNoTime;  ///< From being let go by the call before to arriving.
  Span* span = nullptr;
};

std::vector<Item> NewestItems(const JobView& view, const RankView& rank) {
  std::vector<Item> items;
  for (const uint32_t g : rank.groups) {
    const Track* track = view.groups[g].TrackOf(rank.rank);
    const size_t from = track->calls.size() > kNewestCalls ? track->calls.size() - kNewestCalls : 0;
    for (size_t i = from; i < track->calls.size(); ++i) {
      const int64_t created = view.EntryOf(*track, track->calls[i].entry).created_unix_ns;
      if (created != evidence::kNotRecorded) {
        items.push_back({track->calls[i].entry, g, track->calls[i].sequence, created});
      }
    }
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.entry < b.entry; });
  if (items.size() > kNewestCalls) {
    items.erase(items.begin(), items.end() - static_cast<ptrdiff_t>(kNewestCalls));
  }
  return items;
}

/// The median of what ranks are late on their own account, of an even number the lower: half of them may be slow.
int64_t UsualDelay(const std::vector<Arrival>& ranks) {
  std::vector<int64_t> delays;
  for (const Arrival& arrival : ranks) {
    if (arrival.calls > 0) {
      delays.push_back(arrival.own_delay_ns);
    }
  }
  if (delays.empty()) {
    return 0;
  }
  return LowerMedian(&delays);
}

}  // namespace

ArrivalTable MeasureArrival(const JobView& view) {
  ArrivalTable table;
  table.ranks.resize(view.ranks.size());
  std::vector<GroupSpans> spans;
  spans.reserve(view.groups.size());
  for (const GroupView& group : view.groups) {
    spans.push_back(group.members.size() > 1 ? SpansOf(view, group) : GroupSpans{});
  }
  int64_t begin = INT64_MAX;
  int64_t end = INT64_MIN;
  std::vector<std::vector<Item>> items(view.ranks.size());
  for (size_t r = 0; r < view.ranks.size(); ++r) {
    table.ranks[r].rank = view.ranks[r].rank;
    items[r] = NewestItems(view, view.ranks[r]);
    int64_t let_go = kNoTime;  // When the rank's previous call could complete: its last member came.
    int64_t before = kNoTime;
    for (Item& item : items[r]) {
      if (before != kNoTime) {
        table.longest_gap_ns = std::max(table.longest_gap_ns, std::min(item.created - before, kLongestNs));
      }
      before = item.created;
      item.span = spans[item.group].At(item.sequence, view.groups[item.group].members.size());
      if (item.span == nullptr) {
        continue;
      }
      begin = std::min(begin, item.created);
      end = std::max(end, item.created);
      if (let_go != kNoTime) {
        item.own = std::max<int64_t>(0, item.created - let_go);
        item.span->least_own = std::min(item.span->least_own, item.own);
      }
      let_go = item.span->last;
    }
  }
  int64_t most = 0;
  for (size_t r = 0; r < view.ranks.size(); ++r) {
    Arrival& arrival = table.ranks[r];
    int64_t worst = 0;
    for (const Item& item : items[r]) {
      if (item.span == nullptr) {
        continue;
      }
      ++arrival.calls;
      arrival.lateness_ns += std::min(item.created - item.span->first, kLongestNs);
      if (item.own == kNoTime) {
        continue;
      }
      // What the quickest member needed from being let go to coming is the work; more is this rank's own delay. What it
      // inherits from late partners lies before its being let go.
      const int64_t own = std::min({item.own - item.span->least_own, item.created - item.span->first, kLongestNs});
      if (own > kLateNs) {
        arrival.own_delay_ns += own;
        ++arrival.late_calls;
        if (own > worst) {
          worst = own;
          arrival.worst_group = item.group;
          arrival.worst_sequence = item.sequence;
          arrival.worst_entry = item.entry;
        }
      }
    }
    most = std::max(most, arrival.own_delay_ns);
  }
  table.span_ns = end > begin ? end - begin : 0;
  if (table.span_ns == 0) {
    return table;
  }
  table.share = static_cast<double>(most) / static_cast<double>(table.span_ns);
  // On a busy machine every rank is late now and then: a straggler is so beyond what is usual in this job.
  const int64_t usual = UsualDelay(table.ranks);
  const int64_t beyond = most - usual;
  if (static_cast<double>(beyond) < kShare * static_cast<double>(table.span_ns) || beyond < kTotalNs) {
    return table;
  }
  for (const Arrival& arrival : table.ranks) {
    if ((arrival.own_delay_ns - usual) * 2 >= beyond && arrival.late_calls >= kTimes) {
      table.stragglers.push_back(arrival.rank);
    }
  }
  return table;
}

}  // namespace lockstep::hang
