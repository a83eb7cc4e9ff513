#pragma once

#include <string>
#include <vector>

#include "present/page/page_model.h"

namespace lockstep::page {

/// What `main` says of the other blocks.
struct BlockFacts {
  std::string step_matrix_json = "null";  ///< StepMatrixShape.
  std::string timeline_json = "null";
  std::string tables_json = "[]";  ///< DeclaredTableFacts.
};

/// The JSON text of AnalyzeData (web/src/data/types.ts). Tables longer than the limits are cut, with a row in
/// `reductions`. Cost: in proportion to the tables, and one walk over collectives and memory events.
std::string AnalyzeJson(const PageModel& model, const BlockFacts& blocks, std::vector<Reduction>* reductions);

}  // namespace lockstep::page
