#pragma once

#include <any>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/rank_context.h"
#include "analysis/table.h"
#include "base/aggregate.h"
#include "base/archive.h"
#include "model/ledger.h"
#include "model/run.h"

namespace lockstep::analysis {

// A pass answers one question about a run. It has a file of its own, which holds all of it: what it asks of each rank's
// events, what it makes of the answers, and its documentation. One list (pass_registry.cc) names the passes; Analyze
// runs them, takes their time, and keeps what they return.

/// When a pass runs.
enum class PassKind : uint8_t {
  kUsual,      ///< Unless others are asked for.
  kOnRequest,  ///< Only when named, or asked for by an option of its own.
  kInternal,   ///< Only for passes that need it; its output is dropped in the end and cannot be requested.
};

/// The documentation of a pass.
struct PassInfo {
  std::string_view question = {};            ///< One line: what it answers.
  std::vector<std::string_view> needs = {};  ///< Passes whose output it reads: they run before it.
  PassKind kind = PassKind::kUsual;
  std::vector<Table> tables = {};  ///< What is shown of its output.
  std::string_view name = {};      ///< "breakdown"; set from the output's kPass.
};

/// What a pass reads once all ranks have answered and the clocks are aligned.
class PassContext {
 public:
  /// Borrows all of them.
  PassContext(const RunContext& shared, AnalysisResult* result, model::Ledger* ledger)
      : shared_(shared), result_(result), ledger_(ledger) {}

  const RunContext& shared() const { return shared_; }
  const model::Run& run() const { return *shared_.run; }
  const AnalysisOptions& options() const { return shared_.options; }
  /// Output of a pass that this one needs.
  template <typename Output>
  const Output& Get() const {
    return result_->Get<Output>();
  }
  /// Moves an output out, for a pass that goes on with what is there.
  template <typename Output>
  Output Take() {
    return result_->Take<Output>();
  }
  /// For what the pass has to tell of the input.
  model::Ledger& ledger() { return *ledger_; }

 private:
  const RunContext& shared_;
  AnalysisResult* result_;
  model::Ledger* ledger_;
};

/// A pass of the registry, whatever its types. Made by RankPass, ReducingPass or RunPass.
struct Pass {
  PassInfo info;
  /// What it makes of one rank's events, where they are; null when it asks no rank. The value is the pass's Partial.
  std::function<std::any(const RankContext&)> map;
  std::function<std::string(const std::any&)> partial_to_bytes;
  std::function<Result<std::any>(std::string_view)> partial_from_bytes;
  /// Puts the pass's output into the result. `partials`: by rank index, one without a value where the map failed.
  std::function<void(PassContext& context, std::vector<std::any> partials, AnalysisResult* result)> finish;
};

/// A pass that looks at the whole run: `compute` reads other passes' outputs, and events through MapRanks
/// (analysis/rank_map.h) alone.
template <typename Output>
Pass RunPass(PassInfo info, Output (*compute)(PassContext&)) {
  Pass pass;
  pass.info = std::move(info);
  pass.info.name = Output::kPass;
  pass.finish = [compute](PassContext& context, std::vector<std::any> /*partials*/, AnalysisResult* result) {
    result->Edit<Output>();  // It ran, even where it fails.
    Output output = compute(context);
    result->Edit<Output>() = std::move(output);
  };
  return pass;
}

/// A pass that makes a Partial of every rank's events, and its output of those. `map` depends on that rank alone; a
/// Partial is what base/archive.h takes. `reduce` gets them by rank index; that of a rank whose map failed is empty.
template <typename Output, typename Partial>
Pass ReducingPass(PassInfo info, Partial (*map)(const RankContext&),
                  Output (*reduce)(PassContext&, std::vector<Partial>)) {
  Pass pass;
  pass.info = std::move(info);
  pass.info.name = Output::kPass;
  pass.map = [map](const RankContext& context) { return std::any(map(context)); };
  pass.partial_to_bytes = [](const std::any& partial) { return ToBytes(*std::any_cast<Partial>(&partial)); };
  pass.partial_from_bytes = [](std::string_view bytes) -> Result<std::any> {
    ASSIGN_OR_RETURN(Partial partial, FromBytes<Partial>(bytes));
    return std::any(std::move(partial));
  };
  pass.finish = [reduce](PassContext& context, std::vector<std::any> partials, AnalysisResult* result) {
    std::vector<Partial> typed(partials.size());
    for (size_t i = 0; i < partials.size(); ++i) {
      if (auto* partial = std::any_cast<Partial>(&partials[i])) typed[i] = std::move(*partial);
      partials[i].reset();
    }
    result->Edit<Output>();
    Output output = reduce(context, std::move(typed));
    result->Edit<Output>() = std::move(output);
  };
  return pass;
}

template <typename Row>
void MoveRows(std::vector<Row>* from, std::vector<Row>* to) {
  to->insert(to->end(), std::make_move_iterator(from->begin()), std::make_move_iterator(from->end()));
}

/// A pass that looks at each rank alone: every table of its output, a vector, is that of rank 0, then that of rank 1,
/// and so on.
template <typename Output>
Pass RankPass(PassInfo info, Output (*map)(const RankContext&)) {
  return ReducingPass<Output, Output>(std::move(info), map, [](PassContext&, std::vector<Output> ranks) {
    Output all;
    for (Output& rank : ranks) {
      VisitMembers(
          all, [&rank](auto&... to) { VisitMembers(rank, [&to...](auto&... from) { (MoveRows(&from, &to), ...); }); });
    }
    return all;
  });
}

}  // namespace lockstep::analysis
