#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/stages/stage.h"

namespace lockstep::live {

/// One process group (NCCL's communicator) as one rank knows it.
struct GroupReading {
  std::optional<double> enqueued;
  std::optional<double> completed;
  std::optional<double> oldest_inflight_s;
};

/// A node's metrics of one rank. Counters are totals since the daemon knows the rank; what has no series is absent.
struct RankReading {
  std::string job_id;
  std::string rank;  ///< "pid-N" where the process has none.
  std::string host;
  std::string pid;
  std::string local_rank;
  std::string user;
  std::string device;
  std::optional<double> up;
  std::optional<double> steps;
  std::optional<double> step_s;
  std::array<std::optional<double>, model::kStages.size()> phase_s;
  std::optional<double> progress_unix_s;
  std::optional<model::Stage> open_phase;  ///< That it has been in for seconds.
  std::optional<double> open_phase_s;
  std::optional<double> samples;
  std::optional<double> tokens;
  std::optional<double> model_flops;
  std::optional<double> peak_flops_per_s;
  std::optional<double> torch_allocated_bytes;
  std::optional<double> torch_reserved_bytes;
  std::optional<double> torch_peak_bytes;
  std::optional<double> torch_alloc_retries;
  std::optional<double> torch_ooms;
  std::optional<double> cpu_s;
  std::optional<double> resident_bytes;
  std::optional<double> threads;
  std::optional<double> io_read_bytes;
  std::optional<double> io_written_bytes;
  std::optional<double> events;
  std::optional<double> dropped_events;       ///< All reasons together.
  std::optional<double> log_errors;           ///< Messages of level error or fatal; a traceback is one.
  std::map<std::string, double> user_values;  ///< By name.
  std::map<std::string, GroupReading> groups;
  std::optional<double> collective_calls;  ///< All groups and operations together, as those below.
  std::optional<double> collective_s;
  std::optional<double> collective_bytes;
  std::optional<double> collective_bus_bytes;
};

/// Numbers as text: "2" before "10".
struct NumbersInOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

/// One instance of a GPU that MIG divides.
struct MigInstanceReading {
  std::string uuid;
  std::string profile;  ///< "1g.10gb"
  std::optional<double> memory_used_bytes;
  std::optional<double> memory_total_bytes;
  std::optional<double> sm_active_ratio;
};

/// One GPU of the node.
struct GpuReading {
  std::string gpu;  ///< Its label: an index.
  std::string uuid;
  std::string model;
  std::string vendor;     ///< "nvidia", "amd"
  bool is_there = false;  ///< Something but its Xid events is told of it: those stay when the driver has lost it.
  std::optional<double> utilization_ratio;  ///< Not of one that MIG divides.
  std::optional<double> sm_active_ratio;
  std::optional<double> memory_used_bytes;
  std::optional<double> memory_total_bytes;
  std::optional<double> temperature_celsius;  ///< Of its hottest sensor.
  std::optional<double> energy_joules;        ///< A counter: power is its rate.
  std::optional<double> power_limit_watts;
  std::optional<double> xid_events;
  std::optional<double> uncorrected_ecc_errors;
  std::optional<double> thermal_throttle_s;     ///< By the driver's decision,
  std::optional<double> hw_thermal_throttle_s;  ///< and by the hardware's own; both may hold at once.
  std::optional<double> unresponsive;
  std::map<std::string, MigInstanceReading, NumbersInOrder> mig_instances;  ///< By label `gi`; at most 16.
};

/// One port of the node: of InfiniBand and RoCE, or a network interface where the daemon was told to look at them.
struct PortReading {
  std::optional<double> active;
  std::optional<double> rate_bytes_per_s;
  std::optional<double> received_bytes;
  std::optional<double> transmitted_bytes;
  std::optional<double> transmit_wait;
  std::optional<double> errors;  ///< All kinds together.
};
/// Device and port; a network interface has no port.
using PortKey = std::pair<std::string, std::string>;

/// Quantiles as a summary has them, by quantile; seconds.
using Quantiles = std::map<double, double>;

/// Requests of one model that ranks of this node serve.
struct ServingReading {
  std::string job_id;
  std::string model;
  std::string engine;
  std::optional<double> requests;
  std::optional<double> failures;
  std::optional<double> running;
  std::optional<double> waiting;  ///< In the engine's queue.
  std::optional<double> kv_cache_usage_ratio;
  std::optional<double> preemptions;
  std::optional<double> generation_tokens;
  Quantiles recent_duration_s;     ///< Of requests that ended within the last minute.
  Quantiles recent_first_token_s;  ///< The same of their times to first output.
  Quantiles recent_inter_token_s;  ///< The same of the times between outputs.
};

struct CollectorReading {
  std::optional<double> present;
  std::optional<double> success;
  std::optional<double> duration_s;
};

struct JobReading {
  std::optional<double> world_size;
  std::optional<double> step_median_s;  ///< Of the last 100 steps of each rank on this node.
};

/// What one node's /metrics says, in one look.
struct NodeReading {
  std::map<std::string, JobReading> jobs;
  std::vector<RankReading> ranks;  ///< In the order of the text, each (job, rank) once.
  std::map<std::string, GpuReading> gpus;
  std::optional<double> visible_gpus;   ///< That the driver lists; nullopt: it was not asked, or does not answer.
  std::optional<double> expected_gpus;  ///< That there should be.
  std::map<PortKey, PortReading> ports;
  std::vector<ServingReading> serving;
  std::map<std::string, CollectorReading> collectors;
  std::string version;
  uint64_t bad_line_count = 0;
  bool is_cut = false;  ///< There was more than is kept of one node.
};

/// Where the value of a series belongs.
template <typename Reading, typename Value = std::optional<double>>
struct Field {
  std::string_view name;
  Value Reading::*field;
  std::string_view figure = {};  ///< Its name in a node's history (docs/formats/history.md); empty: it is not there.
  std::string_view label = {};   ///< Where not empty, it must have
  std::string_view value = {};   ///< this value.
};
std::span<const Field<RankReading>> FieldsOf(const RankReading& which);
std::span<const Field<GpuReading>> FieldsOf(const GpuReading& which);
std::span<const Field<ServingReading>> FieldsOf(const ServingReading& which);

/// Series of `job_id` alone, or of all jobs where it is empty; GPUs and collectors always. Names that are not known and
/// values that are not finite are passed over. Of one node at most 16,384 ranks, 256 values and groups of each.
NodeReading ReadNodeMetrics(std::string_view text, std::string_view job_id);

}  // namespace lockstep::live
