// What `lockstep bench collectives --json` printed, as anybody may have changed it.
#include <cmath>
#include <string_view>

#include "fuzz.h"
#include "ingest/bench_results/bench_results.h"
#include "present/page/fabric/fabric_page.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto fabric =
      lockstep::ingest::ParseBenchResults(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!fabric) {
    FUZZ_CHECK(!fabric.error().message.empty());
    return 0;
  }
  FUZZ_CHECK(!fabric->points.empty());
  for (const auto& point : fabric->points) {
    FUZZ_CHECK(point.bytes > 0 && point.busbw_bytes_per_s > 0 && std::isfinite(point.busbw_bytes_per_s));
    FUZZ_CHECK(point.slowest_busbw_bytes_per_s.value_or(point.busbw_bytes_per_s) <= point.busbw_bytes_per_s);
    FUZZ_CHECK(point.fastest_busbw_bytes_per_s.value_or(point.busbw_bytes_per_s) >= point.busbw_bytes_per_s);
  }
  FUZZ_CHECK(fabric->hosts.size() == static_cast<size_t>(fabric->rank_count));
  for (const auto& pair : fabric->pairs) {
    FUZZ_CHECK(pair.rank_a >= 0 && pair.rank_a < fabric->rank_count);
    FUZZ_CHECK(pair.rank_b >= 0 && pair.rank_b < fabric->rank_count);
  }
  FUZZ_CHECK(!lockstep::page::FabricPage(*fabric).empty());
  return 0;
}
