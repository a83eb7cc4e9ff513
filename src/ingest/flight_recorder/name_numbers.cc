#include "ingest/flight_recorder/name_numbers.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/ascii.h"
#include "base/letter_case.h"
#include "ingest/flight_recorder/entry_fields.h"

namespace lockstep::ingest {

namespace {

using Label = NameNumber::Label;

constexpr size_t kMostDigits = 7;

bool IsSeparator(char c) { return c == '_' || c == '-' || c == '=' || c == '.'; }

std::string_view WithoutSeparators(std::string_view text) {
  while (!text.empty() && IsSeparator(text.back())) text.remove_suffix(1);
  return text;
}

// `before`: in lower case.
Label LabelOf(std::string_view before) {
  std::string_view word = WithoutSeparators(before);
  constexpr std::string_view kRank = "rank";
  if (word.ends_with(kRank)) {
    word.remove_suffix(kRank.size());
    word = WithoutSeparators(word);
    return word.ends_with("local") || word.ends_with("node") || word.ends_with("group") ? Label::kOther : Label::kRank;
  }
  if (word.ends_with("trace") || word.ends_with("dump")) return Label::kDump;
  constexpr std::array<std::string_view, 8> kOthers = {"node", "host", "pid", "tid", "job", "run", "pod", "attempt"};
  const bool other = std::any_of(kOthers.begin(), kOthers.end(), [&](auto name) { return word.ends_with(name); });
  return other ? Label::kOther : Label::kNone;
}

}  // namespace

std::string_view StemOfName(std::string_view path) {
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  constexpr std::array<std::string_view, 15> kEndings = {".gz",  ".zst", ".zstd", ".json",   ".pickle",
                                                         ".pkl", ".bin", ".dump", ".pt",     ".txt",
                                                         ".log", ".out", ".err",  ".stdout", ".stderr"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view ending : kEndings) {
      if (path.size() <= ending.size() || !path.ends_with(ending)) continue;
      path.remove_suffix(ending.size());
      found = true;
    }
  }
  return path;
}

std::vector<NameNumber> NumbersOfName(std::string_view path) {
  const std::string_view stem = StemOfName(path);
  const std::string lower = Lowered(stem);
  std::vector<NameNumber> numbers;
  for (size_t first = 0; first < stem.size();) {
    if (!IsDigit(stem[first])) {
      ++first;
      continue;
    }
    size_t last = first;
    while (last < stem.size() && IsDigit(stem[last])) ++last;
    const auto number = last - first <= kMostDigits ? NumberOf(stem.substr(first, last - first)) : std::nullopt;
    if (number) {
      numbers.push_back({.value = static_cast<int32_t>(*number),
                         .label = LabelOf(std::string_view(lower).substr(0, first)),
                         .at_end = last == stem.size()});
    }
    first = last;
  }
  return numbers;
}

}  // namespace lockstep::ingest
