#include "ingest/job/name_merge.h"

namespace lockstep::ingest {

std::vector<NameId> MergeNames(const model::NameTable& from, model::NameTable* into) {
  std::vector<NameId> new_ids;
  new_ids.reserve(from.size());
  for (uint32_t id = 0; id < from.size(); ++id) new_ids.push_back(into->Intern(from[NameId{id}]));
  return new_ids;
}

void RenameIds(const std::vector<NameId>& new_ids, model::RankTrace* trace) {
  const auto rename = [&](NameId& id) { id = id.value < new_ids.size() ? new_ids[id.value] : NameId{0}; };
  for (model::Track& track : trace->tracks) {
    rename(track.thread_name);
    for (NameId& id : track.events.name) rename(id);
  }
  for (model::CollectiveRecord& record : trace->collectives) {
    rename(record.event_name);
    rename(record.collective_name);
    rename(record.dtype);
    rename(record.group_name);
    rename(record.group_description);
    rename(record.group_ranks);
  }
  for (model::OperatorShape& shape : trace->shapes) {
    rename(shape.name);
    rename(shape.dims);
    rename(shape.types);
    rename(shape.values);
  }
  for (model::LinkedSpan& span : trace->linked_spans) rename(span.name);
  for (model::RequestRecord& request : trace->requests) rename(request.name);
}

}  // namespace lockstep::ingest
