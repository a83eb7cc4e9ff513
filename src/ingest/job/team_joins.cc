#include "ingest/job/team_joins.h"

#include <optional>

#include "ingest/job/join_spans.h"
#include "ingest/job/name_merge.h"
#include "ingest/nccl_trace/nccl_trace.h"

namespace lockstep::ingest {
namespace {

constexpr const char* kGiveQuestion = "ingest.give";
constexpr const char* kJoinQuestion = "ingest.join";
/// Of traces on their way at a time: all processes get them, as all get every question.
constexpr size_t kMostBytesAtOnce = size_t{64} << 20;

}  // namespace

TeamJoins::TeamJoins(Team* team, Held held) : team_(*team), held_(held) {
  team->Handle<Given, GiveRequest>(kGiveQuestion, [this](const GiveRequest& request) { return Give(request); });
  team->Handle<std::vector<JoinedTrace>, JoinRequest>(kJoinQuestion,
                                                      [this](const JoinRequest& request) { return Join(request); });
}

model::RankTrace& TeamJoins::At(const Place& place) {
  return held_.outcomes->at(place.file).contents.at(place.content).trace;
}

model::RankTrace& TeamJoins::Taken(const Place& from, bool is_nccl_ring) {
  model::RankTrace& trace = At(from);
  if (is_nccl_ring && turned_.insert({from.file, from.content}).second) TurnIntoAnnotations(&trace);
  return trace;
}

TeamJoins::Given TeamJoins::Give(const GiveRequest& request) {
  Given given;
  if (request.from.process != team_.process()) return given;
  given.trace = ToBytes(Taken(request.from, request.is_nccl_ring));
  for (uint32_t id = 0; id < held_.names->size(); ++id) given.names.emplace_back((*held_.names)[NameId{id}]);
  return given;
}

std::vector<JoinedTrace> TeamJoins::Join(const JoinRequest& request) {
  std::vector<JoinedTrace> joined;
  for (const Step& step : request.steps) {
    if (step.into.process != team_.process()) continue;
    model::RankTrace& into = At(step.into);
    JoinedTrace& result = joined.emplace_back();
    if (step.from.process == team_.process()) {
      result.left_out = JoinSpans(Taken(step.from, step.is_nccl_ring), *held_.names, step.scope, &into);
    } else {
      Result<model::RankTrace> brought = FromBytes<model::RankTrace>(step.given.trace);
      if (!brought) throw TeamError(brought.error().ToString());
      std::vector<NameId> new_ids;
      for (const std::string& name : step.given.names) new_ids.push_back(held_.names->Intern(name));
      RenameIds(new_ids, &*brought);
      result.left_out = JoinSpans(*brought, *held_.names, step.scope, &into);
    }
    result.event_count = into.event_count;
    result.complete_event_count = into.complete_event_count;
    result.first_ns = into.first_ns;
    result.last_ns = into.last_ns;
  }
  return joined;
}

std::vector<JoinedTrace> TeamJoins::Run(const std::vector<TraceJoin>& joins, const ReadAs& read_as) {
  const auto place_of = [&](const TracePlace& place) {
    const auto [process, file] = read_as[place.file];
    return Place{process, file, static_cast<uint32_t>(place.content)};
  };
  std::vector<JoinedTrace> joined;
  JoinRequest request;
  size_t byte_count = 0;
  const auto carry_out = [&] {
    if (request.steps.empty()) return;
    const auto answers = team_.Ask<std::vector<JoinedTrace>>(kJoinQuestion, request);
    std::vector<size_t> next(answers.size(), 0);
    for (const Step& step : request.steps) {
      joined.push_back(answers.at(step.into.process).at(next[step.into.process]++));
    }
    request.steps.clear();
    byte_count = 0;
  };
  for (const TraceJoin& join : joins) {
    Step step{place_of(join.from), place_of(join.into), join.scope, join.from.is_nccl_ring, {}};
    if (step.from.process != step.into.process) {
      auto given = team_.Ask<Given>(kGiveQuestion, GiveRequest{step.from, step.is_nccl_ring});
      step.given = std::move(given.at(step.from.process));
      byte_count += step.given.trace.size();
    }
    request.steps.push_back(std::move(step));
    if (byte_count >= kMostBytesAtOnce) carry_out();
  }
  carry_out();
  return joined;
}

}  // namespace lockstep::ingest
