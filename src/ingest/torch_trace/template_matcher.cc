#include "ingest/torch_trace/template_matcher.h"

#include <cstdlib>
#include <string_view>

namespace lockstep::ingest {

MatchFunction ChooseMatcher() {
#if defined(__x86_64__)
  const char* const chosen = std::getenv("LOCKSTEP_SIMD");
  const std::string_view limit = chosen == nullptr ? "avx512" : chosen;
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("pclmul");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512 && limit == "avx512") return MatchEventsAvx512;
  if (avx2 && limit != "none") return MatchEventsAvx2;
#endif
  return nullptr;
}

}  // namespace lockstep::ingest
