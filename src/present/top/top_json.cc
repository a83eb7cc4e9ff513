#include <cmath>

#include "model/stages/stage.h"
#include "present/report/json_stream.h"
#include "present/top/top_text.h"

namespace lockstep::top {
namespace {

using live::GpuView;
using live::JobView;
using live::NodeView;
using live::RankView;
using live::ServingView;
using report::JsonRow;

/// A number that counts something; null where it is none that can be written whole.
void Whole(JsonRow& row, std::string_view key, const std::optional<double>& value) {
  row.Key(key);
  value&&* value >= 0 && *value < 9e15 ? row.Uint(static_cast<uint64_t>(*value)) : row.Null();
}

void Number(JsonRow& row, std::string_view key, const std::optional<double>& value) {
  row.Key(key);
  value ? row.Double(*value) : row.Null();
}

/// A gauge that is 1 or 0.
void Flag(JsonRow& row, std::string_view key, const std::optional<double>& value) {
  row.Key(key);
  value ? row.Bool(*value > 0) : row.Null();
}

template <typename T>
void Integer(JsonRow& row, std::string_view key, const std::optional<T>& value) {
  row.Key(key);
  value ? row.Int(static_cast<int64_t>(*value)) : row.Null();
}

void Text(JsonRow& row, std::string_view key, const std::optional<std::string>& value) {
  row.Key(key);
  value ? row.Text(*value) : row.Null();
}

void WriteGpu(JsonRow& row, const GpuView& gpu) {
  row.StartObject().Key("gpu").Text(gpu.reading.gpu).Key("uuid").TextOrNull(gpu.reading.uuid);
  row.Key("model").TextOrNull(gpu.reading.model);
  Number(row, "utilization_ratio", gpu.reading.utilization_ratio);
  Number(row, "sm_active_ratio", gpu.reading.sm_active_ratio);
  Whole(row, "memory_used_bytes", gpu.reading.memory_used_bytes);
  Whole(row, "memory_total_bytes", gpu.reading.memory_total_bytes);
  Number(row, "temperature_celsius", gpu.reading.temperature_celsius);
  Number(row, "power_watts", gpu.power_watts);
  Number(row, "power_limit_watts", gpu.reading.power_limit_watts);
  Whole(row, "xid_event_count", gpu.reading.xid_events);
  Whole(row, "uncorrected_ecc_error_count", gpu.reading.uncorrected_ecc_errors);
  Number(row, "thermal_throttle_ratio", gpu.thermal_throttle_ratio);
  Flag(row, "is_unresponsive", gpu.reading.unresponsive);
  row.Key("mig_instances").StartArray();
  for (const auto& [gi, instance] : gpu.reading.mig_instances) {
    row.StartObject().Key("gi").Text(gi).Key("uuid").TextOrNull(instance.uuid);
    row.Key("mig_profile").TextOrNull(instance.profile);
    Number(row, "sm_active_ratio", instance.sm_active_ratio);
    Whole(row, "memory_used_bytes", instance.memory_used_bytes);
    Whole(row, "memory_total_bytes", instance.memory_total_bytes);
    row.EndObject();
  }
  row.EndArray().EndObject();
}

void WritePort(JsonRow& row, const live::PortView& port) {
  row.StartObject().Key("device").Text(port.device).Key("port").TextOrNull(port.port);
  row.Key("kind").Text(port.port.empty() ? "ethernet" : "infiniband");
  Flag(row, "is_up", port.reading.active);
  Number(row, "rate_bytes_per_s", port.reading.rate_bytes_per_s);
  Number(row, "receive_bytes_per_s", port.received_per_s);
  Number(row, "transmit_bytes_per_s", port.transmitted_per_s);
  Number(row, "transmit_wait_per_s", port.waits_per_s);
  Whole(row, "error_count", port.reading.errors);
  Number(row, "errors_per_s", port.errors_per_s);
  row.EndObject();
}

void WriteGroups(JsonRow& row, const RankView& rank) {
  row.Key("groups").StartArray();
  for (const auto& [name, group] : rank.reading.groups) {
    row.StartObject().Key("group").Text(name);
    Whole(row, "enqueued_count", group.enqueued);
    Whole(row, "completed_count", group.completed);
    row.Key("oldest_inflight_ns");
    const double open_s = group.oldest_inflight_s.value_or(0);
    open_s > 0 && open_s < 9e9 ? row.Int(std::llround(open_s * 1e9)) : row.Null();
    row.EndObject();
  }
  row.EndArray();
}

void WriteAlarms(JsonRow& row, const std::vector<live::Alarm>& alarms) {
  row.Key("alarms").StartArray();
  for (const live::Alarm& alarm : alarms) {
    row.StartObject().Key("kind").Text(alarm.kind).Key("severity").Text(live::AlarmSeverityName(alarm.severity));
    row.Key("text").Text(alarm.text);
    Text(row, "rank", alarm.rank);
    row.EndObject();
  }
  row.EndArray();
}

void WriteSteps(JsonRow& row, const std::vector<int64_t>& step_history) {
  row.Key("step_history_ns").StartArray();
  for (const int64_t step_ns : step_history) row.Int(step_ns);
  row.EndArray();
}

void WriteRank(JsonRow& row, const RankView& rank, const live::View& view) {
  row.StartObject().Key("rank").Text(rank.rank).Key("host").TextOrNull(rank.host);
  row.Key("node").Text(view.nodes[rank.node_idx].host).Key("pid").TextOrNull(rank.pid);
  row.Key("local_rank").TextOrNull(rank.local_rank).Key("user").TextOrNull(rank.user);
  row.Key("device").TextOrNull(rank.device).Key("state").Text(live::RankStateName(rank.state));
  Text(row, "waits_for_rank", rank.waits_for_rank);
  Integer(row, "step_count", rank.step_count);
  Integer(row, "behind_steps", rank.behind_steps);
  Integer(row, "progress_age_ns", rank.progress_age_ns);
  row.Key("is_since_start").Bool(rank.is_since_start);
  Number(row, "steps_per_s", rank.steps_per_s);
  Integer(row, "step_ns", rank.step_ns);
  Integer(row, "own_ns", rank.own_ns);
  WriteSteps(row, rank.step_history);
  row.Key("phases").StartObject();
  for (size_t i = 0; i < model::kStages.size(); ++i) {
    Number(row, model::StageName(model::kStages[i]), rank.phase_ratio[i]);
  }
  row.EndObject();
  Number(row, "compute_ratio", rank.compute_ratio);
  Number(row, "communication_ratio", rank.communication_ratio);
  Number(row, "input_ratio", rank.input_ratio);
  Number(row, "mfu_ratio", rank.mfu_ratio);
  Number(row, "samples_per_s", rank.samples_per_s);
  Number(row, "tokens_per_s", rank.tokens_per_s);
  Whole(row, "torch_memory_allocated_bytes", rank.reading.torch_allocated_bytes);
  Whole(row, "torch_memory_reserved_bytes", rank.reading.torch_reserved_bytes);
  Whole(row, "torch_memory_peak_bytes", rank.reading.torch_peak_bytes);
  Number(row, "bus_bytes_per_s", rank.bus_bytes_per_s);
  Integer(row, "oldest_collective_ns", rank.oldest_collective_ns);
  WriteGroups(row, rank);
  Number(row, "cpu_cores", rank.cpu_cores);
  Whole(row, "resident_memory_bytes", rank.reading.resident_bytes);
  Whole(row, "thread_count", rank.reading.threads);
  Number(row, "storage_read_bytes_per_s", rank.io_read_per_s);
  Number(row, "storage_written_bytes_per_s", rank.io_written_per_s);
  row.Key("gpu");
  rank.gpu ? WriteGpu(row, *rank.gpu) : static_cast<void>(row.Null());
  Whole(row, "event_count", rank.reading.events);
  Whole(row, "dropped_event_count", rank.reading.dropped_events);
  Whole(row, "log_error_count", rank.reading.log_errors);
  Number(row, "log_errors_per_s", rank.log_errors_per_s);
  row.Key("values").StartArray();
  for (const auto& [name, value] : rank.reading.user_values) {
    row.StartObject().Key("name").Text(name).Key("value").Double(value).EndObject();
  }
  row.EndArray().EndObject();
}

void WriteQuantiles(JsonRow& row, std::string_view key, const live::Quantiles& quantiles) {
  row.Key(key).StartObject();
  for (const auto& [name, quantile] : {std::pair("p50", 0.5), {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}) {
    const auto found = quantiles.find(quantile);
    row.Key(name);
    found != quantiles.end() && found->second >= 0 && found->second < 9e9
        ? row.Int(static_cast<int64_t>(std::llround(found->second * 1e9)))
        : row.Null();
  }
  row.EndObject();
}

void WriteServing(JsonRow& row, const ServingView& serving) {
  row.StartObject().Key("host").Text(serving.host).Key("model").TextOrNull(serving.reading.model);
  row.Key("engine").TextOrNull(serving.reading.engine);
  Whole(row, "request_count", serving.reading.requests);
  Whole(row, "failure_count", serving.reading.failures);
  Whole(row, "running_count", serving.reading.running);
  Whole(row, "waiting_count", serving.reading.waiting);
  Number(row, "kv_cache_usage_ratio", serving.reading.kv_cache_usage_ratio);
  Whole(row, "preemption_count", serving.reading.preemptions);
  Number(row, "preemptions_per_s", serving.preemptions_per_s);
  Number(row, "requests_per_s", serving.requests_per_s);
  Number(row, "failure_ratio", serving.failure_ratio);
  Number(row, "tokens_per_s", serving.tokens_per_s);
  WriteQuantiles(row, "request_ns", serving.reading.recent_duration_s);
  WriteQuantiles(row, "first_token_ns", serving.reading.recent_first_token_s);
  WriteQuantiles(row, "inter_token_ns", serving.reading.recent_inter_token_s);
  row.EndObject();
}

void WriteJobObject(JsonRow& row, const JobView& job, const live::View& view) {
  row.StartObject().Key("job_id").Text(job.job_id);
  Integer(row, "world_size", job.world_size);
  row.Key("missing_ranks").StartArray();
  for (const uint64_t rank : job.missing_ranks) row.Uint(rank);
  row.EndArray();
  Number(row, "steps_per_s", job.steps_per_s);
  Integer(row, "step_ns", job.step_ns);
  Integer(row, "own_ns", job.own_ns);
  Integer(row, "step_median_ns", job.step_median_ns);
  WriteSteps(row, job.step_history);
  Number(row, "compute_ratio", job.compute_ratio);
  Number(row, "communication_ratio", job.communication_ratio);
  Number(row, "input_ratio", job.input_ratio);
  Number(row, "mfu_ratio", job.mfu_ratio);
  Number(row, "samples_per_s", job.samples_per_s);
  Number(row, "tokens_per_s", job.tokens_per_s);
  Text(row, "slowest_rank", job.slowest_rank);
  Number(row, "slowest_ratio", job.slowest_ratio);
  WriteAlarms(row, job.alarms);
  row.Key("ranks").StartArray();
  for (const RankView& rank : job.ranks) WriteRank(row, rank, view);
  row.EndArray().Key("serving").StartArray();
  for (const ServingView& serving : job.serving) WriteServing(row, serving);
  row.EndArray().EndObject();
}

void WriteNode(JsonRow& row, const NodeView& node) {
  row.StartObject().Key("host").Text(node.host).Key("place").Text(node.place);
  row.Key("problem").TextOrNull(node.error ? node.error->ToString() : "");
  Integer(row, "silent_ns", node.silent_ns);
  row.Key("version").TextOrNull(node.version);
  Integer(row, "clock_offset_ns", node.clock_offset_ns);
  row.Key("collectors").StartArray();
  for (const auto& [name, collector] : node.collectors) {
    row.StartObject().Key("name").Text(name);
    Flag(row, "is_present", collector.present);
    Flag(row, "succeeded", collector.success);
    row.EndObject();
  }
  row.EndArray().Key("gpus").StartArray();
  for (const GpuView& gpu : node.gpus) WriteGpu(row, gpu);
  row.EndArray().Key("network").StartArray();
  for (const live::PortView& port : node.ports) WritePort(row, port);
  row.EndArray().Key("bad_line_count").Uint(node.bad_line_count).Key("is_cut").Bool(node.is_cut);
  WriteAlarms(row, node.alarms);
  row.EndObject();
}

void WriteData(JsonRow& row, const live::View& view) {
  row.Key("asked_unix_ns").Int(view.taken_unix_ns).Key("window_ns").Int(view.window_ns);
  row.Key("look_count").Uint(view.look_count).Key("nodes").StartArray();
  for (const NodeView& node : view.nodes) WriteNode(row, node);
  row.EndArray().Key("jobs").StartArray();
  for (const JobView& job : view.jobs) WriteJobObject(row, job, view);
  row.EndArray();
}

}  // namespace

void WriteTopJson(const live::View& view, bool one_line, std::ostream& out) {
  const bool partial = view.answered_count() < view.nodes.size();
  if (one_line) {
    JsonRow row;
    row.Key("schema").Text("lockstep.top/1").Key("partial").Bool(partial).Key("data").StartObject();
    WriteData(row, view);
    row.EndObject();
    out << row.Finish() << '\n';
  } else {
    report::WriteDocument(out, "lockstep.top/1", partial, [&](JsonDocument& json) {
      JsonRow row;
      WriteData(row, view);
      report::WriteRow(json, row);
    });
  }
  out.flush();
}

}  // namespace lockstep::top
