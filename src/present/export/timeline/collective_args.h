#pragma once

#include <cstdint>
#include <string_view>

#include "model/name_table.h"
#include "present/export/timeline/event_writer.h"

namespace lockstep::timeline {

/// Calls `integer(key, value)`, `text(key, NameId)` and `view(key, std::string_view)` for what is known of a slice's
/// collective: first what the trace said, under Kineto's keys, so that a reader of Kineto traces understands it; then
/// what matching found, under keys of our own.
template <typename Integer, typename Text, typename View>
void VisitCollectiveArgs(const Slice& slice, const Integer& integer, const Text& text, const View& view) {
  if (slice.record != nullptr) {
    const model::CollectiveRecord& record = *slice.record;
    const bool of_kernel = record.source == model::CollectiveRecord::Source::kKernel;
    if (of_kernel || record.collective_name.value != 0) text("Collective name", record.collective_name);
    if (record.dtype.value != 0) text("dtype", record.dtype);
    if (record.in_elements) integer("In msg nelems", *record.in_elements);
    if (record.out_elements) integer("Out msg nelems", *record.out_elements);
    if (record.group_size) integer("Group size", int64_t{*record.group_size});
    if (record.group_name.value != 0) text("Process Group Name", record.group_name);
    if (record.group_description.value != 0) text("Process Group Description", record.group_description);
    if (record.group_ranks.value != 0) text("Process Group Ranks", record.group_ranks);
    if (record.sequence) integer("Seq", *record.sequence);
    if (record.communicator_id) integer("Comms Id", *record.communicator_id);
    if (record.source_rank) integer("Src Rank", int64_t{*record.source_rank});
    if (record.destination_rank) integer("Dst Rank", int64_t{*record.destination_rank});
  }
  if (slice.facts != nullptr) {
    const CollectiveFacts& facts = *slice.facts;
    view("collective", facts.name);
    view("group", facts.group);
    integer("sequence", facts.sequence);
    if (facts.bytes) integer("bytes", *facts.bytes);
    if (facts.wait_ns) integer("wait ns", *facts.wait_ns);
  }
}

}  // namespace lockstep::timeline
