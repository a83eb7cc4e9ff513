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
  const auto records = ReadJsonDump(bytes);
  FUZZ_CHECK(records ? !records->empty() : !records.error().message.empty());
  const auto cut = ReadFlightRecords(bytes.substr(0, size - size / 3));
  for (const auto& read : {records, cut}) {
    for (const RankedRecord& of_rank : read ? *read : std::vector<RankedRecord>()) CheckRecord(of_rank.record, size);
  }
  return 0;
}
