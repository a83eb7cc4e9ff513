#include "analysis/parts_in_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "analysis/finding_context.h"

namespace lockstep::analysis {
namespace {

using model::RankTrace;

int64_t BeginOf(const RankTrace& trace) { return trace.clock.ToRun(*trace.first_ns); }
int64_t EndOf(const RankTrace& trace) { return trace.clock.ToRun(*trace.last_ns); }

}  // namespace

std::vector<std::vector<size_t>> PartsInTime(const model::Run& run, size_t first, size_t count) {
  std::vector<size_t> known;
  for (size_t i = first; i < first + count; ++i) {
    const RankTrace& trace = run.ranks[i];
    if (trace.first_ns && trace.last_ns && !model::IsAdrift(run.ranks[first], trace)) known.push_back(i);
  }
  std::stable_sort(known.begin(), known.end(),
                   [&](size_t a, size_t b) { return BeginOf(run.ranks[a]) < BeginOf(run.ranks[b]); });
  std::vector<std::vector<size_t>> parts;
  int64_t end_ns = 0;
  for (const size_t i : known) {
    if (parts.empty() || BeginOf(run.ranks[i]) > end_ns) parts.emplace_back();
    end_ns = parts.back().empty() ? EndOf(run.ranks[i]) : std::max(end_ns, EndOf(run.ranks[i]));
    parts.back().push_back(i);
  }
  return parts;
}

void CloseGaps(size_t first, size_t count, model::Run* run) {
  constexpr int64_t kMargin = 50;  // Of all that is recorded: a seam that is seen.
  const std::vector<std::vector<size_t>> parts = PartsInTime(*run, first, count);
  if (parts.size() < 2) return;
  std::vector<std::pair<int64_t, int64_t>> spans;
  int64_t recorded_ns = 0;
  for (const std::vector<size_t>& part : parts) {
    auto& [begin_ns, end_ns] = spans.emplace_back(BeginOf(run->ranks[part.front()]), EndOf(run->ranks[part.front()]));
    for (const size_t i : part) end_ns = std::max(end_ns, EndOf(run->ranks[i]));
    recorded_ns += end_ns - begin_ns;
  }
  int64_t closed_ns = 0;
  for (size_t p = 1; p < parts.size(); ++p) {
    const int64_t gap_ns = spans[p].first - spans[p - 1].second;
    if (gap_ns > recorded_ns) closed_ns += gap_ns - std::max<int64_t>(recorded_ns / kMargin, 1);
    for (const size_t i : parts[p]) run->ranks[i].clock.offset_ns += closed_ns;
  }
  if (closed_ns == 0) return;
  model::LedgerEntry entry;
  entry.code = "gaps_closed";
  entry.message = fmt::format("{} traces in {} parts that do not overlap in time: the {} between them are left out",
                              count, parts.size(), TimeText(closed_ns));
  entry.advice = "do not compare the times of traces of two parts";
  run->ledger.Add(std::move(entry));
}

}  // namespace lockstep::analysis
