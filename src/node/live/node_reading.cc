#include "node/live/node_reading.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "base/exposition/exposition.h"

namespace lockstep::live {
namespace {

using exposition::ExpositionCount;
using exposition::MetricSample;
using exposition::ReadExposition;

constexpr size_t kMostRanks = 16'384;
constexpr size_t kMostMigInstances = 16;  // MIG makes seven.
constexpr size_t kMostNames = 256;        // Of values and groups of a rank, of models, of devices.

/// With nothing but who it is of. Several of one rank (by group, by reason) add up.
constexpr Field<RankReading> kRankFields[] = {
    {"lockstep_rank_up", &RankReading::up, "up"},
    {"lockstep_steps_total", &RankReading::steps, "steps"},
    {"lockstep_step_seconds_total", &RankReading::step_s, "step_seconds"},
    {"lockstep_rank_last_progress_timestamp_seconds", &RankReading::progress_unix_s, "progress_unix_seconds"},
    {"lockstep_samples_total", &RankReading::samples, "samples"},
    {"lockstep_tokens_total", &RankReading::tokens, "tokens"},
    {"lockstep_model_flops_total", &RankReading::model_flops, "model_flops"},
    {"lockstep_gpu_peak_flops_per_second", &RankReading::peak_flops_per_s, "peak_flops_per_second"},
    {"lockstep_torch_memory_allocated_bytes", &RankReading::torch_allocated_bytes, "torch_allocated_bytes"},
    {"lockstep_torch_memory_reserved_bytes", &RankReading::torch_reserved_bytes, "torch_reserved_bytes"},
    {"lockstep_torch_memory_peak_bytes", &RankReading::torch_peak_bytes},
    {"lockstep_torch_alloc_retries_total", &RankReading::torch_alloc_retries},
    {"lockstep_torch_ooms_total", &RankReading::torch_ooms},
    {"lockstep_rank_cpu_seconds_total", &RankReading::cpu_s, "cpu_seconds"},
    {"lockstep_rank_resident_memory_bytes", &RankReading::resident_bytes, "resident_bytes"},
    {"lockstep_rank_threads", &RankReading::threads},
    {"lockstep_rank_io_read_bytes_total", &RankReading::io_read_bytes, "io_read_bytes"},
    {"lockstep_rank_io_written_bytes_total", &RankReading::io_written_bytes, "io_written_bytes"},
    {"lockstep_events_total", &RankReading::events, "events"},
    {"lockstep_events_dropped_total", &RankReading::dropped_events, "dropped_events"},
    {"lockstep_collective_calls_total", &RankReading::collective_calls, "collective_calls"},
    {"lockstep_collective_seconds_total", &RankReading::collective_s, "collective_seconds"},
    {"lockstep_collective_bytes_total", &RankReading::collective_bytes, "collective_bytes"},
    {"lockstep_collective_bus_bytes_total", &RankReading::collective_bus_bytes, "collective_bus_bytes"},
};

constexpr Field<GroupReading> kGroupFields[] = {
    {"lockstep_collective_enqueued_total", &GroupReading::enqueued},
    {"lockstep_collective_completed_total", &GroupReading::completed},
    {"lockstep_collective_oldest_inflight_seconds", &GroupReading::oldest_inflight_s},
};

/// Several of one GPU are added up, of temperatures the largest counts.
constexpr Field<GpuReading> kGpuFields[] = {
    {"lockstep_gpu_utilization_ratio", &GpuReading::utilization_ratio, "utilization_ratio"},
    {"lockstep_gpu_sm_active_ratio", &GpuReading::sm_active_ratio},
    {"lockstep_gpu_memory_used_bytes", &GpuReading::memory_used_bytes, "memory_used_bytes"},
    {"lockstep_gpu_memory_total_bytes", &GpuReading::memory_total_bytes, "memory_total_bytes"},
    {"lockstep_gpu_energy_joules_total", &GpuReading::energy_joules, "energy_joules"},
    {"lockstep_gpu_power_limit_watts", &GpuReading::power_limit_watts, "power_limit_watts"},
    {"lockstep_gpu_xid_events_total", &GpuReading::xid_events, "xid_events"},
    {"lockstep_gpu_ecc_errors_total", &GpuReading::uncorrected_ecc_errors, "uncorrected_ecc_errors", "error",
     "uncorrected"},
    {"lockstep_gpu_throttle_seconds_total", &GpuReading::thermal_throttle_s, "thermal_seconds", "reason", "thermal"},
    {"lockstep_gpu_throttle_seconds_total", &GpuReading::hw_thermal_throttle_s, "hw_thermal_seconds", "reason",
     "hw_thermal"},
    {"lockstep_gpu_unresponsive", &GpuReading::unresponsive, "unresponsive"},
};

constexpr Field<MigInstanceReading> kMigInstanceFields[] = {
    {"lockstep_gpu_sm_active_ratio", &MigInstanceReading::sm_active_ratio},
    {"lockstep_gpu_memory_used_bytes", &MigInstanceReading::memory_used_bytes},
    {"lockstep_gpu_memory_total_bytes", &MigInstanceReading::memory_total_bytes},
};

constexpr Field<PortReading> kPortFields[] = {
    {"lockstep_ib_port_active", &PortReading::active},
    {"lockstep_ib_port_rate_bytes_per_second", &PortReading::rate_bytes_per_s},
    {"lockstep_ib_port_receive_bytes_total", &PortReading::received_bytes},
    {"lockstep_ib_port_transmit_bytes_total", &PortReading::transmitted_bytes},
    {"lockstep_ib_port_transmit_wait_total", &PortReading::transmit_wait},
    {"lockstep_ib_port_errors_total", &PortReading::errors},
    {"lockstep_host_network_receive_bytes_total", &PortReading::received_bytes},
    {"lockstep_host_network_transmit_bytes_total", &PortReading::transmitted_bytes},
};

constexpr Field<ServingReading> kServingFields[] = {
    {"lockstep_serving_requests_total", &ServingReading::requests, "requests"},
    {"lockstep_serving_request_failures_total", &ServingReading::failures, "failures"},
    {"lockstep_serving_requests_running", &ServingReading::running, "running"},
    {"lockstep_serving_requests_waiting", &ServingReading::waiting, "waiting"},
    {"lockstep_serving_kv_cache_usage_ratio", &ServingReading::kv_cache_usage_ratio, "kv_cache_usage_ratio"},
    {"lockstep_serving_preemptions_total", &ServingReading::preemptions, "preemptions"},
    {"lockstep_serving_generation_tokens_total", &ServingReading::generation_tokens, "generation_tokens"},
};

constexpr Field<ServingReading, Quantiles> kQuantilesFields[] = {
    {"lockstep_serving_recent_request_duration_seconds", &ServingReading::recent_duration_s},
    {"lockstep_serving_recent_time_to_first_token_seconds", &ServingReading::recent_first_token_s},
    {"lockstep_serving_recent_inter_token_latency_seconds", &ServingReading::recent_inter_token_s},
};

std::string Text(const MetricSample& sample, std::string_view label) {
  const std::string* value = sample.Find(label);
  return value == nullptr ? std::string() : *value;
}

void Add(std::optional<double>* sum, double value) { *sum = sum->value_or(0) + value; }

class Reader {
 public:
  Reader(std::string_view job_id, NodeReading* reading) : job_id_(job_id), reading_(*reading) {}

