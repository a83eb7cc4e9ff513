#pragma once

#include <string_view>

namespace lockstep::ingest {

/// Whether `a` comes before `b` when runs of digits compare as numbers: "rank2" before "rank10". A strict total order:
/// names that differ only in leading zeros are ordered by their bytes. Digits may be of any number.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace lockstep::ingest
