// The file of the NCCL profiler plugin, as a process that was killed, or anybody, may have left it. A header is a page,
// so that the input is one whose texts and tables lie close together: what is given comes behind the magic.
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "ingest/nccl_ring/nccl_ring.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
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
  return 0;
}
