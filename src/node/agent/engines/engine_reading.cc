#include "node/agent/engines/engine_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/exposition/exposition.h"
#include "base/utf8.h"

namespace lockstep::agent {
namespace {

using exposition::MetricSample;

enum class Shape : uint8_t {
  kSum,
  kMoreOfSum,  ///< Added to what an earlier row has for the name.
  kLargest,
  kHistogram,
  kTotalTime  ///< Of all that `count_of` counts: a histogram of one bucket, which has their mean.
};

/// One of an engine's metrics and what it is here. Of several for one name the first that is there counts: engines have
/// renamed theirs. `label`=`value` is asked for where they are not empty, anything but that where the value
/// begins with "!". `unit`: of theirs in ours.
struct Row {
  const char* theirs;
  const char* ours;
  Shape shape;
  const char* label = "";
  const char* value = "";
  const char* count_of = "";
  double unit = 1;
};

// vLLM: docs.vllm.ai, "Production metrics"; of 0.6 to 0.13. What was time_per_output_token_seconds there always was the
// time between tokens.
constexpr Row kVllm[] = {
    {"vllm:request_success_total", "lockstep_serving_requests_total", Shape::kSum},
    {"vllm:request_success_total", "lockstep_serving_request_failures_total", Shape::kSum, "finished_reason", "error"},
    {"vllm:request_success_total", "lockstep_serving_requests_aborted_total", Shape::kSum, "finished_reason", "abort"},
    {"vllm:num_requests_running", "lockstep_serving_requests_running", Shape::kSum},
    {"vllm:num_requests_waiting", "lockstep_serving_requests_waiting", Shape::kSum},
    {"vllm:kv_cache_usage_perc", "lockstep_serving_kv_cache_usage_ratio", Shape::kLargest},
    {"vllm:gpu_cache_usage_perc", "lockstep_serving_kv_cache_usage_ratio", Shape::kLargest},
    {"vllm:prompt_tokens_total", "lockstep_serving_prompt_tokens_total", Shape::kSum},
    {"vllm:generation_tokens_total", "lockstep_serving_generation_tokens_total", Shape::kSum},
    {"vllm:num_preemptions_total", "lockstep_serving_preemptions_total", Shape::kSum},
    {"vllm:e2e_request_latency_seconds", "lockstep_serving_request_duration_seconds", Shape::kHistogram},
    {"vllm:time_to_first_token_seconds", "lockstep_serving_time_to_first_token_seconds", Shape::kHistogram},
    {"vllm:request_time_per_output_token_seconds", "lockstep_serving_time_per_output_token_seconds", Shape::kHistogram},
    {"vllm:inter_token_latency_seconds", "lockstep_serving_inter_token_latency_seconds", Shape::kHistogram},
    {"vllm:time_per_output_token_seconds", "lockstep_serving_inter_token_latency_seconds", Shape::kHistogram},
    {"vllm:request_queue_time_seconds", "lockstep_serving_queue_time_seconds", Shape::kHistogram},
    {"vllm:request_prefill_time_seconds", "lockstep_serving_prefill_time_seconds", Shape::kHistogram},
    {"vllm:request_decode_time_seconds", "lockstep_serving_decode_time_seconds", Shape::kHistogram},
};

// SGLang: docs.sglang.io, "Production metrics" (--enable-metrics).
constexpr Row kSglang[] = {
    {"sglang:num_requests_total", "lockstep_serving_requests_total", Shape::kSum},
    {"sglang:num_aborted_requests_total", "lockstep_serving_requests_aborted_total", Shape::kSum},
    {"sglang:num_running_reqs", "lockstep_serving_requests_running", Shape::kSum},
    {"sglang:num_queue_reqs", "lockstep_serving_requests_waiting", Shape::kSum},
    {"sglang:token_usage", "lockstep_serving_kv_cache_usage_ratio", Shape::kLargest},
    {"sglang:prompt_tokens_total", "lockstep_serving_prompt_tokens_total", Shape::kSum},
    {"sglang:generation_tokens_total", "lockstep_serving_generation_tokens_total", Shape::kSum},
    {"sglang:e2e_request_latency_seconds", "lockstep_serving_request_duration_seconds", Shape::kHistogram},
    {"sglang:time_to_first_token_seconds", "lockstep_serving_time_to_first_token_seconds", Shape::kHistogram},
    {"sglang:inter_token_latency_seconds", "lockstep_serving_inter_token_latency_seconds", Shape::kHistogram},
    {"sglang:time_per_output_token_seconds", "lockstep_serving_inter_token_latency_seconds", Shape::kHistogram},
    {"sglang:queue_time_seconds", "lockstep_serving_queue_time_seconds", Shape::kHistogram},
};

// Triton: docs.nvidia.com, "Metrics" of the Triton Inference Server. Of latencies it has sums alone; histograms of the
// first response where it is told to (--metrics-config histogram_latencies=true).
constexpr Row kTriton[] = {
    {"nv_inference_request_success", "lockstep_serving_requests_total", Shape::kSum},
    {"nv_inference_request_failure", "lockstep_serving_requests_total", Shape::kMoreOfSum},
    {"nv_inference_request_failure", "lockstep_serving_request_failures_total", Shape::kSum, "reason", "!CANCELED"},
    {"nv_inference_request_failure", "lockstep_serving_requests_aborted_total", Shape::kSum, "reason", "CANCELED"},
    {"nv_inference_pending_request_count", "lockstep_serving_requests_waiting", Shape::kSum},
    {"nv_inference_request_duration_us", "lockstep_serving_request_duration_seconds", Shape::kTotalTime, "", "",
     "nv_inference_request_success", 1e-6},
    {"nv_inference_queue_duration_us", "lockstep_serving_queue_time_seconds", Shape::kTotalTime, "", "",
     "nv_inference_request_success", 1e-6},
    {"nv_inference_first_response_histogram_ms", "lockstep_serving_time_to_first_token_seconds", Shape::kHistogram, "",
     "", "", 1e-3},
};

// Ranks that hold parts of one model report the same values, so only the first counts. Data-parallel ranks report
// different ones.
constexpr const char* kPartLabels[] = {"tp_rank", "pp_rank", "moe_ep_rank"};

/// What a sample is for a row.
enum class Part : uint8_t { kValue, kBucket, kSum, kCount };
struct Use {
  size_t row;
  Part part;
};
using Uses = std::unordered_map<std::string_view, std::vector<Use>>;

struct Engine {
  const Row* rows;
  size_t row_count;
  std::string_view prefix;
  std::string_view model_label;
  std::vector<std::string> names;  // What `uses` points into.
  Uses uses;
};

template <size_t N>
Engine MakeEngine(const Row (&rows)[N], std::string_view prefix, std::string_view model_label) {
  Engine engine{rows, N, prefix, model_label, {}, {}};
  engine.names.reserve(N * 3);
  const auto add = [&](std::string name, Use use) {
    const auto known = std::find(engine.names.begin(), engine.names.end(), name);
    const std::string& kept = known != engine.names.end() ? *known : engine.names.emplace_back(std::move(name));
    engine.uses[kept].push_back(use);
  };
  for (size_t i = 0; i < N; ++i) {
    const std::string name = rows[i].theirs;
    if (rows[i].shape == Shape::kHistogram) {
      add(name + "_bucket", {i, Part::kBucket});
      add(name + "_sum", {i, Part::kSum});
      add(name + "_count", {i, Part::kCount});
    } else if (rows[i].shape == Shape::kTotalTime) {
      add(name, {i, Part::kSum});
      add(rows[i].count_of, {i, Part::kCount});
    } else {
      add(name, {i, Part::kValue});
    }
  }
  return engine;
}

const Engine& EngineOf(EngineKind kind) {
  static const std::array engines = {MakeEngine(kVllm, "vllm:", "model_name"),
                                     MakeEngine(kSglang, "sglang:", "model_name"),
                                     MakeEngine(kTriton, "nv_inference_", "model")};
  return engines[static_cast<size_t>(kind)];
}

struct Sum {
  std::optional<double> value;
  std::map<double, double> buckets;
  std::optional<double> sum;
  std::optional<double> count;
};
using Sums = std::map<size_t, Sum>;  // By row.

std::optional<double> BoundOf(const std::string& text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  char* end = nullptr;
  const double bound = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || std::isnan(bound)) return std::nullopt;
  if (std::isinf(bound) && bound < 0) return std::nullopt;
  return bound;
}

/// Nullopt: counts that go down, or are none.
std::optional<EngineHistogram> HistogramOf(const Sum& sum, const Row& row) {
  constexpr double kMostCount = 9e15;  // Whole numbers end there.
  EngineHistogram histogram;
  histogram.sum = sum.sum.value_or(0) * row.unit;
  double before = 0;
  for (const auto& [bound, count] : sum.buckets) {
    if (count < before || count > kMostCount) return std::nullopt;
    before = count;
    histogram.buckets.emplace_back(bound * row.unit, static_cast<uint64_t>(count));
  }
  const bool has_buckets = !histogram.buckets.empty();
  if (!has_buckets && (row.shape != Shape::kTotalTime || !sum.count)) return std::nullopt;
  if (!has_buckets || !std::isinf(histogram.buckets.back().first)) {
    const double count = sum.count.value_or(before);
    if (count < before || count > kMostCount) return std::nullopt;
    histogram.buckets.emplace_back(std::numeric_limits<double>::infinity(), static_cast<uint64_t>(count));
  }
  return histogram;
}

class Reader {
 public:
  explicit Reader(const Engine& engine) : engine_(engine) {}

