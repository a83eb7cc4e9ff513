#include "ingest/job/same_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep::ingest {
namespace {

using Place = std::pair<size_t, size_t>;  // File, content.

TraceContent& At(std::vector<FileOutcome>& outcomes, const Place& place) {
  return outcomes[place.first].contents[place.second];
}

/// The ranks of the file are known now: the ledger's row about a guess no longer applies.
void ForgetGuess(FileOutcome* outcome) {
  const auto has_rank = [](const TraceContent& content) { return content.has_rank; };
  if (!std::all_of(outcome->contents.begin(), outcome->contents.end(), has_rank)) return;
  model::Ledger rest;
  for (const model::LedgerEntry& entry : outcome->contents.front().ledger.entries()) {
    if (entry.code != "nsys_rank_guess") rest.Add(entry);
  }
  outcome->contents.front().ledger = std::move(rest);
}

}  // namespace

std::set<Place> FindSameRecordings(const std::vector<TraceFile>& files, std::vector<FileOutcome>* outcomes,
                                   model::Ledger* ledger) {
  std::map<uint64_t, std::vector<Place>> by_recording;
  for (size_t i = 0; i < outcomes->size(); ++i) {
    for (size_t c = 0; c < (*outcomes)[i].contents.size(); ++c) {
      const uint64_t recording = (*outcomes)[i].contents[c].recording;
      if (recording != 0) by_recording[recording].emplace_back(i, c);
    }
  }
  std::set<Place> left_out;
  std::map<std::pair<size_t, size_t>, uint64_t> kept_instead;  // (file left out, file kept): ranks
  for (const auto& [recording, places] : by_recording) {
    if (places.size() < 2) continue;
    const auto worth = [&](const Place& place) {
      const model::RankTrace& trace = At(*outcomes, place).trace;
      return std::tuple(trace.base_time_known, trace.complete_event_count);
    };
    const Place kept_at = *std::max_element(places.begin(), places.end(), [&](const Place& a, const Place& b) {
      return worth(a) != worth(b) ? worth(a) < worth(b) : a > b;
    });
    TraceContent& kept = At(*outcomes, kept_at);
    for (const Place& place : places) {
      if (place == kept_at) continue;
      const TraceContent& other = At(*outcomes, place);
      if (!kept.has_rank && other.has_rank) {
        kept.has_rank = true;
        kept.trace.rank = other.trace.rank;
        kept.trace.world_size = other.trace.world_size;
        ForgetGuess(&(*outcomes)[kept_at.first]);
      }
      left_out.insert(place);
      ++kept_instead[{place.first, kept_at.first}];
    }
  }
  for (const auto& [pair, count] : kept_instead) {
    ledger->Add(
        {.code = "same_recording",
         .severity = model::Severity::kInfo,
         .source = files[pair.first].DisplayName(),
         .count = count,
         .message = fmt::format(
             "is another form of the recording in {}: only its additional information was used, and events count once",
             files[pair.second].DisplayName()),
         .advice = {}});
  }
  return left_out;
}

}  // namespace lockstep::ingest
