#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/wait_steps.h"
#include "present/page/column_block.h"
#include "present/page/data_blocks.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using analysis::BreakdownRow;

struct Quantity {
  const char* name;
  int64_t BreakdownRow::*field;  ///< Null: waiting, which has a table of its own.
};
constexpr Quantity kQuantities[] = {
    {"step_ns", &BreakdownRow::span_ns},
    {"compute_ns", &BreakdownRow::compute_ns},
    {"communication_ns", &BreakdownRow::communication_ns},
    {"exposed_communication_ns", &BreakdownRow::exposed_communication_ns},
    {"exposed_memory_ns", &BreakdownRow::exposed_memory_ns},
    {"idle_ns", &BreakdownRow::idle_ns},
    {"wait_ns", nullptr},
};

constexpr int64_t kMissing = -1;

/// Adds the cells as whole units of which the largest number stands for "not measured".
void AddWide(const char* name, const std::vector<int64_t>& cells, ColumnBlock* block, report::JsonRow* units) {
  constexpr int64_t kLargest = int64_t{UINT32_MAX} - 1;
  const int64_t most = cells.empty() ? 0 : *std::max_element(cells.begin(), cells.end());
  const int64_t unit_ns = std::max<int64_t>(1, most / kLargest + (most % kLargest != 0 ? 1 : 0));
  std::vector<uint32_t> values;
  values.reserve(cells.size());
  for (const int64_t cell : cells) {
    values.push_back(cell == kMissing ? UINT32_MAX : static_cast<uint32_t>((cell + unit_ns / 2) / unit_ns));
  }
  block->Add(name, values);
  units->Key(name).Int(unit_ns);
}

/// Adds the cells as short floats.
void AddShort(const char* name, const std::vector<int64_t>& cells, ColumnBlock* block, report::JsonRow* units) {
  std::vector<uint16_t> values;
  values.reserve(cells.size());
  for (const int64_t cell : cells) values.push_back(cell == kMissing ? UINT16_MAX : ShortFloat(cell));
  block->Add(name, values);
  units->Key(name).Int(1);
}

/// Where the cells of ranks and steps lie in the matrix.
class Grid {
 public:
  explicit Grid(const StepPlan& plan) : width_(plan.step_numbers.size()) {
    for (size_t i = 0; i < plan.step_numbers.size(); ++i) columns_.emplace(plan.step_numbers[i], i);
    for (size_t i = 0; i < plan.rank_indices.size(); ++i) rows_.emplace(plan.rank_indices[i], i);
  }
  std::optional<size_t> Cell(size_t rank_index, int64_t step_number) const {
    const auto row = rows_.find(rank_index);
    const auto column = columns_.find(step_number);
    if (row == rows_.end() || column == columns_.end()) return std::nullopt;
    return row->second * width_ + column->second;
  }

 private:
  size_t width_;
  std::unordered_map<int64_t, size_t> columns_;
  std::unordered_map<size_t, size_t> rows_;
};

bool IsWide(const PageModel& model, const StepPlan& plan) {
  return plan.rank_indices.size() * plan.step_numbers.size() <= model.limits.exact_step_cells;
}

/// When the steps of the plan happened, on the common clock.
void SetStepTimes(const PageModel& model, StepPlan* plan) {
  std::unordered_map<int64_t, size_t> columns;
  for (size_t i = 0; i < plan->step_numbers.size(); ++i) columns.emplace(plan->step_numbers[i], i);
  std::vector<std::optional<int32_t>> windows(plan->step_numbers.size());
  plan->start_ns.assign(plan->step_numbers.size(), 0);
  plan->end_ns.assign(plan->step_numbers.size(), 0);
  for (const BreakdownRow& row : model.result().Get<analysis::Breakdown>().steps) {
    if (!row.step_number || row.basis == analysis::Basis::kNone) continue;
    const auto column = columns.find(*row.step_number);
    if (column == columns.end()) continue;
    const model::RankTrace& trace = model.run().ranks[row.rank_index];
    const int64_t start_ns = trace.clock.ToRun(row.start_ns) - model.origin_ns;
    const int64_t end_ns = trace.clock.ToRun(row.start_ns + row.span_ns) - model.origin_ns;
    const size_t at = column->second;
    if (!windows[at] || trace.window < *windows[at]) {
      windows[at] = trace.window;
      plan->start_ns[at] = start_ns;
      plan->end_ns[at] = end_ns;
    } else if (trace.window == *windows[at]) {
      plan->start_ns[at] = std::min(plan->start_ns[at], start_ns);
      plan->end_ns[at] = std::max(plan->end_ns[at], end_ns);
    }
  }
}

}  // namespace

