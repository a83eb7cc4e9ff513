#include "ingest/torch_trace/lost_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/nanoseconds.h"

namespace lockstep::ingest {
namespace {

using model::RankTrace;

/// Longer than any recording goes without an event, shorter than the errors of clocks are.
constexpr int64_t kGapNs = 6 * kHourNs;

/// A stretch of time without such a gap.
struct Stretch {
  int64_t first_ns = 0;
  int64_t last_ns = 0;  ///< Of the starts.
  uint64_t count = 0;
};

/// Those of one track, whose starts ascend.
void AddStretches(const Column<int64_t>& starts, std::vector<Stretch>* all) {
  const int64_t* at = starts.data();
  const int64_t* const end = at + starts.size();
  while (at != end) {
    const int64_t* last = at;
    while (true) {
      last = std::upper_bound(last, end, *last + kGapNs) - 1;  // The furthest that one gap reaches from here.
      if (last + 1 == end || *(last + 1) - *last > kGapNs) break;
      ++last;
    }
    all->push_back({*at, *last, static_cast<uint64_t>(last + 1 - at)});
    at = last + 1;
  }
}

/// The one with most events; nothing where none has half of them.
std::optional<Stretch> MainStretch(const RankTrace& trace) {
  std::vector<Stretch> parts;
  for (const model::Track& track : trace.tracks) AddStretches(track.events.start_ns, &parts);
  std::sort(parts.begin(), parts.end(), [](const Stretch& a, const Stretch& b) { return a.first_ns < b.first_ns; });
  std::vector<Stretch> joined;
  uint64_t total = 0;
  for (const Stretch& part : parts) {
    total += part.count;
    if (joined.empty() || part.first_ns - joined.back().last_ns > kGapNs) {
      joined.push_back(part);
    } else {
      joined.back().last_ns = std::max(joined.back().last_ns, part.last_ns);
      joined.back().count += part.count;
    }
  }
  const auto most = std::max_element(joined.begin(), joined.end(),
                                     [](const Stretch& a, const Stretch& b) { return a.count < b.count; });
  if (most == joined.end() || most->count * 2 <= total) return std::nullopt;
  return *most;
}

template <typename T>
void Keep(const std::vector<uint32_t>& kept, Column<T>* column) {
  if (column->empty()) return;
  for (size_t i = 0; i < kept.size(); ++i) (*column)[i] = (*column)[kept[i]];
  column->resize_uninitialized(kept.size());
}

}  // namespace

void SetAsideLostTimes(const std::string& source, TraceContent* content) {
  RankTrace& trace = content->trace;
  if (!trace.first_ns || !trace.last_ns || *trace.last_ns - *trace.first_ns <= kGapNs) return;
  const auto main = MainStretch(trace);
  if (!main) return;
  const int64_t end_ns = main->last_ns + kGapNs;
  const auto fits = [&](int64_t start_ns, int64_t duration_ns) {
    return start_ns >= main->first_ns && start_ns <= main->last_ns && duration_ns <= end_ns - start_ns;
  };
  uint64_t lost_count = 0;
  int64_t furthest_ns = 0;
  trace.first_ns.reset();
  trace.last_ns.reset();
  trace.complete_event_count = 0;
  std::vector<uint32_t> kept;
  for (model::Track& track : trace.tracks) {
    model::EventColumns& events = track.events;
    kept.clear();
    for (size_t i = 0; i < events.size(); ++i) {
      const int64_t start_ns = events.start_ns[i];
      if (fits(start_ns, events.duration_ns[i])) {
        kept.push_back(static_cast<uint32_t>(i));
        trace.first_ns = std::min(trace.first_ns.value_or(start_ns), start_ns);
        trace.last_ns = std::max(trace.last_ns.value_or(events.end_ns(i)), events.end_ns(i));
        continue;
      }
      const int64_t off_ns = start_ns < main->first_ns  ? start_ns - main->first_ns
                             : start_ns > main->last_ns ? start_ns - main->last_ns
                                                        : events.end_ns(i) - main->last_ns;
      if (std::abs(off_ns) > std::abs(furthest_ns)) furthest_ns = off_ns;
      ++lost_count;
    }
    trace.complete_event_count += kept.size();
    if (kept.size() == events.size()) continue;
    Keep(kept, &events.start_ns);
    Keep(kept, &events.duration_ns);
    Keep(kept, &events.name);
    Keep(kept, &events.category);
    Keep(kept, &events.correlation);
  }
  std::erase_if(trace.tracks, [](const model::Track& track) { return track.events.empty(); });
  const auto is_lost = [&](const auto& record) { return !fits(record.start_ns, record.duration_ns); };
  std::erase_if(trace.collectives, is_lost);
  std::erase_if(trace.synchronisations, is_lost);
  std::erase_if(trace.shapes, is_lost);
  model::MemoryColumns& memory = trace.memory;
  kept.clear();
  for (size_t i = 0; i < memory.time_ns.size(); ++i) {
    if (fits(memory.time_ns[i], 0)) kept.push_back(static_cast<uint32_t>(i));
  }
  if (kept.size() < memory.time_ns.size()) {
    Keep(kept, &memory.change_bytes);
    Keep(kept, &memory.allocated_bytes);
    Keep(kept, &memory.reserved_bytes);
    Keep(kept, &memory.device);
    Keep(kept, &memory.time_ns);
  }
  if (lost_count == 0) return;
  const double days = static_cast<double>(std::abs(furthest_ns)) / static_cast<double>(24 * kHourNs);
  content->ledger.Add(
      {.code = "lost_times",
       .severity = model::Severity::kWarning,
       .source = source,
       .count = lost_count,
       .message = fmt::format("an event lies hours {} all others (the furthest by {:.1f} days) and was set aside",
                              furthest_ns < 0 ? "before" : "after", days),
       .advice = "the device's profiling library lost their times; capture again if many are missing"});
}

}  // namespace lockstep::ingest
