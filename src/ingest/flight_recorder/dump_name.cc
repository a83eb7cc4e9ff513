#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/ascii.h"
#include "ingest/flight_recorder/entry_fields.h"
#include "ingest/flight_recorder/flight_recorder.h"

namespace lockstep::ingest {

namespace {

constexpr size_t kMostDigits = 7;  // More are a time or a process id.

std::optional<int32_t> RankFrom(std::string_view digits) {
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  const auto number = NumberOf(digits);
  return number ? std::optional(static_cast<int32_t>(*number)) : std::nullopt;
}

std::string_view WithoutEndings(std::string_view name) {
  constexpr std::array<std::string_view, 10> kEndings = {".gz",  ".zst", ".zstd", ".json", ".pickle",
                                                         ".pkl", ".bin", ".dump", ".pt",   ".txt"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view ending : kEndings) {
      if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
      name.remove_suffix(ending.size());
      found = true;
    }
  }
  return name;
}

}  // namespace

std::optional<int32_t> RankOfDumpName(std::string_view file_name) {
  if (const size_t slash = file_name.rfind('/'); slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  const std::string_view name = WithoutEndings(file_name);
  size_t begin = name.size();
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  // "rank12_node7": the word says more than the place.
  constexpr std::string_view kWord = "rank";
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (size_t word = lower.rfind(kWord); word != std::string::npos; word = lower.rfind(kWord, word - 1)) {
    size_t first = word + kWord.size();
    while (first < lower.size() && (lower[first] == '_' || lower[first] == '-' || lower[first] == '=')) ++first;
    size_t last = first;
    while (last < lower.size() && IsDigit(lower[last])) ++last;
    if (const auto rank = RankFrom(name.substr(first, last - first))) return rank;
    if (word == 0) break;
  }
  return RankFrom(name.substr(begin));
}

}  // namespace lockstep::ingest
