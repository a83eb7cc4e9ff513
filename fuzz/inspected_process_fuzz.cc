// process.json of an evidence folder, and a daemon's answer about a process.
#include <string_view>

#include "fuzz.h"
#include "model/evidence/inspected_process.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::evidence;
  const auto process = ReadInspectedProcess({reinterpret_cast<const char*>(data), size});
  if (!process) {
    FUZZ_CHECK(!process.error().message.empty());
    return 0;
  }
  // What is read is written, and read again as the same.
  const std::string once = WriteInspectedProcess(*process, true);
  const auto again = ReadInspectedProcess(once);
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(WriteInspectedProcess(*again, true) == once);
  FUZZ_CHECK(again->record_bytes == process->record_bytes);
  return 0;
}
