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
    CheckRecord(*plain, size);
    CheckSameRecord(*plain, *by_stack);
  } else {
    FUZZ_CHECK(plain.error().code == by_stack.error().code && !plain.error().message.empty());
  }
  const auto cut = ReadFlightRecord(bytes.substr(0, size - size / 3));
  if (cut) CheckRecord(*cut, size);
  return 0;
}
