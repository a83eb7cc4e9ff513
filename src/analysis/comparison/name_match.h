#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/comparison/run_profile.h"

namespace lockstep::comparison {

/// How a name of A was found in B.
enum class NameMatch : uint8_t {
  kNone,        ///< In one run only.
  kExact,       ///< The same text.
  kNormalised,  ///< The same once template arguments, parameters, lambda numbers and trailing counters are left out.
};
const char* NameMatchName(NameMatch match);  ///< "none", "exact", "normalised".

/// The name without what compilers and versions change: "<...>", "(...)", "{lambda(...)#3}" and digits behind '#';
/// words in front such as "void ". What is left of nothing but brackets is the name itself.
std::string NormaliseName(std::string_view name);

/// A name of either run, or of both. At least one index is set.
struct NamePair {
  NameMatch match = NameMatch::kNone;
  std::optional<size_t> a = {};
  std::optional<size_t> b = {};
};

/// Exact matches first; of the rest, names whose normalised form occurs once on either side are joined.
/// Order: A's, then those of B alone. Cost: O(n log n).
std::vector<NamePair> MatchNames(const std::vector<NameProfile>& a, const std::vector<NameProfile>& b);

}  // namespace lockstep::comparison