  void Take(const MetricSample& sample) {
    if (!std::isfinite(sample.value) || !sample.name.starts_with("lockstep_")) return;
    const std::string* job = sample.Find("job_id");
    if (job != nullptr && !job_id_.empty() && *job != job_id_) return;
    // Logs may be of no rank ("unknown": a launcher's), and of one that has ended: they make none.
    if (sample.name.starts_with("lockstep_log_") || sample.name == "lockstep_watchdog_timeouts_total") {
      if (sample.name == "lockstep_log_errors_total") TakeLogErrors(sample);
      return;
    }
    const bool has_rank = job != nullptr && sample.Find("rank") != nullptr;
    if (has_rank) return TakeRank(sample);
    if (job != nullptr && sample.name.starts_with("lockstep_serving_")) return TakeServing(sample);
    if (job != nullptr) return TakeJob(sample, *job);
    if (sample.name.starts_with("lockstep_gpu")) return TakeGpu(sample);
    if (sample.name.starts_with("lockstep_ib_port_") || sample.name.starts_with("lockstep_host_network_")) {
      return TakePort(sample);
    }
    if (sample.name.starts_with("lockstep_collector_")) return TakeCollector(sample);
    if (sample.name == "lockstep_build_info") reading_.version = Text(sample, "version");
  }

  /// When all was taken: series of logs may come before those that make their ranks.
  void Finish() {
    for (const auto& [key, errors] : log_errors_) {
      const auto found = rank_places_.find(key);
      if (found != rank_places_.end()) reading_.ranks[found->second].log_errors = errors;
    }
  }

