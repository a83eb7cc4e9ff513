#pragma once

#include "fuzz.h"
#include "model/evidence/flight_record.h"

namespace lockstep {

/// What holds for every record that was read, whatever the bytes were.
inline void CheckRecord(const evidence::FlightRecord& record, size_t byte_count) {
  FUZZ_CHECK(!record.texts.empty() && record.texts[0].empty());
  FUZZ_CHECK(!record.size_lists.empty() && record.size_lists[0].empty());
  FUZZ_CHECK(!record.stacks.empty() && record.stacks[0].empty());
  FUZZ_CHECK(record.entries.size() <= byte_count && record.notes.size() <= 32);
  size_t number_count = 0;
  for (const auto& list : record.size_lists) {
    for (const auto& shape : list) number_count += 1 + shape.size();
  }
  FUZZ_CHECK(number_count <= 32 * byte_count + 4096);
  for (const auto& stack : record.stacks) {
    for (const evidence::FlightFrame& frame : stack) {
      FUZZ_CHECK(frame.function < record.texts.size() && frame.file < record.texts.size() && frame.line >= 0);
    }
  }
  for (const evidence::FlightEntry& entry : record.entries) {
    FUZZ_CHECK(entry.group < record.groups.size() && entry.stack < record.stacks.size());
    FUZZ_CHECK(entry.operation < record.texts.size() && entry.thread_name < record.texts.size());
    FUZZ_CHECK(entry.input_dtypes < record.texts.size() && entry.output_dtypes < record.texts.size());
    FUZZ_CHECK(entry.input_sizes < record.size_lists.size() && entry.output_sizes < record.size_lists.size());
    for (const int64_t count :
         {entry.record_id, entry.collective_sequence, entry.p2p_sequence, entry.operation_id, entry.created_unix_ns,
          entry.started_unix_ns, entry.completed_unix_ns, entry.duration_ns, entry.timeout_ns, entry.thread_id}) {
      FUZZ_CHECK(count >= 0 || count == evidence::kNotRecorded);
    }
  }
}

/// By content: which numbers texts, sizes and stacks have may differ.
inline void CheckSameRecord(const evidence::FlightRecord& a, const evidence::FlightRecord& b) {
  FUZZ_CHECK(a.version == b.version && (&a)->library_version == (&b)->library_version && a.truncated == b.truncated);
  FUZZ_CHECK(a.notes == b.notes && a.groups.size() == b.groups.size() && a.entries.size() == b.entries.size());
  for (size_t i = 0; i < a.groups.size(); ++i) {
    const evidence::FlightGroup &x = a.groups[i], &y = b.groups[i];
    FUZZ_CHECK(x.local_id == y.local_id && x.name == y.name && x.description == y.description && x.ranks == y.ranks);
    FUZZ_CHECK(x.last_enqueued == y.last_enqueued && x.last_started == y.last_started &&
               x.last_completed == y.last_completed);
  }
  const auto same_stack = [&](uint32_t x, uint32_t y) {
    if (a.stacks[x].size() != b.stacks[y].size()) return false;
    for (size_t i = 0; i < a.stacks[x].size(); ++i) {
      const evidence::FlightFrame &f = a.stacks[x][i], &g = b.stacks[y][i];
      if (a.texts[f.function] != b.texts[g.function] || a.texts[f.file] != b.texts[g.file] || f.line != g.line)
        return false;
    }
    return true;
  };
  for (size_t i = 0; i < a.entries.size(); ++i) {
    const evidence::FlightEntry &x = a.entries[i], &y = b.entries[i];
    FUZZ_CHECK(x.record_id == y.record_id && x.collective_sequence == y.collective_sequence);
    FUZZ_CHECK(x.p2p_sequence == y.p2p_sequence && x.operation_id == y.operation_id && x.group == y.group);
    FUZZ_CHECK(x.created_unix_ns == y.created_unix_ns && x.started_unix_ns == y.started_unix_ns);
    FUZZ_CHECK(x.completed_unix_ns == y.completed_unix_ns && x.duration_ns == y.duration_ns);
    FUZZ_CHECK(x.timeout_ns == y.timeout_ns && x.thread_id == y.thread_id && x.state == y.state);
    FUZZ_CHECK(x.retired == y.retired && x.is_p2p == y.is_p2p && same_stack(x.stack, y.stack));
    FUZZ_CHECK(a.texts[x.operation] == b.texts[y.operation] && a.texts[x.thread_name] == b.texts[y.thread_name]);
    FUZZ_CHECK(a.texts[x.input_dtypes] == b.texts[y.input_dtypes]);
    FUZZ_CHECK(a.texts[x.output_dtypes] == b.texts[y.output_dtypes]);
    FUZZ_CHECK(a.size_lists[x.input_sizes] == b.size_lists[y.input_sizes]);
    FUZZ_CHECK(a.size_lists[x.output_sizes] == b.size_lists[y.output_sizes]);
  }
}

}  // namespace lockstep
