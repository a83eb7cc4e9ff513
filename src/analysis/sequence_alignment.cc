#include "analysis/sequence_alignment.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/median.h"

namespace lockstep::analysis {
namespace {

using Tokens = std::vector<SequenceToken>;
/// Per element of the second list its position in the first, kNoPosition when it has none. Increasing where set.
using Mapping = std::vector<int64_t>;
constexpr int64_t kNoPosition = -1;
constexpr int64_t kMaxEdits = 1000;
constexpr size_t kTimeSamples = 63;
constexpr int64_t kMarginNs = 20'000;      // by which ends of one thing differ, by the stamping alone
constexpr int64_t kDriftDivisor = 10'000;  // two clocks drift apart by less than one part in this many
constexpr int64_t kFarNs = 1'000'000;
constexpr size_t kMaxShifts = 16;
constexpr size_t kMaxGapPairs = 1 << 16;

/// Longest border table of a pattern (Knuth, Morris and Pratt).
std::vector<size_t> BorderTable(const Tokens& pattern) {
  std::vector<size_t> border(pattern.size(), 0);
  for (size_t i = 1, k = 0; i < pattern.size(); ++i) {
    while (k > 0 && pattern[i].exact != pattern[k].exact) k = border[k - 1];
    if (pattern[i].exact == pattern[k].exact) ++k;
    border[i] = k;
  }
  return border;
}

struct Occurrences {
  std::vector<size_t> starts;  // where the whole pattern lies in the text
  size_t tail = 0;             // length of the longest suffix of the text that is a prefix of the pattern
};

Occurrences FindOccurrences(const Tokens& text, const Tokens& pattern) {
  Occurrences found;
  const std::vector<size_t> border = BorderTable(pattern);
  size_t k = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (k == pattern.size()) k = border[k - 1];
    while (k > 0 && text[i].exact != pattern[k].exact) k = border[k - 1];
    if (text[i].exact == pattern[k].exact) ++k;
    if (k == pattern.size()) found.starts.push_back(i + 1 - k);
  }
  found.tail = k;
  return found;
}

/// How elements that are joined lie in time: as they end together, how far apart is the same for all.
struct TimeFit {
  int64_t distance_ns = 0;  // median of the second's end less the first's
  int64_t spread_ns = 0;    // median deviation from that
};

TimeFit FitOf(std::vector<int64_t> distances) {
  if (distances.empty()) return {};
  TimeFit fit;
  fit.distance_ns = UpperMedian(&distances);
  for (int64_t& distance : distances) distance = std::abs(distance - fit.distance_ns);
  fit.spread_ns = UpperMedian(&distances);
  return fit;
}

/// Of `count` pairs (a[a_begin + i], b[b_begin + i]).
TimeFit FitOf(const Tokens& a, size_t a_begin, const Tokens& b, size_t b_begin, size_t count) {
  std::vector<int64_t> distances;
  const size_t step = std::max<size_t>(1, count / kTimeSamples);
  for (size_t i = 0; i < count; i += step) distances.push_back(b[b_begin + i].time_ns - a[a_begin + i].time_ns);
  return FitOf(std::move(distances));
}

bool IsClearlyTighter(const TimeFit& fit, const TimeFit& other) {
  return 4 * fit.spread_ns + kMarginNs < other.spread_ns;
}

Mapping Shifted(size_t b_size, size_t a_begin, size_t b_begin, size_t count) {
  Mapping mapping(b_size, kNoPosition);
  for (size_t i = 0; i < count; ++i) mapping[b_begin + i] = static_cast<int64_t>(a_begin + i);
  return mapping;
}

/// Of several places of the whole pattern in the text: where the ends lie equally far apart and, where that leaves a
/// choice, the nearest in time.
size_t BestStart(const Tokens& text, const Tokens& pattern, const std::vector<size_t>& starts, bool* ambiguous) {
  if (starts.size() == 1) return starts.front();
  const size_t step = std::max<size_t>(1, starts.size() / 4096);
  std::vector<std::pair<TimeFit, size_t>> fits;
  for (size_t i = 0; i < starts.size(); i += step) {
    fits.emplace_back(FitOf(text, starts[i], pattern, 0, pattern.size()), starts[i]);
  }
  const TimeFit tightest = std::min_element(fits.begin(), fits.end(), [](const auto& x, const auto& y) {
                             return x.first.spread_ns < y.first.spread_ns;
                           })->first;
  std::erase_if(fits, [&](const auto& each) { return IsClearlyTighter(tightest, each.first); });
  *ambiguous = fits.size() > 1;
  return std::min_element(
             fits.begin(), fits.end(),
             [](const auto& x, const auto& y) { return std::abs(x.first.distance_ns) < std::abs(y.first.distance_ns); })
      ->second;
}

/// Where ends do not tell, as of a few calls, clocks do that are far nearer: those of one host are one.
bool FitsBetter(const TimeFit& fit, const TimeFit& other) {
  if (IsClearlyTighter(fit, other)) return true;
  if (IsClearlyTighter(other, fit)) return false;
  return 4 * std::abs(fit.distance_ns) + kFarNs < std::abs(other.distance_ns);
}

/// Lists of equal tokens that repeat may still be windows that began apart: then their ends fit at another distance.
Mapping JoinEqual(const Tokens& a, const Tokens& b) {
  const size_t size = a.size();
  const Mapping in_place = Shifted(size, 0, 0, size);
  if (size < 2) return in_place;
  const std::vector<size_t> border = BorderTable(a);
  TimeFit best = FitOf(a, 0, b, 0, size);
  Mapping mapping;
  size_t shift_count = 0;
  for (size_t length = border.back(); 2 * length >= size && shift_count < kMaxShifts; ++shift_count) {
    const size_t shift = size - length;
    const TimeFit later = FitOf(a, shift, b, 0, length);
    const TimeFit sooner = FitOf(a, 0, b, shift, length);
    if (FitsBetter(later, best)) best = later, mapping = Shifted(size, shift, 0, length);
    if (FitsBetter(sooner, best)) best = sooner, mapping = Shifted(size, 0, shift, length);
    length = border[length - 1];
  }
  return mapping.empty() ? in_place : mapping;
}

/// Joins two windows on one sequence by their longest overlap; false when it is shorter than half of the shorter list.
bool AlignByOverlap(const Tokens& a, const Tokens& b, Mapping* mapping, bool* ambiguous) {
  const bool b_is_shorter = b.size() <= a.size();
  const Tokens& text = b_is_shorter ? a : b;
  const Tokens& pattern = b_is_shorter ? b : a;
  const Occurrences inside = FindOccurrences(text, pattern);
  if (!inside.starts.empty()) {
    const size_t best = BestStart(text, pattern, inside.starts, ambiguous);
    *mapping = b_is_shorter ? Shifted(b.size(), best, 0, b.size()) : Shifted(b.size(), 0, best, a.size());
    return true;
  }
  const size_t tail = inside.tail;                          // text ends as the pattern begins
  const size_t head = FindOccurrences(pattern, text).tail;  // pattern ends as the text begins
  const size_t overlap = std::max(tail, head);
  if (overlap * 2 < pattern.size()) return false;
  const bool a_first = (tail >= head) == b_is_shorter;  // a's end overlaps b's beginning
  *mapping =
      a_first ? Shifted(b.size(), a.size() - overlap, 0, overlap) : Shifted(b.size(), 0, b.size() - overlap, overlap);
  return true;
}

/// Shortest edit script (Myers 1986), greedy from the front; false when it needs more than `max_edits` edits.
bool AlignByEdits(const Tokens& a, const Tokens& b, int64_t max_edits, Mapping* mapping) {
  const int64_t n = static_cast<int64_t>(a.size());
  const int64_t m = static_cast<int64_t>(b.size());
  if (std::abs(n - m) > max_edits) return false;
  const int64_t limit = std::min(n + m, max_edits);
  std::vector<int64_t> reach(static_cast<size_t>(2 * limit + 3), 0);  // furthest x on diagonal k, at limit + 1 + k
  std::vector<std::vector<int64_t>> history;
  const auto at = [limit](int64_t k) { return static_cast<size_t>(limit + 1 + k); };
  int64_t edits = -1;
  for (int64_t d = 0; d <= limit && edits < 0; ++d) {
    // History keeps diagonals -d-1 .. d+1 as they were before this round.
    history.emplace_back(reach.begin() + static_cast<std::ptrdiff_t>(at(-d) - 1),
                         reach.begin() + static_cast<std::ptrdiff_t>(at(d) + 2));
    for (int64_t k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && reach[at(k - 1)] < reach[at(k + 1)]);
      int64_t x = down ? reach[at(k + 1)] : reach[at(k - 1)] + 1;
      while (x < n && x - k < m && a[static_cast<size_t>(x)].exact == b[static_cast<size_t>(x - k)].exact) ++x;
      reach[at(k)] = x;
      if (x >= n && x - k >= m) {
        edits = d;
        break;
      }
    }
  }
  if (edits < 0) return false;
  mapping->assign(b.size(), kNoPosition);
  int64_t x = n;
  int64_t y = m;
  for (int64_t d = edits; d >= 0; --d) {
    const std::vector<int64_t>& before = history[static_cast<size_t>(d)];
    const auto old = [&before, d](int64_t k) { return before[static_cast<size_t>(k + d + 1)]; };
    const int64_t k = x - y;
    const bool down = k == -d || (k != d && old(k - 1) < old(k + 1));
    const int64_t from_x = d == 0 ? 0 : (down ? old(k + 1) : old(k - 1));
    const int64_t from_y = d == 0 ? 0 : from_x - (down ? k + 1 : k - 1);
    while (x > from_x && y > from_y) {
      --x;
      --y;
      (*mapping)[static_cast<size_t>(y)] = x;
    }
    x = from_x;
    y = from_y;
  }
  return true;
}

