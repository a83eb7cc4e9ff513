#include <algorithm>

#include "ingest/flight_recorder/flight_recorder.h"
#include "ingest/flight_recorder/name_numbers.h"

namespace lockstep::ingest {

std::optional<int32_t> RankOfDumpName(std::string_view file_name) {
  using Label = NameNumber::Label;
  const std::vector<NameNumber> numbers = NumbersOfName(file_name);
  if (numbers.empty()) return std::nullopt;
  const NameNumber& last = numbers.back();
  if (last.at_end && (last.label == Label::kRank || last.label == Label::kDump)) return last.value;
  // "rank12_node7": the word says more than the place.
  const auto by_word =
      std::find_if(numbers.rbegin(), numbers.rend(), [](const NameNumber& n) { return n.label == Label::kRank; });
  if (by_word != numbers.rend()) return by_word->value;
  return last.at_end && last.label == Label::kNone ? std::optional(last.value) : std::nullopt;
}

}  // namespace lockstep::ingest
