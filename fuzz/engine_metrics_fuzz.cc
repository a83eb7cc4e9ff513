// What an inference engine answers to GET /metrics, as its sensor takes it: three looks, the second at a part of the
// first, so that counts go on, stand still and go back. The first byte says which engine, the second where to cut.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "fuzz.h"
#include "node/agent/engines/engine_finder.h"
#include "node/agent/engines/engine_meter.h"
#include "node/agent/engines/engine_reading.h"
#include "node/agent/sensors/serving_metric_specs.h"

namespace {

using namespace lockstep;
using namespace lockstep::agent;

void Check(const EngineMeter& meter) {
  MetricFamilies out(ServingMetricSpecs());
  meter.Collect("job", "vllm", "", &out);
  std::set<std::string> series;
  for (const auto& family : out.Take()) {
    for (const auto& metric : family.metric) {
      std::string key = family.name;
      for (const auto& label : metric.label) {
        FUZZ_CHECK(Printable(label.value) == label.value && label.value.size() <= 3 * kMostModelBytes);
        key += "\n" + label.value;
      }
      FUZZ_CHECK(series.insert(key).second);
      FUZZ_CHECK(std::isfinite(metric.counter.value) && metric.counter.value >= 0);
      const auto& histogram = metric.histogram;
      FUZZ_CHECK(histogram.bucket.size() <= kMostEngineBuckets + 1 && std::isfinite(histogram.sample_sum));
      uint64_t below = 0;
      double bound = -std::numeric_limits<double>::infinity();
      for (const auto& bucket : histogram.bucket) {
        FUZZ_CHECK(bucket.cumulative_count >= below && bucket.upper_bound >= bound);
        below = bucket.cumulative_count;
        bound = bucket.upper_bound;
      }
      FUZZ_CHECK(below == histogram.sample_count);
      double quantile = -std::numeric_limits<double>::infinity();
      for (const auto& each : metric.summary.quantile) {
        FUZZ_CHECK(std::isfinite(each.value) && each.value >= quantile);
        quantile = each.value;
      }
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view whole(reinterpret_cast<const char*>(data) + 2, size - 2);
  const EngineKind kind = data[0] % 2 == 0 ? EngineKind::kVllm : EngineKind::kSglang;
  EngineMeter meter;
  for (int64_t look = 1; look <= 3; ++look) {
    auto reading = ReadEngineMetrics(look == 1 ? whole.substr(0, whole.size() * data[1] / 256) : whole, kind);
    if (!reading) {
      FUZZ_CHECK(!reading.error().message.empty());
      meter.Miss();
      continue;
    }
    FUZZ_CHECK(reading->models.size() <= kMostEngineModels);
    meter.Take(std::move(*reading), look * 1'000'000'000);
    Check(meter);
  }
  (void)EngineOfCommand(whole);
  (void)LoopbackListeners(whole);
  return 0;
}
