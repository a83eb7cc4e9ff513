#include "analysis/imbalance.h"

#include <algorithm>
#include <map>

#include "analysis/memory.h"
#include "analysis/pass.h"
#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"

namespace lockstep::analysis {
namespace {

/// Values of one quantity by rank index, in order of rank.
using Samples = std::vector<std::pair<size_t, double>>;

void AddRow(std::string quantity, const Samples& samples, Imbalance* imbalance) {
  if (samples.size() < 2) return;
  ImbalanceRow row;
  row.quantity = std::move(quantity);
  row.min = row.max = samples.front().second;
  row.min_rank_index = row.max_rank_index = samples.front().first;
  double sum = 0;
  for (const auto& [rank_index, value] : samples) {
    sum += value;
    if (value > row.max) {
      row.max = value;
      row.max_rank_index = rank_index;
    }
    if (value < row.min) {
      row.min = value;
      row.min_rank_index = rank_index;
    }
  }
  row.mean = sum / static_cast<double>(samples.size());
  if (row.mean > 0) row.ratio = row.max / row.mean - 1;
  imbalance->rows.push_back(std::move(row));
}

double KernelCount(const model::RankTrace& rank) {
  double count = 0;
  for (const model::Track& track : rank.tracks) {
    if (track.lane != model::Lane::kDevice) continue;
    count += static_cast<double>(
        std::count(track.events.category.begin(), track.events.category.end(), model::Category::kKernel));
  }
  return count;
}

struct KernelCountPass {
  static constexpr std::string_view kName = "kernel_count";
  using Args = bool;  // Nothing to say.
  using Partial = double;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& /*args*/) {
    return KernelCount(shared.run->ranks[rank_index]);
  }
};

}  // namespace

void AddImbalancePasses(RankPasses* passes) { passes->Add<KernelCountPass>(); }

Imbalance ComputeImbalance(const RunContext& shared, const Breakdown& breakdown, const std::vector<MemoryRow>& memory) {
  Imbalance imbalance;
  // Windows of one rank are not rivals: only the first window is compared, as the job's picture is drawn from it.
  const std::vector<model::RankTrace>& ranks = shared.run->ranks;
  const auto first_window = [&](size_t rank_index) {
    return rank_index < ranks.size() && ranks[rank_index].window == ranks.front().window;
  };

  struct Quantity {
    const char* name;
    int64_t BreakdownRow::*field;
  };
  static constexpr Quantity kQuantities[] = {
      {"compute_ns", &BreakdownRow::compute_ns},
      {"communication_ns", &BreakdownRow::communication_ns},
      {"exposed_communication_ns", &BreakdownRow::exposed_communication_ns},
      {"memory_ns", &BreakdownRow::memory_ns},
      {"busy_ns", &BreakdownRow::busy_ns},
      {"idle_ns", &BreakdownRow::idle_ns},
  };
  for (const Quantity& quantity : kQuantities) {
    Samples samples;
    for (const BreakdownRow& row : breakdown.ranks) {
      if (row.basis == Basis::kNone || row.step_number.has_value() || !first_window(row.rank_index)) continue;
      samples.emplace_back(row.rank_index, static_cast<double>(row.*quantity.field));
    }
    AddRow(quantity.name, samples, &imbalance);
  }

  std::vector<size_t> with_device;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (first_window(i) && ranks[i].HasDeviceEvents()) with_device.push_back(i);
  }
  const std::vector<double> kernel_counts = MapRanks<KernelCountPass>(shared, false, with_device);
  Samples kernels;
  for (size_t k = 0; k < with_device.size(); ++k) kernels.emplace_back(with_device[k], kernel_counts[k]);
  AddRow("kernel_count", kernels, &imbalance);

  // A rank's devices add up; the CPU's counters are a quantity of their own.
  const auto add_memory = [&](const char* name, bool device, std::optional<int64_t> MemoryRow::*field) {
    std::map<size_t, double> by_rank;
    for (const MemoryRow& row : memory) {
      if ((row.device >= 0) != device || !first_window(row.rank_index) || !(row.*field).has_value()) continue;
      by_rank[row.rank_index] += static_cast<double>(*(row.*field));
    }
    AddRow(name, Samples(by_rank.begin(), by_rank.end()), &imbalance);
  };
  add_memory("peak_allocated_bytes", true, &MemoryRow::peak_allocated_bytes);
  add_memory("peak_reserved_bytes", true, &MemoryRow::peak_reserved_bytes);
  add_memory("cpu_peak_allocated_bytes", false, &MemoryRow::peak_allocated_bytes);
  return imbalance;
}

namespace {

std::vector<RowColumn<ImbalanceRow>> ImbalanceColumns() {
  using Row = ImbalanceRow;
  return {
      Field<&Row::quantity>("quantity", "", "What is compared: `compute_ns`, `busy_ns`, `peak_allocated_bytes`, ..."),
      Field<&Row::mean>("mean", "the quantity's", "Mean over ranks.", "not finite"),
      Field<&Row::min>("min", "the quantity's", "Smallest.", "not finite"),
      Field<&Row::max>("max", "the quantity's", "Largest.", "not finite"),
      Field<&Row::ratio>("ratio", "", "`max` / `mean` - 1; 0 = balanced.", "the mean is 0"),
      RankField<&Row::min_rank_index>("min_rank", "Rank with the smallest."),
      RankField<&Row::max_rank_index>("max_rank", "Rank with the largest."),
  };
}

}  // namespace

Pass ImbalancePass() {
  return RunPass<Imbalance>(
      {.question = "Do the ranks have equal work?",
       .needs = {"breakdown", "memory"},
       .tables = {DeclareTable("imbalance", "imbalance",
                               "Spread of one quantity over the ranks, in its own unit; nothing for a single rank",
                               &Imbalance::rows, ImbalanceColumns(), {"imbalance", TableOrder::kVerdicts})}},
      [](PassContext& context) {
        return ComputeImbalance(context.shared(), context.Get<Breakdown>(), context.Get<Memory>().rows);
      });
}

}  // namespace lockstep::analysis
