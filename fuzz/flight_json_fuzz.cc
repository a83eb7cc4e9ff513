// Flight-recorder dumps as JSON.
#include <string_view>

#include "flight_record_checks.h"
#include "fuzz.h"
#include "ingest/flight_recorder/flight_recorder.h"
#include "ingest/flight_recorder/json_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::ingest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  SniffFlightRecord(bytes);
  const auto record = ReadJsonDump(bytes);
  if (record) {
    CheckRecord(*record, size);
  } else {
    FUZZ_CHECK(!record.error().message.empty());
  }
  const auto cut = ReadFlightRecord(bytes.substr(0, size - size / 3));
  if (cut) CheckRecord(*cut, size);
  return 0;
}
