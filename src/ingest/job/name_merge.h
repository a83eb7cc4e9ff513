#pragma once

#include <vector>

#include "base/ids.h"
#include "model/name_table.h"
#include "model/run.h"

namespace lockstep::ingest {

/// Interns every name of `from` in `into`, in order of id. Out: new id by old id.
std::vector<NameId> MergeNames(const model::NameTable& from, model::NameTable* into);

/// Replaces every NameId of `trace` by its new one. Ids beyond `new_ids` (there are none) become the empty name.
void RenameIds(const std::vector<NameId>& new_ids, model::RankTrace* trace);

}  // namespace lockstep::ingest
