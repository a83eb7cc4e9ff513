#include "analysis/job_graph/job_graph.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/pass.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;
using graph::NodeId;

/// A collective of this step: who of it is in the step.
struct Joined {
  struct Member {
    size_t rank_index = 0;
    NodeId arrival = 0;
    NodeId end = 0;
    int64_t arrival_ns = 0;  ///< RunNs, as are all times here.
    int64_t end_ns = 0;
    NameId label;
  };
  std::vector<Member> members;
};

uint32_t Owner(size_t rank_index) { return static_cast<uint32_t>(rank_index); }

void AddMember(const Joined::Member& member, NodeId from, int64_t from_ns, graph::GraphBuilder* builder) {
  const int64_t weight_ns = member.end_ns - from_ns;
  builder->AddEdge({from, member.end, weight_ns, Owner(member.rank_index), member.label.value,
                    weight_ns < 0 ? EdgeKind::kDelay : EdgeKind::kTransfer});
}

/// Arrivals to one node, from there to the ends.
void AddJoined(const CollectiveInstance& instance, const Joined& joined, graph::GraphBuilder* builder) {
  int64_t all_there_ns = joined.members.front().arrival_ns;
  for (const Joined::Member& member : joined.members) all_there_ns = std::max(all_there_ns, member.arrival_ns);
  const NodeId all_there = builder->AddNode();
  for (const Joined::Member& member : joined.members) {
    builder->AddEdge({member.arrival, all_there, 0, Owner(member.rank_index), 0, EdgeKind::kJoin});
    const bool left_early = !instance.synchronising && member.end_ns < all_there_ns;
    if (left_early) {
      AddMember(member, member.arrival, member.arrival_ns, builder);
    } else {
      AddMember(member, all_there, all_there_ns, builder);
    }
  }
}

}  // namespace

std::vector<JobStepKey> ListJobSteps(const model::Run& run, const std::vector<RankGraphs>& by_rank_index) {
  std::map<std::pair<int32_t, int64_t>, JobStepKey> steps;
  for (size_t rank = 0; rank < by_rank_index.size(); ++rank) {
    const auto& parts = by_rank_index[rank].steps;
    for (size_t part = 0; part < parts.size(); ++part) {
      JobStepKey& key = steps[{run.ranks[rank].window, parts[part].step}];
      if (key.parts.empty()) key.parts.assign(by_rank_index.size(), SIZE_MAX);
      key.window = run.ranks[rank].window;
      key.step = parts[part].step;
      if (key.parts[rank] == SIZE_MAX) key.parts[rank] = part;
    }
  }
  std::vector<JobStepKey> keys;
  for (auto& entry : steps) keys.push_back(std::move(entry.second));
  return keys;
}

CollectiveFinder::CollectiveFinder(const Collectives& collectives) {
  for (size_t i = 0; i < collectives.instances.size(); ++i) {
    for (const CollectiveMember& member : collectives.instances[i].members)
      entries_.push_back({member.rank_index, member.trace_start_ns, member.trace_end_ns, i});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.rank_index, a.start_ns, a.end_ns, a.instance) <
           std::tie(b.rank_index, b.start_ns, b.end_ns, b.instance);
  });
}

size_t CollectiveFinder::Find(size_t rank_index, int64_t trace_start_ns, int64_t trace_end_ns) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), std::tie(rank_index, trace_start_ns, trace_end_ns),
                       [](const Entry& entry, const auto& key) {
                         return std::tie(entry.rank_index, entry.start_ns, entry.end_ns) < key;
                       });
  const bool same = found != entries_.end() && found->rank_index == rank_index && found->start_ns == trace_start_ns &&
                    found->end_ns == trace_end_ns;
  return same ? found->instance : SIZE_MAX;
}

Result<JobStepGraph> JoinJobStep(const model::Run& run, const Collectives& collectives, const CollectiveFinder& finder,
                                 const std::vector<RankGraphs>& by_rank_index, const JobStepKey& key) {
  JobStepGraph step;
  step.window = key.window;
  step.step = key.step;
  graph::GraphBuilder builder;
  const NodeId source = builder.AddNode();
  const NodeId sink = builder.AddNode();
  int64_t end_ns = 0;
  for (size_t rank = 0; rank < key.parts.size(); ++rank) {
    if (key.parts[rank] == SIZE_MAX) continue;
    const RankStepGraph& part = by_rank_index[rank].steps[key.parts[rank]];
    const int64_t part_start_ns = run.ranks[rank].clock.ToRun(part.start_ns);
    const int64_t part_end_ns = run.ranks[rank].clock.ToRun(part.end_ns);
    step.start_ns = step.rank_count == 0 ? part_start_ns : std::min(step.start_ns, part_start_ns);
    end_ns = step.rank_count == 0 ? part_end_ns : std::max(end_ns, part_end_ns);
    ++step.rank_count;
  }
  std::map<size_t, Joined> joined;  // by instance
  for (size_t rank = 0; rank < key.parts.size(); ++rank) {
    if (key.parts[rank] == SIZE_MAX) continue;
    const RankStepGraph& part = by_rank_index[rank].steps[key.parts[rank]];
    const model::ClockMap& clock = run.ranks[rank].clock;
    const NodeId first = builder.AddNodes(part.node_count);
    for (const RankEdge& edge : part.edges)
      builder.AddEdge({first + edge.from, first + edge.to, edge.weight_ns, Owner(rank), edge.label.value, edge.kind});
    const int64_t late_ns = clock.ToRun(part.start_ns) - step.start_ns;
    builder.AddEdge({source, first + RankStepGraph::kStart, late_ns, Owner(rank), 0, EdgeKind::kDelay});
    builder.AddEdge({first + RankStepGraph::kEnd, sink, 0, Owner(rank), 0, EdgeKind::kJoin});
    for (const RankCollective& collective : part.collectives) {
      const Joined::Member member{rank,
                                  first + collective.arrival,
                                  first + collective.end,
                                  clock.ToRun(collective.start_ns),
                                  clock.ToRun(collective.end_ns),
                                  collective.label};
      const size_t instance = finder.Find(rank, collective.start_ns, collective.end_ns);
      if (instance != SIZE_MAX) {
        joined[instance].members.push_back(member);
      } else {
        ++step.unmatched_count;
        AddMember(member, member.arrival, member.arrival_ns, &builder);
      }
    }
  }
  for (const auto& [instance, members] : joined) AddJoined(collectives.instances[instance], members, &builder);
  std::vector<NodeId> new_ids;
  ASSIGN_OR_RETURN(step.graph, builder.Build(&new_ids));
  step.source = new_ids[source];
  step.sink = new_ids[sink];
  step.observed_ns = end_ns - step.start_ns;
  step.reproduced_ns = graph::EarliestTimes(step.graph)[step.sink];
  return step;
}

}  // namespace lockstep::analysis
