#include "present/export/timeline/flows.h"

#include <algorithm>
#include <optional>

namespace lockstep::timeline {
namespace {

using model::Lane;

struct Launch {
  uint32_t correlation = 0;
  int64_t start_ns = 0;
  RowRef at;
};

/// Written rows of a lane that carry a correlation: the first of each in time, by correlation.
std::vector<Launch> FirstOfEach(const model::RankTrace& trace, size_t rank_index, Lane lane,
                                const RunSelection& selection) {
  std::vector<Launch> rows;
  for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
    const model::Track& track = trace.tracks[t];
    if (track.lane != lane || !selection.HasLane(lane)) continue;
    const model::EventColumns& events = track.events;
    for (uint32_t row = 0; row < events.correlation.size(); ++row) {
      const uint32_t correlation = events.correlation[row];
      if (correlation == 0 || !selection.Contains(rank_index, lane, events.start_ns[row])) continue;
      rows.push_back({correlation, events.start_ns[row], {t, row}});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Launch& a, const Launch& b) {
    if (a.correlation != b.correlation) return a.correlation < b.correlation;
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.at < b.at;
  });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const Launch& a, const Launch& b) { return a.correlation == b.correlation; }),
             rows.end());
  return rows;
}

/// The row of a track that is exactly this interval; the first of several.
std::optional<uint32_t> FindRow(const model::EventColumns& events, int64_t start_ns, int64_t duration_ns) {
  const auto* found = std::lower_bound(events.start_ns.begin(), events.start_ns.end(), start_ns);
  for (; found != events.start_ns.end() && *found == start_ns; ++found) {
    const auto row = static_cast<uint32_t>(found - events.start_ns.begin());
    if (events.duration_ns[row] == duration_ns) return row;
  }
  return std::nullopt;
}

std::optional<RowRef> FindMemberRow(const model::RankTrace& trace, const analysis::CollectiveMember& member) {
  for (const Lane lane : {Lane::kDevice, Lane::kOperators}) {
    for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
      if (trace.tracks[t].lane != lane) continue;
      if (const auto row = FindRow(trace.tracks[t].events, member.trace_start_ns, member.duration_ns))
        return RowRef{t, *row};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<RowFlow> LaunchFlows(const model::RankTrace& trace, size_t rank_index, const RunSelection& selection,
                                 uint64_t* next_id) {
  std::vector<RowFlow> flows;
  if (!selection.flows()) return flows;
  const std::vector<Launch> calls = FirstOfEach(trace, rank_index, Lane::kRuntime, selection);
  const std::vector<Launch> device = FirstOfEach(trace, rank_index, Lane::kDevice, selection);
  auto event = device.begin();
  for (const Launch& call : calls) {
    while (event != device.end() && event->correlation < call.correlation) ++event;
    if (event == device.end()) break;
    if (event->correlation != call.correlation) continue;
    const uint64_t id = (*next_id)++;
    flows.push_back({call.at, {id, FlowEnd::kStart, "launch"}});
    flows.push_back({event->at, {id, FlowEnd::kEnd, "launch"}});
  }
  std::sort(flows.begin(), flows.end(), [](const RowFlow& a, const RowFlow& b) { return a.at < b.at; });
  return flows;
}

std::vector<std::vector<CollectiveRow>> FindCollectiveRows(const model::Run& run,
                                                           const analysis::Collectives& collectives,
                                                           const RunSelection& selection, uint64_t* next_id,
                                                           uint64_t* flow_count) {
  std::vector<std::vector<CollectiveRow>> rows(run.ranks.size());
  struct Written {
    int64_t arrival_ns;
    size_t rank_index;
    size_t idx;
  };
  std::vector<Written> written;
  for (uint32_t i = 0; i < collectives.instances.size(); ++i) {
    const analysis::CollectiveInstance& instance = collectives.instances[i];
    written.clear();
    for (uint32_t m = 0; m < instance.members.size(); ++m) {
      const analysis::CollectiveMember& member = instance.members[m];
      const model::RankTrace& trace = run.ranks[member.rank_index];
      if (!selection.rank(member.rank_index).selected) continue;
      const auto at = FindMemberRow(trace, member);
      if (!at || !selection.Contains(member.rank_index, trace.tracks[at->track].lane, member.trace_start_ns)) continue;
      std::vector<CollectiveRow>& of_rank = rows[member.rank_index];
      written.push_back({member.arrival_ns, member.rank_index, of_rank.size()});
      of_rank.push_back({.at = *at, .instance_idx = i, .member_idx = m});
    }
    if (!selection.flows() || written.size() < 2) continue;
    std::stable_sort(written.begin(), written.end(),
                     [](const Written& a, const Written& b) { return a.arrival_ns < b.arrival_ns; });
    const uint64_t id = (*next_id)++;
    ++*flow_count;
    for (size_t w = 0; w < written.size(); ++w) {
      CollectiveRow& row = rows[written[w].rank_index][written[w].idx];
      row.in_flow = true;
      row.flow.id = id;
      row.flow.end = w == 0 ? FlowEnd::kStart : w + 1 == written.size() ? FlowEnd::kEnd : FlowEnd::kStep;
      row.flow.name = "collective";
    }
  }
  for (std::vector<CollectiveRow>& of_rank : rows) {
    std::stable_sort(of_rank.begin(), of_rank.end(),
                     [](const CollectiveRow& a, const CollectiveRow& b) { return a.at < b.at; });
  }
  return rows;
}

}  // namespace lockstep::timeline
