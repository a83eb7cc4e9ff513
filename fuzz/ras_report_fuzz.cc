// An answer of NCCL's RAS, text or JSON: what is read has bounds, errors have a message.
#include <string>
#include <string_view>

#include "fuzz.h"
#include "ingest/nccl/ras_report.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ingest::LooksLikeRasReport(text);
  const auto report = ingest::ReadRasReport(text);
  if (!report) {
    FUZZ_CHECK(!report.error().message.empty());
    return 0;
  }
  size_t kept = report->nccl_version.size();
  for (const auto& communicator : report->communicators) {
    kept += communicator.hash.size() + communicator.ranks.size() + communicator.missing_ranks.size();
  }
  FUZZ_CHECK(kept <= 16 * size + 64);
  for (const std::string& message : report->errors) FUZZ_CHECK(!message.empty());
  return 0;
}