 private:
  void SetKey(const std::string& job, const std::string& rank) {
    key_.assign(job);
    key_.push_back('\0');
    key_.append(rank);
  }

  void TakeLogErrors(const MetricSample& sample) {
    const std::string* job = sample.Find("job_id");
    const std::string* rank = sample.Find("rank");
    if (job == nullptr || rank == nullptr) return;
    SetKey(*job, *rank);
    if (log_errors_.size() < kMostRanks || log_errors_.contains(key_)) log_errors_[key_] += sample.value;
  }

  RankReading* RankOf(const MetricSample& sample) {
    const std::string* job = sample.Find("job_id");
    const std::string* rank = sample.Find("rank");
    // A text's series come by name, so that each rank is looked up again and again; its own key is cheap to make.
    SetKey(*job, *rank);
    const auto found = rank_places_.find(key_);
    if (found != rank_places_.end()) return &reading_.ranks[found->second];
    if (reading_.ranks.size() == kMostRanks) {
      reading_.is_cut = true;
      return nullptr;
    }
    rank_places_.emplace(key_, reading_.ranks.size());
    RankReading& made = reading_.ranks.emplace_back();
    made.job_id = *job;
    made.rank = *rank;
    return &made;
  }

  void TakeRank(const MetricSample& sample) {
    RankReading* rank = RankOf(sample);
    if (rank == nullptr) return;
    if (rank->host.empty()) rank->host = Text(sample, "host");
    if (sample.name == "lockstep_step_phase_seconds_total") {
      if (const auto phase = PhaseOf(sample)) rank->phase_s[static_cast<size_t>(*phase)] = sample.value;
      return;
    }
    for (const auto& field : kRankFields) {
      if (field.name == sample.name) return Add(&(rank->*field.field), sample.value);
    }
    if (sample.name == "lockstep_rank_info") {
      rank->pid = Text(sample, "pid");
      rank->local_rank = Text(sample, "local_rank");
      rank->user = Text(sample, "user");
      rank->device = Text(sample, "device");
    } else if (sample.name == "lockstep_rank_long_phase_seconds") {
      rank->open_phase = PhaseOf(sample);
      if (rank->open_phase) rank->open_phase_s = sample.value;
    } else if (sample.name == "lockstep_user_value") {
      if (Fits(rank->user_values.size())) rank->user_values[Text(sample, "name")] = sample.value;
    } else if (sample.name.starts_with("lockstep_collective_")) {
      for (const auto& field : kGroupFields) {
        if (field.name != sample.name) continue;
        const std::string group = Text(sample, "pg");
        if (rank->groups.contains(group) || Fits(rank->groups.size())) rank->groups[group].*field.field = sample.value;
      }
    }
  }

  static std::optional<model::Stage> PhaseOf(const MetricSample& sample) {
    const std::string* phase = sample.Find("phase");
    if (phase == nullptr) return std::nullopt;
    const auto found = std::find_if(model::kStages.begin(), model::kStages.end(),
                                    [&](model::Stage stage) { return *phase == StageName(stage); });
    return found == model::kStages.end() ? std::nullopt : std::optional(*found);
  }

  void TakeJob(const MetricSample& sample, const std::string& job) {
    if (sample.name != "lockstep_job_world_size" && sample.name != "lockstep_job_step_median_seconds") return;
    if (!reading_.jobs.contains(job) && reading_.jobs.size() == kMostRanks) return;
    JobReading& reading = reading_.jobs[job];
    (sample.name == "lockstep_job_world_size" ? reading.world_size : reading.step_median_s) = sample.value;
  }

  void TakeGpu(const MetricSample& sample) {
    const std::string* gpu = sample.Find("gpu");
    if (sample.name == "lockstep_gpus_visible") reading_.visible_gpus = sample.value;
    if (sample.name == "lockstep_gpus_expected") reading_.expected_gpus = sample.value;
    if (gpu == nullptr || (!reading_.gpus.contains(*gpu) && !Fits(reading_.gpus.size()))) return;
    GpuReading& reading = reading_.gpus[*gpu];
    reading.gpu = *gpu;
    reading.is_there = reading.is_there || sample.name != "lockstep_gpu_xid_events_total";
    if (const std::string* gi = sample.Find("gi")) return TakeMigInstance(sample, *gi, &reading);
    if (sample.name == "lockstep_gpu_info") {
      reading.uuid = Text(sample, "uuid");
      reading.model = Text(sample, "model");
      reading.vendor = Text(sample, "vendor");
    } else if (sample.name == "lockstep_gpu_temperature_celsius") {
      reading.temperature_celsius = std::max(reading.temperature_celsius.value_or(sample.value), sample.value);
    }
    for (const auto& field : kGpuFields) {
      if (field.name != sample.name) continue;
      if (!field.label.empty() && Text(sample, field.label) != field.value) continue;
      Add(&(reading.*field.field), sample.value);
    }
  }