/// Joins the k-th occurrence of a token in one list with the k-th in the other, as far as order allows
/// (longest increasing subsequence).
void AlignByOccurrence(const Tokens& a, const Tokens& b, Mapping* mapping) {
  std::unordered_map<uint64_t, std::vector<size_t>> positions;
  for (size_t i = 0; i < a.size(); ++i) positions[a[i].exact].push_back(i);
  std::unordered_map<uint64_t, size_t> used;
  std::vector<std::pair<size_t, size_t>> pairs;  // (position in a, in b), by b
  for (size_t j = 0; j < b.size(); ++j) {
    const auto found = positions.find(b[j].exact);
    if (found == positions.end()) continue;
    const size_t k = used[b[j].exact]++;
    if (k < found->second.size()) pairs.emplace_back(found->second[k], j);
  }
  std::vector<size_t> ends;  // ends[l]: pair that ends the best chain of length l + 1
  std::vector<size_t> previous(pairs.size(), pairs.size());
  for (size_t p = 0; p < pairs.size(); ++p) {
    const auto spot = std::lower_bound(ends.begin(), ends.end(), pairs[p].first,
                                       [&](size_t end, size_t value) { return pairs[end].first < value; });
    if (spot != ends.begin()) previous[p] = *(spot - 1);
    if (spot == ends.end()) {
      ends.push_back(p);
    } else {
      *spot = p;
    }
  }
  mapping->assign(b.size(), kNoPosition);
  if (ends.empty()) return;
  for (size_t p = ends.back(); p < pairs.size(); p = previous[p]) {
    (*mapping)[pairs[p].second] = static_cast<int64_t>(pairs[p].first);
  }
}

