#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::ingest {

/// The ranks that the names of one folder give together: the number that differs from name to name, if it can be a rank
/// (behind "rank" rather than at the end). Parallel to `names`; nothing where no number does. Names that are equal but
/// for their endings are of one rank.
std::optional<std::vector<int32_t>> RanksOfNames(const std::vector<std::string>& names);

}  // namespace lockstep::ingest
