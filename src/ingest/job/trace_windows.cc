#include "ingest/job/trace_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace lockstep::ingest {
namespace {

using model::RankTrace;

bool HasTime(const RankTrace& trace) { return trace.first_ns.has_value() && trace.last_ns.has_value(); }

bool Overlap(const RankTrace& a, const RankTrace& b) {
  if (!HasTime(a) || !HasTime(b)) return true;
  // A trace of one instant still is at that instant.
  return *a.first_ns < std::max(*b.last_ns, *b.first_ns + 1) && *b.first_ns < std::max(*a.last_ns, *a.first_ns + 1);
}

void SetAside(LoadedTrace& later, const LoadedTrace& earlier, model::Ledger* ledger) {
  later.set_aside = true;
  const char* const why = !HasTime(later.trace)     ? "holds no timed event and"
                          : !HasTime(earlier.trace) ? "comes after a trace without timed events and"
                                                    : "covers the same time and";
  model::LedgerEntry entry;
  entry.code = "rank_conflict";
  entry.severity = model::Severity::kError;
  entry.source = later.trace.source;
  entry.rank = later.trace.rank.value;
  entry.message = fmt::format("{} claims the same rank {} as {}; it was set aside", why, later.trace.rank.value,
                              earlier.trace.source);
  entry.advice = "give one trace per rank and time, without copies, merged traces and other jobs";
  ledger->Add(std::move(entry));
}

using ByRank = std::map<int32_t, std::vector<LoadedTrace*>>;

int64_t FolderDepth(const std::string& path) { return std::count(path.begin(), path.end(), '/'); }

// Adds those that do not overlap with what is kept, by rank, in order of time.
template <typename IsWanted>
void KeepWhatDoesNotOverlap(std::vector<LoadedTrace>& traces, const IsWanted& is_wanted, ByRank* by_rank,
                            model::Ledger* ledger) {
  const auto earlier = [](const LoadedTrace* a, const LoadedTrace* b) {
    return a->trace.first_ns.value_or(0) < b->trace.first_ns.value_or(0);
  };
  // The file in the deeper folder, which is likely a copy or a result, is set aside; otherwise the later one is.
  std::vector<LoadedTrace*> in_order;
  for (LoadedTrace& loaded : traces) {
    if (is_wanted(loaded)) in_order.push_back(&loaded);
  }
  std::stable_sort(in_order.begin(), in_order.end(), [](const LoadedTrace* a, const LoadedTrace* b) {
    return FolderDepth(a->trace.source) < FolderDepth(b->trace.source);
  });
  for (LoadedTrace* candidate : in_order) {
    LoadedTrace& loaded = *candidate;
    // Kept traces of a rank are disjoint and in order, so only the neighbours in time can overlap.
    std::vector<LoadedTrace*>& kept = (*by_rank)[loaded.trace.rank.value];
    const auto place = std::upper_bound(kept.begin(), kept.end(), &loaded, earlier);
    if (place != kept.end() && Overlap((*place)->trace, loaded.trace)) {
      SetAside(loaded, **place, ledger);
    } else if (place != kept.begin() && Overlap((*(place - 1))->trace, loaded.trace)) {
      SetAside(loaded, **(place - 1), ledger);
    } else {
      kept.insert(place, &loaded);
    }
  }
}

// A ring joins the profilers' traces of its rank that it overlaps, which have its operations as kernels.
void JoinRings(std::vector<LoadedTrace>& traces, const ByRank& by_rank) {
  for (LoadedTrace& loaded : traces) {
    const auto kept = by_rank.find(loaded.trace.rank.value);
    if (!loaded.is_nccl_ring || kept == by_rank.end()) continue;
    for (const LoadedTrace* other : kept->second) {
      if (other->trace.clock_is_aligned || !Overlap(other->trace, loaded.trace)) continue;
      loaded.joins.push_back(static_cast<size_t>(other - traces.data()));
    }
    loaded.set_aside = !loaded.joins.empty();
  }
}

// What a span trace joins, or it becomes a window of its own.
void PlaceSpanTraces(std::vector<LoadedTrace>& traces, ByRank* by_rank) {
  for (LoadedTrace& loaded : traces) {
    if (!loaded.is_span_trace) continue;
    std::vector<LoadedTrace*>& kept = (*by_rank)[loaded.trace.rank.value];
    for (const bool wants_span_trace : {false, true}) {
      for (const LoadedTrace* other : kept) {
        const bool fits = other->is_span_trace == wants_span_trace && !other->trace.clock_is_aligned;
        if (!fits || !Overlap(other->trace, loaded.trace)) continue;
        if (wants_span_trace && !loaded.joins.empty()) break;
        loaded.joins.push_back(static_cast<size_t>(other - traces.data()));
      }
    }
    loaded.set_aside = !loaded.joins.empty();
    if (loaded.set_aside) continue;
    kept.push_back(&loaded);
    std::stable_sort(kept.begin(), kept.end(), [](const LoadedTrace* a, const LoadedTrace* b) {
      return a->trace.first_ns.value_or(0) < b->trace.first_ns.value_or(0);
    });
  }
}

// Traces of all ranks that overlap in time, directly or through others, belong to one capture. When that gives every
// rank at most one trace per capture, and as many captures as some rank has traces, the captures are the windows;
// otherwise (clocks apart by more than the pause between captures, ranks captured one by one) false.
bool NumberByCapture(const ByRank& by_rank, size_t most_windows) {
  std::vector<LoadedTrace*> all;
  for (const auto& [rank, kept] : by_rank) all.insert(all.end(), kept.begin(), kept.end());
  if (!std::all_of(all.begin(), all.end(), [](const LoadedTrace* loaded) { return HasTime(loaded->trace); }))
    return false;
  std::sort(all.begin(), all.end(), [](const LoadedTrace* a, const LoadedTrace* b) {
    return std::pair(*a->trace.first_ns, a->trace.rank) < std::pair(*b->trace.first_ns, b->trace.rank);
  });
  std::vector<int32_t> captures;
  std::set<std::pair<int32_t, int32_t>> seen;  // (capture, rank)
  int32_t capture = -1;
  std::optional<int64_t> end_ns;
  for (const LoadedTrace* loaded : all) {
    if (!end_ns || *loaded->trace.first_ns >= *end_ns) ++capture;
    end_ns = std::max(end_ns.value_or(*loaded->trace.last_ns), *loaded->trace.last_ns);
    captures.push_back(capture);
    if (!seen.insert({capture, loaded->trace.rank.value}).second) return false;
  }
  if (static_cast<size_t>(capture) + 1 != most_windows) return false;
  for (size_t i = 0; i < all.size(); ++i) all[i]->trace.window = captures[i];
  return true;
}

}  // namespace