/// How the joined elements lie in time; absent: they are fewer than `least`.
std::optional<TimeFit> FitOf(const Tokens& a, const Tokens& b, const Mapping& mapping, size_t least) {
  std::vector<int64_t> distances;
  for (size_t j = 0; j < b.size(); ++j) {
    if (mapping[j] != kNoPosition) distances.push_back(b[j].time_ns - a[static_cast<size_t>(mapping[j])].time_ns);
  }
  if (distances.size() < least) return std::nullopt;
  return FitOf(std::move(distances));
}

/// Moves a joined element to an equal free one beside it whose end time fits.
class TimeMover {
 public:
  TimeMover(const Tokens& a, const Tokens& b, int64_t distance_ns) : a_(a), b_(b), distance_ns_(distance_ns) {}

  void Move(Mapping* mapping) const {
    size_t limit = a_.size();  // The last first: those before it follow into the place that it leaves.
    for (size_t j = b_.size(); j-- > 0;) {
      if (mapping->at(j) == kNoPosition) continue;
      auto i = static_cast<size_t>(mapping->at(j));
      for (size_t k = i + 1; k < limit && !IsPast(k, j, i); ++k) {
        if (IsBetter(k, i, j)) i = k;
      }
      mapping->at(j) = static_cast<int64_t>(i);
      limit = i;
    }
    int64_t floor = kNoPosition;
    for (size_t j = 0; j < b_.size(); ++j) {
      if (mapping->at(j) == kNoPosition) continue;
      auto i = static_cast<size_t>(mapping->at(j));
      for (auto k = static_cast<int64_t>(i) - 1; k > floor && !IsBefore(static_cast<size_t>(k), j, i); --k) {
        if (IsBetter(static_cast<size_t>(k), i, j)) i = static_cast<size_t>(k);
      }
      mapping->at(j) = static_cast<int64_t>(i);
      floor = mapping->at(j);
    }
  }