  void Take(const MetricSample& sample) {
    is_of_engine_ = is_of_engine_ || sample.name.starts_with(engine_.prefix);
    const auto uses = engine_.uses.find(sample.name);
    if (uses == engine_.uses.end()) return;
    for (const char* part : kPartLabels) {
      const std::string* rank = sample.Find(part);
      if (rank != nullptr && *rank != "0") return;
    }
    if (!std::isfinite(sample.value) || sample.value < 0) {
      ++left_out_count_;
      return;
    }
    Sums* const sums = SumsOf(sample);
    if (sums == nullptr) {
      ++left_out_count_;
      return;
    }
    for (const Use& use : uses->second) Add(use, sample, sums);
  }

  bool is_of_engine() const { return is_of_engine_; }

  EngineReading Take() {
    EngineReading reading;
    for (const auto& [name, sums] : models_) {
      EngineModel& model = reading.models.emplace_back();
      model.model = name;
      for (const auto& [place, sum] : sums) {
        const Row& row = engine_.rows[place];
        if (row.shape == Shape::kTotalTime && !sum.sum) continue;  // It is told not to report it.
        if (row.shape == Shape::kMoreOfSum) {
          const auto before = model.values.find(row.ours);
          if (before != model.values.end() && sum.value && std::isfinite(before->second + *sum.value)) {
            before->second += *sum.value;
          }
        } else if (row.shape != Shape::kHistogram && row.shape != Shape::kTotalTime) {
          if (sum.value && std::isfinite(*sum.value)) model.values.emplace(row.ours, *sum.value);
        } else if (auto histogram = HistogramOf(sum, row); histogram && std::isfinite(histogram->sum)) {
          model.histograms.emplace(row.ours, std::move(*histogram));
        } else {
          ++left_out_count_;
        }
      }
    }
    reading.left_out_count = left_out_count_;
    return reading;
  }

