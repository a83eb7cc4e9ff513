#include "node/agent/history/figures.h"

#include <boost/crc.hpp>
#include <cmath>

namespace lockstep::agent {
namespace {

constexpr double kMicro = 1e6;  // Of seconds.
constexpr double kWhole = 1;
constexpr double kThousandth = 1e3;

constexpr const char* kPhase = "lockstep_step_phase_seconds_total";
constexpr const char* kThrottle = "lockstep_gpu_throttle_seconds_total";
constexpr const char* kRecent = "lockstep_serving_recent_request_duration_seconds";
constexpr const char* kFirst = "lockstep_serving_recent_time_to_first_token_seconds";
constexpr const char* kBetween = "lockstep_serving_recent_inter_token_latency_seconds";

Figure PhaseFigure(const char* name, const char* phase) { return {name, kPhase, kMicro, "phase", phase}; }

std::vector<Figure> RankFigures() {
  return {
      {"up", "lockstep_rank_up", kWhole},
      {"steps", "lockstep_steps_total", kWhole},
      {"step_seconds", "lockstep_step_seconds_total", kMicro},
      PhaseFigure("input_seconds", "input"),
      PhaseFigure("h2d_seconds", "h2d"),
      PhaseFigure("forward_seconds", "forward"),
      PhaseFigure("backward_seconds", "backward"),
      PhaseFigure("optimizer_seconds", "optimizer"),
      PhaseFigure("comm_exposed_seconds", "comm_exposed"),
      PhaseFigure("checkpoint_seconds", "checkpoint"),
      PhaseFigure("validation_seconds", "validation"),
      PhaseFigure("gc_seconds", "gc"),
      PhaseFigure("other_seconds", "other"),
      {"progress_unix_seconds", "lockstep_rank_last_progress_timestamp_seconds", kMicro},
      {"samples", "lockstep_samples_total", kThousandth},
      {"tokens", "lockstep_tokens_total", kThousandth},
      {"model_flops", "lockstep_model_flops_total", 1e-9},
      {"peak_flops_per_second", "lockstep_gpu_peak_flops_per_second", 1e-6},
      {"torch_allocated_bytes", "lockstep_torch_memory_allocated_bytes", kWhole},
      {"torch_reserved_bytes", "lockstep_torch_memory_reserved_bytes", kWhole},
      {"cpu_seconds", "lockstep_rank_cpu_seconds_total", kMicro},
      {"resident_bytes", "lockstep_rank_resident_memory_bytes", kWhole},
      {"io_read_bytes", "lockstep_rank_io_read_bytes_total", kWhole},
      {"io_written_bytes", "lockstep_rank_io_written_bytes_total", kWhole},
      {"events", "lockstep_events_total", kWhole},
      {"dropped_events", "lockstep_events_dropped_total", kWhole},
      {"collective_calls", "lockstep_collective_calls_total", kWhole},
      {"collective_seconds", "lockstep_collective_seconds_total", kMicro},
      {"collective_bytes", "lockstep_collective_bytes_total", kWhole},
      {"collective_bus_bytes", "lockstep_collective_bus_bytes_total", kWhole},
      {.name = "collective_oldest_seconds",
       .metric = "lockstep_collective_oldest_inflight_seconds",
       .scale = kThousandth,
       .is_most = true},
  };
}

std::vector<Figure> GpuFigures() {
  return {
      {"utilization_ratio", "lockstep_gpu_utilization_ratio", 1e4},
      {"memory_used_bytes", "lockstep_gpu_memory_used_bytes", kWhole},
      {"memory_total_bytes", "lockstep_gpu_memory_total_bytes", kWhole},
      {.name = "temperature_celsius", .metric = "lockstep_gpu_temperature_celsius", .scale = 10, .is_most = true},
      {"energy_joules", "lockstep_gpu_energy_joules_total", kThousandth},
      {"power_limit_watts", "lockstep_gpu_power_limit_watts", 10},
      {"xid_events", "lockstep_gpu_xid_events_total", kWhole},
      {"uncorrected_ecc_errors", "lockstep_gpu_ecc_errors_total", kWhole, "error", "uncorrected"},
      {"thermal_seconds", kThrottle, kMicro, "reason", "thermal"},
      {"hw_thermal_seconds", kThrottle, kMicro, "reason", "hw_thermal"},
      {"unresponsive", "lockstep_gpu_unresponsive", kWhole},
  };
}

std::vector<Figure> ServingFigures() {
  const auto quantile = [](const char* name, const char* metric, double which) {
    return Figure{.name = name, .metric = metric, .scale = kMicro, .quantile = which};
  };
  return {
      {"requests", "lockstep_serving_requests_total", kWhole},
      {"failures", "lockstep_serving_request_failures_total", kWhole},
      {"running", "lockstep_serving_requests_running", kWhole},
      {"waiting", "lockstep_serving_requests_waiting", kWhole},
      {"kv_cache_usage_ratio", "lockstep_serving_kv_cache_usage_ratio", 1e4},
      {"preemptions", "lockstep_serving_preemptions_total", kWhole},
      {"generation_tokens", "lockstep_serving_generation_tokens_total", kWhole},
      quantile("request_p50_seconds", kRecent, 0.5),
      quantile("request_p90_seconds", kRecent, 0.9),
      quantile("request_p95_seconds", kRecent, 0.95),
      quantile("request_p99_seconds", kRecent, 0.99),
      quantile("first_token_p50_seconds", kFirst, 0.5),
      quantile("first_token_p90_seconds", kFirst, 0.9),
      quantile("first_token_p95_seconds", kFirst, 0.95),
      quantile("first_token_p99_seconds", kFirst, 0.99),
      quantile("inter_token_p50_seconds", kBetween, 0.5),
      quantile("inter_token_p90_seconds", kBetween, 0.9),
      quantile("inter_token_p95_seconds", kBetween, 0.95),
      quantile("inter_token_p99_seconds", kBetween, 0.99),
  };
}

std::vector<Figure> JobFigures() {
  return {
      {"world_size", "lockstep_job_world_size", kWhole},
      {"step_median_seconds", "lockstep_job_step_median_seconds", kMicro},
  };
}

}  // namespace

const std::vector<Figure>& FiguresOf(HistoryKind kind) {
  static const std::array<std::vector<Figure>, kHistoryKinds> tables = {RankFigures(), GpuFigures(), ServingFigures(),
                                                                        JobFigures()};
  return tables.at(static_cast<size_t>(kind));
}

uint32_t FiguresFingerprint() {
  boost::crc_32_type crc;
  for (size_t kind = 0; kind < kHistoryKinds; ++kind) {
    for (const Figure& figure : FiguresOf(static_cast<HistoryKind>(kind))) {
      const std::string text = std::string(figure.name) + ' ' + std::to_string(figure.scale) + '\n';
      crc.process_bytes(text.data(), text.size());
    }
    crc.process_byte(0);
  }
  return crc.checksum();
}

std::optional<int64_t> ToStored(const Figure& figure, double value) {
  constexpr double kMost = 4e18;  // Differences of two still fit.
  const double scaled = value * figure.scale;
  if (!(scaled > -kMost && scaled < kMost)) return std::nullopt;
  return std::llround(scaled);
}

double FromStored(const Figure& figure, int64_t stored) { return static_cast<double>(stored) / figure.scale; }

}  // namespace lockstep::agent
