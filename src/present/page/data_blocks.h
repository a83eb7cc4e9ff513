#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/table.h"
#include "present/page/page_model.h"

namespace lockstep::page {

// The blocks beside `main`: what goes in is planned first, cheaply, because `main` says it; the bytes are made when
// they are asked for. Bytes: docs/formats/page-data.md.

/// The rank x step matrix.
struct StepPlan {
  std::vector<int64_t> step_numbers;  ///< Columns, ascending; empty = there is no such block.
  std::vector<size_t> rank_indices;   ///< Rows.
  /// Of each column, from the page's zero: when the first rank began the step and the last one ended it, in the first
  /// window that has it.
  std::vector<int64_t> start_ns, end_ns;
};
StepPlan PlanSteps(const PageModel& model, std::vector<Reduction>* reductions);
std::string StepShapeJson(const StepPlan& plan);
/// A time in 16 bits, rounded by at most 1/2048: 6 bits of exponent e, 10 of fraction f; below e = 1 it is f, else
/// (1024 + f) x 2^(e - 1). 2^16 - 1 is never the result.
uint16_t ShortFloat(int64_t value);
std::string StepsBytes(const PageModel& model, const StepPlan& plan);

/// Instances of collectives: indices into Collectives::instances, ascending.
std::vector<size_t> PlanCollectives(const PageModel& model, std::vector<Reduction>* reductions);
std::string CollectivesBytes(const PageModel& model, const std::vector<size_t>& instances);

/// Levels of detail of the overview, coarsest first; each has kLevelFactor times the buckets of the one before.
struct TimelinePlan {
  std::vector<size_t> bucket_counts;
  int64_t finest_bucket_ns = 1;
};
inline constexpr size_t kLevelFactor = 4;
TimelinePlan PlanTimeline(const PageModel& model, std::vector<Reduction>* reductions);
std::string TimelineBytes(const PageModel& model, const TimelinePlan& plan);

/// Names of events, sorted by text, and each name's place among them.
struct NamePlan {
  std::vector<NameId> names;
  std::vector<uint32_t> place;  ///< By NameId; names that no event of the page has are UINT32_MAX.
};
NamePlan PlanNames(const PageModel& model);
std::string NamesBytes(const PageModel& model, const NamePlan& plan);

/// Tables that passes declare and that have rows, in registry order; each is cut at PageLimits::table_rows.
std::vector<const analysis::Table*> PlanTables(const PageModel& model, std::vector<Reduction>* reductions);
/// Their names, sentences and numbers of rows: a JSON array.
std::string TableListJson(const PageModel& model, const std::vector<const analysis::Table*>& tables);
/// Columns and rows, as JSON.
std::string TablesBytes(const PageModel& model, const std::vector<const analysis::Table*>& tables);

/// Single events. Would events of this lane go in?
bool TakesLane(const PageLimits& limits, model::Lane lane);
/// Says what the limits leave out; false when no event at all is left.
bool PlanEvents(const PageModel& model, std::vector<Reduction>* reductions);
std::string EventsBytes(const PageModel& model, const NamePlan& names, size_t rank_index);

}  // namespace lockstep::page
