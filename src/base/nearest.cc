#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace lockstep {
namespace {

// Three rows of the usual table are enough to see a swap of neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;
  if (word.size() > kLongest) return {};
  const std::string* nearest = nullptr;
  size_t best = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    const size_t allowed = std::max<size_t>(2, std::max(word.size(), candidate.size()) / 3);
    const bool prefix = word.size() >= 3 && candidate.starts_with(word);
    if ((distance <= allowed || prefix) && (nearest == nullptr || distance < best)) {
      nearest = &candidate;
      best = distance;
    }
  }
  return nearest == nullptr ? std::string() : *nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(word, candidates);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace lockstep
