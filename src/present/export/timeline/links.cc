#include "present/export/timeline/links.h"

#include <algorithm>

#include "analysis/span_links.h"

namespace lockstep::timeline {

Links FindLinks(const model::Run& run, const RunSelection& selection, uint64_t* next_id) {
  const analysis::SpanLinks found = analysis::FindSpanLinks(run, [&](size_t rank_index, int64_t start_ns) {
    return selection.rank(rank_index).selected && selection.Contains(rank_index, model::Lane::kOperators, start_ns);
  });
  Links links;
  links.ranks.resize(run.ranks.size());
  for (const analysis::SpanPart& part : found.parts) {
    if (part.row) links.ranks[part.rank_index].contexts.emplace_back(*part.row, part.index);
  }
  for (RankLinks& rank : links.ranks) std::sort(rank.contexts.begin(), rank.contexts.end());
  if (!selection.flows()) return links;

  const auto add = [&](const analysis::SpanPart& part, const Flow& flow) {
    RankLinks& rank = links.ranks[part.rank_index];
    if (part.row) {
      rank.spans.push_back({*part.row, flow});
    } else {
      rank.requests.push_back({part.index, flow});
    }
  };
  for (const analysis::SpanLink& link : found.links) {
    const uint64_t id = (*next_id)++;
    add(found.parts[link.caller], {id, FlowEnd::kStart, "link"});
    add(found.parts[link.called], {id, FlowEnd::kEnd, "link"});
  }
  links.flow_count = found.links.size();
  links.backward_count = found.backward_count;
  for (RankLinks& rank : links.ranks) {
    std::stable_sort(rank.spans.begin(), rank.spans.end(),
                     [](const RowFlow& a, const RowFlow& b) { return a.at < b.at; });
    std::stable_sort(rank.requests.begin(), rank.requests.end(),
                     [](const RequestFlow& a, const RequestFlow& b) { return a.request_idx < b.request_idx; });
  }
  return links;
}

}  // namespace lockstep::timeline
