// Flight-recorder dumps as pickles: with the short cut for usual entries and without it the record is the same, and a
// dump that was cut somewhere gives a record or an error too.
#include <string_view>

#include "flight_record_checks.h"
#include "fuzz.h"
#include "ingest/flight_recorder/flight_recorder.h"
#include "ingest/flight_recorder/pickle_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::ingest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  SniffFlightRecord(bytes);
  const auto plain = ReadPickleDump(bytes, PlainEntryPath::kUsed);
  const auto by_stack = ReadPickleDump(bytes, PlainEntryPath::kUnused);
  FUZZ_CHECK(plain.has_value() == by_stack.has_value());
  if (plain) {
    FUZZ_CHECK(!plain->empty() && plain->size() == by_stack->size());
    for (size_t i = 0; i < plain->size(); ++i) {
      FUZZ_CHECK((*plain)[i].rank == (*by_stack)[i].rank);
      CheckRecord((*plain)[i].record, size);
      CheckSameRecord((*plain)[i].record, (*by_stack)[i].record);
    }
  } else {
    FUZZ_CHECK(plain.error().code == by_stack.error().code && !plain.error().message.empty());
  }
  const auto cut = ReadFlightRecords(bytes.substr(0, size - size / 3));
  for (const RankedRecord& of_rank : cut ? *cut : std::vector<RankedRecord>()) CheckRecord(of_rank.record, size);
  return 0;
}