uint16_t ShortFloat(int64_t value) {
  constexpr int kFractionBits = 10;
  auto bits = static_cast<uint64_t>(std::max<int64_t>(value, 0));
  int exponent = 0;
  if (bits >> (kFractionBits + 1) != 0) {
    exponent = static_cast<int>(std::bit_width(bits)) - kFractionBits - 1;
    bits = (bits + (uint64_t{1} << (exponent - 1))) >> exponent;  // May become 2^11, which carries below.
  }
  // The leading 1 of the fraction adds one to the exponent's place: subnormal, then normal numbers, without a seam.
  return static_cast<uint16_t>((static_cast<uint64_t>(exponent) << kFractionBits) + bits);
}

StepPlan PlanSteps(const PageModel& model, std::vector<Reduction>* reductions) {
  StepPlan plan;
  std::set<int64_t> numbers;
  std::set<size_t> ranks;
  for (const BreakdownRow& row : model.result().Get<analysis::Breakdown>().steps) {
    if (!row.step_number || row.basis == analysis::Basis::kNone) continue;
    numbers.insert(*row.step_number);
    ranks.insert(row.rank_index);
  }
  plan.step_numbers.assign(numbers.begin(), numbers.end());
  plan.rank_indices.assign(ranks.begin(), ranks.end());
  if (plan.step_numbers.empty()) return plan;
  const size_t most = std::max<size_t>(1, model.limits.step_cells / plan.rank_indices.size());
  if (plan.step_numbers.size() > most) {
    const size_t all = plan.step_numbers.size();
    std::vector<int64_t> kept;
    for (size_t i = 0; i < most; ++i) kept.push_back(plan.step_numbers[i * all / most]);
    plan.step_numbers = std::move(kept);
    reductions->push_back({"steps", fmt::format("rank by step: {} of {} steps, evenly spread",
                                                report::FormatCount(most), report::FormatCount(all))});
  }
  SetStepTimes(model, &plan);
  if (!IsWide(model, plan)) {
    reductions->push_back({"step_precision", "rank by step: values keep three digits, rounded by up to 0.05 %"});
  }
  return plan;
}

std::string StepShapeJson(const StepPlan& plan) {
  if (plan.step_numbers.empty()) return "null";
  report::JsonRow json;
  json.Key("step_numbers").List(plan.step_numbers).Key("start_ns").List(plan.start_ns).Key("end_ns").List(plan.end_ns);
  json.Key("rank_indices").List(plan.rank_indices).Key("quantities").StartArray();
  for (const Quantity& quantity : kQuantities) json.Text(quantity.name);
  json.EndArray();
  return std::string(json.Finish());
}

std::string StepsBytes(const PageModel& model, const StepPlan& plan) {
  const Grid grid(plan);
  ColumnBlock block;
  report::JsonRow units;
  std::vector<int64_t> cells(plan.step_numbers.size() * plan.rank_indices.size());
  for (const Quantity& quantity : kQuantities) {
    std::fill(cells.begin(), cells.end(), kMissing);
    // Of several steps of one number the first counts.
    const auto set = [&](size_t rank_index, int64_t step_number, int64_t value_ns) {
      const auto cell = grid.Cell(rank_index, step_number);
      if (cell && cells[*cell] == kMissing) cells[*cell] = std::max<int64_t>(value_ns, 0);
    };
    if (quantity.field != nullptr) {
      for (const BreakdownRow& row : model.result().Get<analysis::Breakdown>().steps) {
        if (row.step_number && row.basis != analysis::Basis::kNone)
          set(row.rank_index, *row.step_number, row.*quantity.field);
      }
    } else if (model.result().Has<analysis::Collectives>()) {
      for (const analysis::WaitStep& row :
           analysis::ComputeWaitSteps(model.shared, model.result().Get<analysis::Collectives>()))
        set(row.rank_index, row.step_number, row.wait_ns);
    }
    if (IsWide(model, plan)) {
      AddWide(quantity.name, cells, &block, &units);
    } else {
      AddShort(quantity.name, cells, &block, &units);
    }
  }
  block.header().Key("unit_ns").Raw(units.Finish());
  return block.Finish();
}

}  // namespace lockstep::page
