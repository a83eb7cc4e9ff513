// Nsight Systems' exports as JSON, a message or a row of a table a line.
#include <string>
#include <string_view>

#include "ingest/bytes/file_source.h"
#include "ingest/nsight/json_export/json_export.h"
#include "nsight_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)ingest::StartsNsysJson(std::string_view(text).substr(0, ingest::kNsysJsonHeadBytes));
  const auto source = ingest::RawMemory(text);
  CheckContents(ingest::ReadNsysJson(*source, "report", {}), size);
  return 0;
}
