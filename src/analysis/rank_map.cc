#include "analysis/rank_map.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::analysis {
namespace {

struct Context {
  AnalysisOptions options;
  std::vector<bool> is_communication;
};

}  // namespace

std::string ContextBytes(const RunContext& shared) { return ToBytes(Context{shared.options, shared.is_communication}); }

model::MapAnswer RankPasses::Answer(const model::HeldRuns& runs, const model::MapRequest& request,
                                    uint32_t default_thread_count) const {
  const auto run = runs.find(request.run);
  if (run == runs.end()) throw TeamError("asked for a run that this process does not hold");
  const auto pass = answers_.find(request.pass);
  if (pass == answers_.end()) throw TeamError("asked for the pass '" + request.pass + "', which nobody added");
  Result<Context> context = FromBytes<Context>(request.context);
  if (!context) throw TeamError(context.error().ToString());
  RunContext shared;
  shared.run = &run->second.run;
  shared.options = std::move(context->options);
  shared.is_communication = std::move(context->is_communication);
  if (shared.options.thread_count == 0) shared.options.thread_count = default_thread_count;

  std::vector<size_t> wanted = request.rank_indices;
  std::sort(wanted.begin(), wanted.end());
  std::vector<size_t> held;
  std::set_intersection(wanted.begin(), wanted.end(), run->second.rank_indices.begin(), run->second.rank_indices.end(),
                        std::back_inserter(held));
  std::vector<std::string> answers = pass->second(shared, request.args, held);
  model::MapAnswer answer;
  for (size_t i = 0; i < held.size(); ++i) answer.emplace_back(held[i], std::move(answers[i]));
  return answer;
}

void HandleMaps(Team* team, const RankPasses* passes, const model::HeldRuns* runs, uint32_t default_thread_count) {
  team->Handle<model::MapAnswer, model::MapRequest>(
      model::kMapQuestion, [passes, runs, default_thread_count](const model::MapRequest& request) {
        return passes->Answer(*runs, request, default_thread_count);
      });
}

}  // namespace lockstep::analysis