 private:
  Sums* SumsOf(const MetricSample& sample) {
    const std::string* said = sample.Find(engine_.model_label);
    std::string name = said == nullptr || said->empty() ? "unknown" : Printable(said->substr(0, kMostModelBytes));
    const auto known = models_.find(name);
    if (known != models_.end()) return &known->second;
    if (models_.size() == kMostEngineModels) return nullptr;
    return &models_[std::move(name)];
  }

  void Add(const Use& use, const MetricSample& sample, Sums* sums) {
    const Row& row = engine_.rows[use.row];
    if (*row.label != '\0') {
      const std::string* value = sample.Find(row.label);
      const bool is_wanted = *row.value != '!';
      const bool is_it = value != nullptr && *value == (is_wanted ? row.value : row.value + 1);
      if (is_it != is_wanted) return;
    }
    Sum& sum = (*sums)[use.row];
    switch (use.part) {
      case Part::kValue:
        sum.value = row.shape == Shape::kLargest ? std::max(sum.value.value_or(0), sample.value)
                                                 : sum.value.value_or(0) + sample.value;
        break;
      case Part::kSum: sum.sum = sum.sum.value_or(0) + sample.value; break;
      case Part::kCount: sum.count = sum.count.value_or(0) + sample.value; break;
      case Part::kBucket: {
        const std::string* le = sample.Find("le");
        const auto bound = le == nullptr ? std::nullopt : BoundOf(*le);
        if (!bound || (!sum.buckets.contains(*bound) && sum.buckets.size() == kMostEngineBuckets)) {
          ++left_out_count_;
          return;
        }
        sum.buckets[*bound] += sample.value;
      }
    }
  }

  const Engine& engine_;
  std::map<std::string, Sums> models_;
  uint64_t left_out_count_ = 0;
  bool is_of_engine_ = false;
};

}  // namespace

Result<EngineReading> ReadEngineMetrics(std::string_view text, EngineKind kind) {
  Reader reader(EngineOf(kind));
  exposition::ReadExposition(text, [&](const MetricSample& sample) { reader.Take(sample); });
  if (!reader.is_of_engine()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("has no metric whose name begins with {}: is it another server, or was it started without "
                             "metrics (SGLang: --enable-metrics)?",
                             EngineOf(kind).prefix)};
  }
  return reader.Take();
}

}  // namespace lockstep::agent
