#include <algorithm>

#include "present/page/column_block.h"
#include "present/page/data_blocks.h"
#include "present/report/utf8.h"

namespace lockstep::page {

NamePlan PlanNames(const PageModel& model) {
  const model::NameTable& names = model.run().names;
  NamePlan plan;
  plan.place.assign(names.size(), UINT32_MAX);
  for (const model::RankTrace& trace : model.run().ranks) {
    for (const model::Track& track : trace.tracks) {
      if (!TakesLane(model.limits, track.lane)) continue;
      for (const NameId name : track.events.name) plan.place[name.value] = 0;
    }
  }
  for (uint32_t id = 0; id < names.size(); ++id) {
    if (plan.place[id] == 0) plan.names.push_back({id});
  }
  std::sort(plan.names.begin(), plan.names.end(), [&](NameId a, NameId b) { return names[a] < names[b]; });
  for (uint32_t i = 0; i < plan.names.size(); ++i) plan.place[plan.names[i].value] = i;
  return plan;
}

std::string NamesBytes(const PageModel& model, const NamePlan& plan) {
  std::vector<uint32_t> lengths;
  std::string text;
  lengths.reserve(plan.names.size());
  for (const NameId name : plan.names) {
    const std::string valid = report::ValidUtf8(model.run().names[name]);
    lengths.push_back(static_cast<uint32_t>(valid.size()));
    text += valid;
  }
  ColumnBlock block;
  block.Add("length", lengths);
  block.Add("text", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return block.Finish();
}

}  // namespace lockstep::page
