// What an OpenTelemetry collector answers, as `lockstep export otlp --follow` reads it.
#include <string_view>

#include "base/utf8.h"
#include "fuzz.h"
#include "present/export/live/otlp_metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto reply = lockstep::export_live::ReadOtlpReply(std::string_view(reinterpret_cast<const char*>(data), size));
  FUZZ_CHECK(reply.rejected_count <= INT64_MAX);
  FUZZ_CHECK(lockstep::ValidUtf8(reply.message) == reply.message);
  for (const char c : reply.message) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20);
  return 0;
}