  void TakeMigInstance(const MetricSample& sample, const std::string& gi, GpuReading* gpu) {
    if (!gpu->mig_instances.contains(gi) && gpu->mig_instances.size() == kMostMigInstances) {
      reading_.is_cut = true;
      return;
    }
    MigInstanceReading& reading = gpu->mig_instances[gi];
    if (sample.name == "lockstep_gpu_info") {
      reading.uuid = Text(sample, "uuid");
      reading.profile = Text(sample, "mig_profile");
    }
    for (const auto& field : kMigInstanceFields) {
      if (field.name == sample.name) reading.*field.field = sample.value;
    }
  }

  void TakePort(const MetricSample& sample) {
    const std::string* device = sample.Find("device");
    if (device == nullptr) return;
    const PortKey key(*device, Text(sample, "port"));
    if (!reading_.ports.contains(key) && !Fits(reading_.ports.size())) return;
    for (const auto& field : kPortFields) {
      if (field.name == sample.name) Add(&(reading_.ports[key].*field.field), sample.value);
    }
  }

  ServingReading* ServingOf(const MetricSample& sample) {
    const std::string job = Text(sample, "job_id");
    const std::string model = Text(sample, "model");
    const std::string engine = Text(sample, "engine");
    for (ServingReading& known : reading_.serving) {
      if (known.job_id == job && known.model == model && known.engine == engine) return &known;
    }
    if (!Fits(reading_.serving.size())) return nullptr;
    ServingReading& made = reading_.serving.emplace_back();
    made.job_id = job;
    made.model = model;
    made.engine = engine;
    return &made;
  }

  void TakeServing(const MetricSample& sample) {
    const auto is_its = [&](const auto& candidate) { return candidate.name == sample.name; };
    const auto* field = std::find_if(std::begin(kServingFields), std::end(kServingFields), is_its);
    const auto* quantiles_field = std::find_if(std::begin(kQuantilesFields), std::end(kQuantilesFields), is_its);
    if (field == std::end(kServingFields) && quantiles_field == std::end(kQuantilesFields)) return;
    ServingReading* serving = ServingOf(sample);
    if (serving == nullptr) return;
    if (field != std::end(kServingFields)) {
      serving->*field->field = sample.value;
      return;
    }
    const double quantile = std::strtod(Text(sample, "quantile").c_str(), nullptr);
    Quantiles& quantiles = serving->*quantiles_field->field;
    if (quantile > 0 && quantile < 1 && quantiles.size() < 16) quantiles[quantile] = sample.value;
  }

  void TakeCollector(const MetricSample& sample) {
    const std::string* name = sample.Find("collector");
    if (name == nullptr || (!reading_.collectors.contains(*name) && !Fits(reading_.collectors.size()))) return;
    CollectorReading& collector = reading_.collectors[*name];
    if (sample.name == "lockstep_collector_present") collector.present = sample.value;
    if (sample.name == "lockstep_collector_success") collector.success = sample.value;
    if (sample.name == "lockstep_collector_duration_seconds") collector.duration_s = sample.value;
  }

  bool Fits(size_t size) {
    if (size < kMostNames) return true;
    reading_.is_cut = true;
    return false;
  }

  const std::string_view job_id_;
  NodeReading& reading_;
  std::string key_;
  std::unordered_map<std::string, size_t> rank_places_;
  std::unordered_map<std::string, double> log_errors_;
};

}  // namespace

std::span<const Field<RankReading>> FieldsOf(const RankReading& /*which*/) { return kRankFields; }
std::span<const Field<GpuReading>> FieldsOf(const GpuReading& /*which*/) { return kGpuFields; }
std::span<const Field<ServingReading>> FieldsOf(const ServingReading& /*which*/) { return kServingFields; }

NodeReading ReadNodeMetrics(std::string_view text, std::string_view job_id) {
  NodeReading reading;
  Reader reader(job_id, &reading);
  const ExpositionCount count = ReadExposition(text, [&](const MetricSample& sample) { reader.Take(sample); });
  reader.Finish();
  reading.bad_line_count = count.bad_line_count;
  reading.is_cut = reading.is_cut || count.is_cut;
  return reading;
}

}  // namespace lockstep::live