 private:
  int64_t MissOf(size_t i, size_t j) const { return b_[j].time_ns - a_[i].time_ns - distance_ns_; }
  bool IsBetter(size_t candidate, size_t i, size_t j) const {
    if (a_[candidate].exact != b_[j].exact) return false;
    const int64_t margin_ns = kMarginNs + std::abs(b_[j].time_ns - b_[b_.size() / 2].time_ns) / kDriftDivisor;
    return std::abs(MissOf(candidate, j)) + margin_ns < std::abs(MissOf(i, j));
  }
  bool IsPast(size_t candidate, size_t j, size_t i) const { return MissOf(candidate, j) < -std::abs(MissOf(i, j)); }
  bool IsBefore(size_t candidate, size_t j, size_t i) const { return MissOf(candidate, j) > std::abs(MissOf(i, j)); }

  const Tokens& a_;
  const Tokens& b_;
  const int64_t distance_ns_;
};

Mapping Inverse(const Mapping& mapping, size_t size) {
  Mapping inverse(size, kNoPosition);
  for (size_t j = 0; j < mapping.size(); ++j) {
    if (mapping[j] != kNoPosition) inverse[static_cast<size_t>(mapping[j])] = static_cast<int64_t>(j);
  }
  return inverse;
}

/// Sets apart what an edit script, which knows no times, joined with the wrong one of several equal elements.
void MoveToTime(const Tokens& a, const Tokens& b, Mapping* mapping) {
  const std::optional<TimeFit> fit = FitOf(a, b, *mapping, 3);
  if (!fit) return;
  TimeMover(a, b, fit->distance_ns).Move(mapping);
  Mapping inverse = Inverse(*mapping, a.size());
  TimeMover(b, a, -fit->distance_ns).Move(&inverse);
  *mapping = Inverse(inverse, b.size());
}

/// A stretch of `a` and one of `b` in which nothing is joined.
struct Gap {
  size_t a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;
};

/// Joins what may be the same thing, is under way at the same time, and is nearest in time both ways.
void JoinByTime(const Tokens& a, const Tokens& b, const Gap& gap, const TimeFit& fit, Mapping* mapping) {
  if ((gap.a_end - gap.a_begin) * (gap.b_end - gap.b_begin) > kMaxGapPairs) return;
  const auto miss_ns = [&](size_t i, size_t j) { return std::abs(b[j].time_ns - a[i].time_ns - fit.distance_ns); };
  const auto can_be_one = [&](size_t i, size_t j) {
    return a[i].loose == b[j].loose && a[i].start_ns + fit.distance_ns < b[j].time_ns &&
           b[j].start_ns < a[i].time_ns + fit.distance_ns;
  };
  size_t free_from = gap.a_begin;
  for (size_t j = gap.b_begin; j < gap.b_end; ++j) {
    size_t best = gap.a_end;
    for (size_t i = free_from; i < gap.a_end; ++i) {
      if (can_be_one(i, j) && (best == gap.a_end || miss_ns(i, j) < miss_ns(best, j))) best = i;
    }
    if (best == gap.a_end) continue;
    bool is_nearest = true;
    for (size_t other = j + 1; other < gap.b_end && is_nearest; ++other) {
      is_nearest = !can_be_one(best, other) || miss_ns(best, j) <= miss_ns(best, other);
    }
    if (!is_nearest) continue;
    (*mapping)[j] = static_cast<int64_t>(best);
    free_from = best + 1;
  }
}

