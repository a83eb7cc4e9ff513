// The file of the NCCL profiler plugin, as a process that was killed, or anybody, may have left it. A header is a page,
// so that the input is one whose texts and tables lie close together: what is given comes behind the magic.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/nccl_ring/ring_copy.h"
#include "ingest/nccl_ring/ring_pulse.h"
#include "ingest/nccl_trace/nccl_trace.h"

namespace {

void CheckTrace(const lockstep::ingest::TraceContent& content, size_t operation_count) {
  using namespace lockstep;
  const model::RankTrace& trace = content.trace;
  uint64_t count = 0;
  for (const model::Track& track : trace.tracks) {
    const model::EventColumns& events = track.events;
    const bool has_correlation = track.lane == model::Lane::kDevice || track.lane == model::Lane::kRuntime;
    FUZZ_CHECK(events.duration_ns.size() == events.size() && events.name.size() == events.size() &&
               events.category.size() == events.size());
    FUZZ_CHECK(events.correlation.size() == (has_correlation ? events.size() : 0));
    for (size_t i = 0; i < events.size(); ++i) {
      FUZZ_CHECK(events.duration_ns[i] >= 0 && events.end_ns(i) >= events.start_ns[i]);
      FUZZ_CHECK(events.name[i].value < content.names.size());
      FUZZ_CHECK(i == 0 || events.start_ns[i - 1] <= events.start_ns[i]);
    }
    count += events.size();
  }
  FUZZ_CHECK(count <= 2 * operation_count && content.communicators.size() == trace.groups.size());
  for (const model::CounterSeries& series : trace.counters) {
    FUZZ_CHECK(series.value.size() == series.size() && std::is_sorted(series.time_ns.begin(), series.time_ns.end()));
  }
  for (const auto& entry : content.ledger.entries()) FUZZ_CHECK(!entry.code.empty() && !entry.message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const lockstep::ingest::ReadRingAt read = [&](uint64_t offset, std::span<char> into) {
    if (offset > bytes.size() || into.size() > bytes.size() - offset) return false;
    std::copy_n(bytes.data() + offset, into.size(), into.data());
    return true;
  };
  const auto copy = lockstep::ingest::CopyNewest(read, 16);
  if (copy) {
    FUZZ_CHECK(copy->size() <= size + 4096);
    FUZZ_CHECK(lockstep::ingest::StartsNcclRing(*copy));
  } else {
    FUZZ_CHECK(!copy.error().message.empty());
  }
  const auto pulse = lockstep::ingest::ReadNcclRingPulse(read);
  if (pulse) {
    FUZZ_CHECK(pulse->oldest_begin_ns.size() == pulse->communicators.size());
    if (pulse->totals) {
      for (const auto& total : *pulse->totals) FUZZ_CHECK(total.communicator < pulse->communicators.size());
    }
  } else {
    FUZZ_CHECK(!pulse.error().message.empty());
  }
  const auto ring = lockstep::ingest::ReadNcclRing(bytes);
  if (!ring) {
    FUZZ_CHECK(!ring.error().message.empty());
    return 0;
  }
  FUZZ_CHECK(ring->operations.size() <= size / 128);
  for (const auto& operation : ring->operations) {
    FUZZ_CHECK(operation.communicator < ring->communicators.size());
    FUZZ_CHECK(operation.number != 0);
  }
  const auto record = lockstep::ingest::ToFlightRecord(*ring);
  FUZZ_CHECK(record.entries.size() == ring->operations.size());
  for (const auto& entry : record.entries) {
    FUZZ_CHECK(entry.group < record.groups.size() && entry.operation < record.texts.size() &&
               entry.input_sizes < record.size_lists.size());
  }
  auto content = lockstep::ingest::ToTraceContent(*ring, "ring");
  CheckTrace(content, ring->operations.size());
  lockstep::ingest::TurnIntoAnnotations(&content.trace);
  CheckTrace(content, ring->operations.size());
  return 0;
}
