// What `lockstep run --profile` writes beside a report, as anybody may have written it.
#include <string_view>

#include "fuzz.h"
#include "ingest/nsight/launch_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = lockstep::ingest::nsight::ParseLaunchManifest(text);
  if (!manifest) return 0;
  FUZZ_CHECK(manifest->rank >= 0);
  FUZZ_CHECK(!manifest->world_size || manifest->rank < *manifest->world_size);
  FUZZ_CHECK(manifest->host.size() <= 4 * 255);
  return 0;
}