/// Between two joined elements, joins leftovers whose loose tokens agree one by one: the same calls with different
/// details. Where they are not as many on both sides, times must tell.
void RepairGaps(const Tokens& a, const Tokens& b, Mapping* mapping) {
  const std::optional<TimeFit> fit = FitOf(a, b, *mapping, 1);
  size_t a_begin = 0;
  size_t b_begin = 0;
  for (size_t j = 0; j <= b.size(); ++j) {
    if (j < b.size() && (*mapping)[j] == kNoPosition) continue;
    const size_t a_end = j < b.size() ? static_cast<size_t>((*mapping)[j]) : a.size();
    const size_t count = j - b_begin;
    if (count > 0 && a_end - a_begin == count) {
      bool same = true;
      for (size_t i = 0; i < count && same; ++i) same = a[a_begin + i].loose == b[b_begin + i].loose;
      for (size_t i = 0; i < count && same; ++i) (*mapping)[b_begin + i] = static_cast<int64_t>(a_begin + i);
    } else if (count > 0 && a_end > a_begin && fit) {
      JoinByTime(a, b, {a_begin, a_end, b_begin, j}, *fit, mapping);
    }
    a_begin = a_end + 1;
    b_begin = j + 1;
  }
}

bool SameTokens(const Tokens& a, const Tokens& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) { return x.exact == y.exact; });
}

Mapping AlignPair(const Tokens& a, const Tokens& b, bool* ambiguous) {
  Mapping mapping;
  if (SameTokens(a, b)) return JoinEqual(a, b);
  if (a.empty() || b.empty()) return Mapping(b.size(), kNoPosition);
  // An overlap stands unless a script with fewer edits exists: in a periodic sequence a single lost element would
  // otherwise shift everything.
  int64_t max_edits = kMaxEdits;
  bool overlap_is_ambiguous = false;
  const bool overlaps = AlignByOverlap(a, b, &mapping, &overlap_is_ambiguous);
  if (overlaps) {
    const auto joined = std::count_if(mapping.begin(), mapping.end(), [](int64_t x) { return x != kNoPosition; });
    max_edits = std::min(max_edits, static_cast<int64_t>(a.size() + b.size()) - 2 * joined - 1);
  }
  Mapping edited;
  if (AlignByEdits(a, b, max_edits, &edited)) {
    mapping = std::move(edited);
  } else if (overlaps) {
    *ambiguous = *ambiguous || overlap_is_ambiguous;
  } else {
    AlignByOccurrence(a, b, &mapping);
  }
  MoveToTime(a, b, &mapping);
  RepairGaps(a, b, &mapping);
  return mapping;
}

}  // namespace

SequenceAlignment AlignSequences(const std::vector<std::vector<SequenceToken>>& lists) {
  SequenceAlignment result;
  result.slots.resize(lists.size());
  std::vector<size_t> order(lists.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return lists[x].size() > lists[y].size(); });

  Tokens common;                 // the merged sequence so far
  std::vector<uint32_t> labels;  // parallel to it; renumbered at the end
  uint32_t label_count = 0;
  for (const size_t list : order) {
    const Tokens& tokens = lists[list];
    std::vector<uint32_t>& slots = result.slots[list];
    const Mapping mapping = AlignPair(common, tokens, &result.ambiguous);
    slots.resize(tokens.size());
    bool grows = false;
    for (size_t j = 0; j < tokens.size(); ++j) {
      if (mapping[j] != kNoPosition) {
        slots[j] = labels[static_cast<size_t>(mapping[j])];
      } else {
        slots[j] = label_count++;
        grows = true;
      }
    }
    if (!grows) continue;
    Tokens merged;
    std::vector<uint32_t> merged_labels;
    merged.reserve(common.size() + tokens.size());
    size_t i = 0;
    for (size_t j = 0; j < tokens.size(); ++j) {
      const size_t stop = mapping[j] == kNoPosition ? i : static_cast<size_t>(mapping[j]) + 1;
      for (; i < stop; ++i) {
        merged.push_back(common[i]);
        merged_labels.push_back(labels[i]);
      }
      if (mapping[j] != kNoPosition) continue;
      merged.push_back(tokens[j]);
      merged_labels.push_back(slots[j]);
    }
    for (; i < common.size(); ++i) {
      merged.push_back(common[i]);
      merged_labels.push_back(labels[i]);
    }
    common = std::move(merged);
    labels = std::move(merged_labels);
  }

  std::vector<uint32_t> position(label_count);
  for (size_t i = 0; i < labels.size(); ++i) position[labels[i]] = static_cast<uint32_t>(i);
  for (std::vector<uint32_t>& slots : result.slots) {
    for (uint32_t& slot : slots) slot = position[slot];
  }
  result.slot_count = label_count;
  return result;
}

}  // namespace lockstep::analysis
