#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The candidate with the fewest insertions, deletions, replacements and swaps of neighbours to become `word`,
/// the first of equals; empty when even that is more than a third of the longer one's length (at least 2 are allowed).
std::string NearestName(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean 'kernels'?", or an empty string when nothing is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace lockstep
