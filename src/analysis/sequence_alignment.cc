#include "analysis/sequence_alignment.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <unordered_map>

namespace lockstep::analysis {
namespace {

using Tokens = std::vector<SequenceToken>;
/// Per element of the second list its position in the first, kNoPosition when it has none. Increasing where set.
using Mapping = std::vector<int64_t>;
constexpr int64_t kNoPosition = -1;
constexpr int64_t kMaxEdits = 1000;
constexpr size_t kTimeSamples = 63;

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

/// Median distance in time of `count` pairs (a[a_begin + i], b[b_begin + i]), absolute.
int64_t TimeDistance(const Tokens& a, size_t a_begin, const Tokens& b, size_t b_begin, size_t count) {
  std::vector<int64_t> distances;
  const size_t step = std::max<size_t>(1, count / kTimeSamples);
  for (size_t i = 0; i < count; i += step) distances.push_back(b[b_begin + i].time_ns - a[a_begin + i].time_ns);
  std::nth_element(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2),
                   distances.end());
  return std::abs(distances[distances.size() / 2]);
}

Mapping Shifted(size_t b_size, size_t a_begin, size_t b_begin, size_t count) {
  Mapping mapping(b_size, kNoPosition);
  for (size_t i = 0; i < count; ++i) mapping[b_begin + i] = static_cast<int64_t>(a_begin + i);
  return mapping;
}

/// Joins two windows on one sequence by their longest overlap; false when it is shorter than half of the shorter list.
bool AlignByOverlap(const Tokens& a, const Tokens& b, Mapping* mapping, bool* ambiguous) {
  const bool b_is_shorter = b.size() <= a.size();
  const Tokens& text = b_is_shorter ? a : b;
  const Tokens& pattern = b_is_shorter ? b : a;
  const Occurrences inside = FindOccurrences(text, pattern);
  if (!inside.starts.empty()) {
    size_t best = inside.starts.front();
    if (inside.starts.size() > 1) {
      *ambiguous = true;
      int64_t best_distance = TimeDistance(text, best, pattern, 0, pattern.size());
      const size_t step = std::max<size_t>(1, inside.starts.size() / 4096);
      for (size_t i = step; i < inside.starts.size(); i += step) {
        const int64_t distance = TimeDistance(text, inside.starts[i], pattern, 0, pattern.size());
        if (distance >= best_distance) continue;
        best_distance = distance;
        best = inside.starts[i];
      }
    }
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

/// Between two joined elements, joins leftovers whose loose tokens agree one by one: the same calls with different
/// details.
void RepairGaps(const Tokens& a, const Tokens& b, Mapping* mapping) {
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
  if (SameTokens(a, b)) return Shifted(b.size(), 0, 0, b.size());
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
