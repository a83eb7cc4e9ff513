#include "ingest/evidence/ranks_of_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "ingest/flight_recorder/name_numbers.h"

namespace lockstep::ingest {
namespace {

using Numbers = std::vector<NameNumber>;
using Label = NameNumber::Label;

/// The numbers that may be a rank, the last first: those behind "rank", or all but what is known to be something else.
Numbers Candidates(const Numbers& numbers, bool behind_rank) {
  Numbers candidates;
  std::copy_if(numbers.rbegin(), numbers.rend(), std::back_inserter(candidates), [&](const NameNumber& number) {
    return behind_rank ? number.label == Label::kRank : number.label != Label::kOther;
  });
  return candidates;
}

}  // namespace

std::optional<std::vector<int32_t>> RanksOfNames(const std::vector<std::string>& names) {
  std::map<std::string_view, int32_t> rank_of_stem;
  for (const std::string& name : names) rank_of_stem.emplace(StemOfName(name), 0);
  for (const bool behind_rank : {true, false}) {
    std::vector<Numbers> candidates;
    for (const auto& [stem, rank] : rank_of_stem) candidates.push_back(Candidates(NumbersOfName(stem), behind_rank));
    size_t place_count = SIZE_MAX;
    for (const Numbers& of_name : candidates) place_count = std::min(place_count, of_name.size());
    for (size_t place = 0; place < place_count && !candidates.empty(); ++place) {
      std::set<int32_t> values;
      for (const Numbers& of_name : candidates) values.insert(of_name[place].value);
      if (values.size() < candidates.size()) continue;
      size_t i = 0;
      for (auto& [stem, rank] : rank_of_stem) rank = candidates[i++][place].value;
      std::vector<int32_t> ranks;
      for (const std::string& name : names) ranks.push_back(rank_of_stem.at(StemOfName(name)));
      return ranks;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::ingest
