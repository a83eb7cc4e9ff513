#include "analysis/kernels.h"

#include <algorithm>
#include <cmath>

#include "analysis/name_rows.h"
#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

constexpr size_t kKindCount = 4;

/// A row being filled. Mean and spread are running (Welford), so that no square of a large number is taken.
struct Accumulator {
  NameId name;
  KernelKind kind = KernelKind::kCompute;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean

  void Add(int64_t duration_ns) {
    min_ns = count == 0 ? duration_ns : std::min(min_ns, duration_ns);
    max_ns = count == 0 ? duration_ns : std::max(max_ns, duration_ns);
    ++count;
    total_ns = AddSaturating(total_ns, duration_ns);
    const double distance = static_cast<double>(duration_ns) - mean;
    mean += distance / static_cast<double>(count);
    squares += distance * (static_cast<double>(duration_ns) - mean);
  }
};

KernelKind KindOf(model::Category category, bool is_communication) {
  switch (category) {
    case model::Category::kMemcpy: return KernelKind::kMemcpy;
    case model::Category::kMemset: return KernelKind::kMemset;
    default: return is_communication ? KernelKind::kCommunication : KernelKind::kCompute;
  }
}

}  // namespace

void ComputeKernels(const RankContext& context, std::vector<KernelRow>* rows) {
  const model::RankTrace& trace = context.trace();
  RowsByKey<Accumulator> by_name(context.names().size() * kKindCount);
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    if (trace.tracks[t].lane != model::Lane::kDevice) continue;
    const model::EventColumns& events = trace.tracks[t].events;
    for (size_t row = 0; row < events.size(); ++row) {
      if (!context.InScope(t, row)) continue;
      const NameId name = events.name[row];
      const KernelKind kind = KindOf(events.category[row], context.shared->is_communication[name.value]);
      Accumulator& sum = by_name[name.value * kKindCount + static_cast<size_t>(kind)];
      sum.name = name;
      sum.kind = kind;
      sum.Add(events.duration_ns[row]);
    }
  }

  const size_t first = rows->size();
  for (const Accumulator& sum : by_name.rows()) {
    KernelRow row;
    row.rank_index = context.rank_index;
    row.name = sum.name;
    row.kind = sum.kind;
    row.count = sum.count;
    row.total_ns = sum.total_ns;
    row.min_ns = sum.min_ns;
    row.max_ns = sum.max_ns;
    row.mean_ns = static_cast<double>(sum.total_ns) / static_cast<double>(sum.count);
    row.stddev_ns = sum.count > 1 ? std::sqrt(sum.squares / static_cast<double>(sum.count - 1)) : 0;
    rows->push_back(row);
  }
  const model::NameTable& names = context.names();
  std::sort(rows->begin() + static_cast<std::ptrdiff_t>(first), rows->end(),
            [&names](const KernelRow& a, const KernelRow& b) {
              if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
              if (a.name != b.name) return names[a.name] < names[b.name];
              return a.kind < b.kind;
            });
}

namespace {

std::vector<RowColumn<KernelRow>> KernelColumns() {
  using Row = KernelRow;
  return {
      Field<&Row::name>("name", "", "As in the trace, whole."),
      NamedField<&Row::kind, KernelKindName>("kind", "What it is: `compute`, `communication`, `memcpy` or `memset`.",
                                             {"compute", "communication", "memcpy", "memset"}),
      Field<&Row::count>("count", "count", "Events."),
      Field<&Row::total_ns>("total_ns", "ns", "Sum of durations; overlapping events count twice."),
      Field<&Row::mean_ns>("mean_ns", "ns", "`total_ns` / `count`.", "not finite"),
      Field<&Row::min_ns>("min_ns", "ns", "Shortest."),
      Field<&Row::max_ns>("max_ns", "ns", "Longest."),
      Field<&Row::stddev_ns>("stddev_ns", "ns", "Sample standard deviation (n - 1); 0 for one event.", "not finite"),
  };
}

}  // namespace

Pass KernelsPass() {
  return RankPass<Kernels>(
      {.question = "Which kernels, copies and sets take the device's time?",
       .tables = {DeclareRankTable("kernels", "kernel_totals", "Device events of one name on one rank, added up",
                                   &Kernels::rows, KernelColumns())}},
      [](const RankContext& context) {
        Kernels rank;
        ComputeKernels(context, &rank.rows);
        return rank;
      });
}

}  // namespace lockstep::analysis