void AssignWindows(std::vector<LoadedTrace>* traces, model::Ledger* ledger) {
  ByRank by_rank;
  KeepWhatDoesNotOverlap(
      *traces, [](const LoadedTrace& loaded) { return loaded.IsProfile(); }, &by_rank, ledger);
  JoinRings(*traces, by_rank);
  KeepWhatDoesNotOverlap(
      *traces, [](const LoadedTrace& loaded) { return loaded.is_nccl_ring && !loaded.set_aside; }, &by_rank, ledger);
  PlaceSpanTraces(*traces, &by_rank);
  size_t most_windows = 1;
  uint64_t several = 0;
  for (const auto& [rank, kept] : by_rank) {
    most_windows = std::max(most_windows, kept.size());
    several += kept.size() > 1 ? 1 : 0;
  }
  for (const auto& [rank, kept] : by_rank) {
    for (size_t i = 0; i < kept.size(); ++i) kept[i]->trace.window = static_cast<int32_t>(i);
  }
  if (most_windows == 1) return;
  const bool by_capture = NumberByCapture(by_rank, most_windows);
  model::LedgerEntry entry;
  entry.code = "several_windows";
  entry.severity = model::Severity::kInfo;
  entry.count = several;
  entry.message =
      fmt::format("{} rank(s) have several traces that follow one another: {} windows, numbered {}", several,
                  most_windows, by_capture ? "by time over all ranks" : "in order of time on each rank");
  entry.advice = "analyse one capture at a time if the windows are of different jobs";
  ledger->Add(std::move(entry));
}

}  // namespace lockstep::ingest
