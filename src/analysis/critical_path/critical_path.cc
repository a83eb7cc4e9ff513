#include "analysis/critical_path/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "analysis/collectives.h"
#include "analysis/job_graph/rank_graph.h"
#include "analysis/pass.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;

constexpr int64_t kNever = INT64_MAX;

/// Work that could be made shorter or later; the other edges only say what waits for what.
bool IsWork(const graph::Edge& edge) {
  return edge.weight_ns > 0 && edge.kind != EdgeKind::kOrder && edge.kind != EdgeKind::kSync &&
         edge.kind != EdgeKind::kJoin;
}

/// What a step yields, before steps are put together.
struct Solved {
  std::optional<CriticalPathStep> step;
  std::vector<CriticalPathRow> rows;
  std::map<std::pair<EdgeKind, uint32_t>, int64_t> name_slack;
  std::string error;
};

void AddPiece(const graph::Edge& edge, int64_t start_ns, CriticalPathStep* step) {
  if (!step->pieces.empty()) {
    CriticalPathPiece& last = step->pieces.back();
    if (last.rank_index == edge.owner && last.kind == edge.kind && last.name.value == edge.label &&
        last.start_ns + last.duration_ns == start_ns) {
      last.duration_ns += edge.weight_ns;
      return;
    }
  }
  step->pieces.push_back({edge.owner, edge.kind, NameId{edge.label}, start_ns, edge.weight_ns});
}

void FollowPath(const JobStepGraph& joined, const std::vector<int64_t>& times, const model::Run& run,
                CriticalPathStep* step, std::vector<CriticalPathRow>* rows) {
  std::map<std::tuple<size_t, EdgeKind, uint32_t>, int64_t> sums;
  for (const uint32_t index : graph::CriticalEdges(joined.graph, times, joined.sink)) {
    const graph::Edge& edge = joined.graph.edge(index);
    if (edge.weight_ns == 0) continue;
    step->path_ns += edge.weight_ns;
    step->kind_ns[static_cast<size_t>(edge.kind)] += edge.weight_ns;
    sums[{edge.owner, edge.kind, edge.label}] += edge.weight_ns;
    if (edge.weight_ns > 0) AddPiece(edge, joined.start_ns + times[edge.from], step);
  }
  for (const auto& [key, sum_ns] : sums) {
    const auto& [rank, kind, label] = key;
    rows->push_back({rank, step->step, kind, NameId{label}, sum_ns});
  }
  std::sort(rows->begin(), rows->end(), [&](const CriticalPathRow& a, const CriticalPathRow& b) {
    if (a.path_ns != b.path_ns) return a.path_ns > b.path_ns;
    return std::tuple(a.rank_index, a.kind, run.names[a.name]) < std::tuple(b.rank_index, b.kind, run.names[b.name]);
  });
}

void FindSlack(const JobStepGraph& joined, const std::vector<int64_t>& times, size_t rank_count, Solved* solved) {
  const std::vector<int64_t> slack = graph::Slack(joined.graph, times, joined.sink);
  std::vector<int64_t> of_rank(rank_count, kNever);
  for (const graph::Edge& edge : joined.graph.edges()) {
    if (!IsWork(edge) || slack[edge.to] == kNever) continue;
    const int64_t slack_ns = times[edge.to] + slack[edge.to] - times[edge.from] - edge.weight_ns;
    if (edge.owner < rank_count) of_rank[edge.owner] = std::min(of_rank[edge.owner], slack_ns);
    if (edge.kind != EdgeKind::kCompute && edge.kind != EdgeKind::kCopy && edge.kind != EdgeKind::kTransfer) continue;
    const auto [least, is_new] = solved->name_slack.try_emplace({edge.kind, edge.label}, slack_ns);
    if (!is_new) least->second = std::min(least->second, slack_ns);
  }
  for (size_t rank = 0; rank < rank_count; ++rank) {
    if (of_rank[rank] != kNever) solved->step->slack.push_back({rank, of_rank[rank]});
  }
}

Solved Solve(const model::Run& run, const Collectives& collectives, const CollectiveFinder& finder,
             const std::vector<RankGraphs>& by_rank_index, const JobStepKey& key) {
  Solved solved;
  const auto joined = JoinJobStep(run, collectives, finder, by_rank_index, key);
  if (!joined) {
    solved.error = joined.error().message;
    return solved;
  }
  CriticalPathStep& step = solved.step.emplace();
  step.window = joined->window;
  step.step = joined->step;
  step.start_ns = joined->start_ns;
  step.step_ns = joined->observed_ns;
  step.rank_count = joined->rank_count;
  step.unmatched_count = joined->unmatched_count;
  const std::vector<int64_t> times = graph::EarliestTimes(joined->graph);
  FollowPath(*joined, times, run, &step, &solved.rows);
  FindSlack(*joined, times, run.ranks.size(), &solved);
  return solved;
}

