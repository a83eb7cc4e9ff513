// Links between spans of one W3C trace: the arrows of the page's timeline.
#include "analysis/span_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "present/page/analyze_tables.h"

namespace lockstep::page {

void AddSpanLinks(const PageModel& model, report::JsonRow* json, std::vector<Reduction>* reductions) {
  const model::Run& run = model.run();
  const analysis::SpanLinks found = analysis::FindSpanLinks(run, [](size_t, int64_t) { return true; });
  std::vector<const analysis::SpanLink*> drawn;
  for (const analysis::SpanLink& link : found.links) {
    if (found.parts[link.caller].row && found.parts[link.called].row) drawn.push_back(&link);
  }
  // Of too many an even spread.
  const size_t limit = std::max<size_t>(model.limits.table_rows, 1);
  const size_t stride = (drawn.size() + limit - 1) / limit;
  size_t kept = 0;
  std::map<NameId, size_t> places;
  std::vector<std::string_view> names;
  const auto add_end = [&](const analysis::SpanPart& part) {
    const NameId name = run.ranks[part.rank_index].linked_spans[part.index].name;
    const auto [place, is_new] = places.emplace(name, names.size());
    if (is_new) names.push_back(run.names[name]);
    json->Uint(part.rank_index).Int(part.start_ns - model.rank_origin_ns[part.rank_index]).Uint(place->second);
  };
  json->Key("span_links").StartObject().Key("rows").StartArray();
  for (size_t i = 0; i < drawn.size(); i += stride) {
    ++kept;
    json->StartArray();
    add_end(found.parts[drawn[i]->caller]);
    add_end(found.parts[drawn[i]->called]);
    json->EndArray();
  }
  json->EndArray().Key("names").List(names).EndObject();
  if (kept < drawn.size()) {
    reductions->push_back(
        {"span_links", fmt::format("arrows between spans: {} of {}, an even spread", kept, drawn.size())});
  }
}

}  // namespace lockstep::page