std::vector<Solved> SolveAll(const model::Run& run, const Collectives& collectives,
                             const std::vector<RankGraphs>& by_rank_index, const std::vector<JobStepKey>& keys,
                             uint32_t thread_count) {
  const CollectiveFinder finder(collectives);
  std::vector<Solved> solved(keys.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next.fetch_add(1); i < keys.size(); i = next.fetch_add(1))
      solved[i] = Solve(run, collectives, finder, by_rank_index, keys[i]);
  };
  const size_t wanted = thread_count > 0 ? thread_count : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(wanted, keys.size()); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return solved;
}

}  // namespace

CriticalPath FindCriticalPath(const model::Run& run, const Collectives& collectives,
                              const std::vector<RankGraphs>& by_rank_index, uint32_t thread_count) {
  CriticalPath path;
  const std::vector<JobStepKey> keys = ListJobSteps(run, by_rank_index);
  std::map<std::pair<EdgeKind, uint32_t>, int64_t> name_slack;
  std::vector<Solved> solved = SolveAll(run, collectives, by_rank_index, keys, thread_count);
  for (size_t i = 0; i < solved.size(); ++i) {
    if (!solved[i].step) {
      model::LedgerEntry entry;
      entry.code = "no_critical_path";
      entry.severity = model::Severity::kWarning;
      entry.message = fmt::format("step {} has no critical path: {}", keys[i].step, solved[i].error);
      entry.advice = "clocks or matched collectives contradict each other there; the other steps are not affected";
      path.notes.push_back(std::move(entry));
      continue;
    }
    for (const auto& [key, slack_ns] : solved[i].name_slack) {
      const auto [least, is_new] = name_slack.try_emplace(key, slack_ns);
      if (!is_new) least->second = std::min(least->second, slack_ns);
    }
    path.steps.push_back(std::move(*solved[i].step));
    path.rows.insert(path.rows.end(), solved[i].rows.begin(), solved[i].rows.end());
  }
  for (const auto& [key, slack_ns] : name_slack) path.names.push_back({key.first, NameId{key.second}, slack_ns});
  std::sort(path.names.begin(), path.names.end(), [&](const NameSlack& a, const NameSlack& b) {
    return std::tuple(a.slack_ns, run.names[a.name], a.kind) < std::tuple(b.slack_ns, run.names[b.name], b.kind);
  });
  return path;
}

namespace {

std::vector<RowColumn<CriticalPathRow>> PathColumns() {
  using Row = CriticalPathRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      Field<&Row::step>("step", "", "Number of the step; 0 where the traces mark no steps."),
      NamedField<&Row::kind, graph::EdgeKindName>(
          "category",
          "What the time is spent on: `host`, `data_loader`, `compute`, `copy`, `transfer`, `launch`, `kernel_gap` or "
          "`delay`.",
          {"host", "data_loader", "compute", "copy", "transfer", "launch", "kernel_gap", "delay"}),
      Field<&Row::name>("name", "", "Operator, call or kernel.", "of no operation: gaps, delays, launches"),
      Field<&Row::path_ns>("path_ns", "ns", "Time on the step's critical path."),
  };
}

}  // namespace

Pass CriticalPathPass() {
  using Range = std::optional<RangePath>;
  return ReducingPass<CriticalPath, Range>(
      {.question = "Which chain of work over all ranks fixes the step time?",
       .needs = {"collectives", "job_graph"},
       .tables = {DeclareTable("critical_path", "critical_path",
                               "Time on the steps' critical paths by rank, category and name; by window and step, then "
                               "longest first, and a step's rows sum to its path",
                               &CriticalPath::rows, PathColumns(), {"critical_path.rows[]", TableOrder::kVerdicts})}},
      [](const RankContext& context) {
        const auto& range = context.options().critical_path_range;
        return range ? FindRangePath(context, range->name, range->instance) : std::nullopt;
      },
      [](PassContext& context, std::vector<Range> ranges) {
        CriticalPath path = FindCriticalPath(context.run(), context.Get<Collectives>(), context.Get<JobGraphs>().ranks,
                                             context.options().thread_count);
        for (model::LedgerEntry& note : path.notes) context.ledger().Add(std::move(note));
        for (Range& range : ranges) {
          if (range) path.range_paths.push_back(std::move(*range));
        }
        return path;
      });
}

}  // namespace lockstep::analysis
