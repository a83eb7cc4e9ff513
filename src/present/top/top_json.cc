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
std::optional<uint64_t> Whole(const std::optional<double>& value) {
  if (!value || !(*value >= 0) || !(*value < 9e15)) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

/// A gauge that is 1 or 0.
std::optional<bool> Flag(const std::optional<double>& value) {
  return value ? std::optional(*value > 0) : std::nullopt;
}

void WriteGpu(JsonRow& row, const GpuView& gpu) {
  row.StartObject().Key("gpu").Text(gpu.reading.gpu).Key("uuid").TextOrNull(gpu.reading.uuid);
  row.Key("model").TextOrNull(gpu.reading.model).Key("utilization_ratio").Optional(gpu.reading.utilization_ratio);
  row.Key("sm_active_ratio").Optional(gpu.reading.sm_active_ratio);
  row.Key("memory_used_bytes").Optional(Whole(gpu.reading.memory_used_bytes));
  row.Key("memory_total_bytes").Optional(Whole(gpu.reading.memory_total_bytes));
  row.Key("temperature_celsius").Optional(gpu.reading.temperature_celsius);
  row.Key("power_watts").Optional(gpu.power_watts).Key("power_limit_watts").Optional(gpu.reading.power_limit_watts);
  row.Key("xid_event_count").Optional(Whole(gpu.reading.xid_events));
  row.Key("uncorrected_ecc_error_count").Optional(Whole(gpu.reading.uncorrected_ecc_errors));
  row.Key("thermal_throttle_ratio").Optional(gpu.thermal_throttle_ratio);
  row.Key("is_unresponsive").Optional(Flag(gpu.reading.unresponsive)).Key("mig_instances").StartArray();
  for (const auto& [gi, instance] : gpu.reading.mig_instances) {
    row.StartObject().Key("gi").Text(gi).Key("uuid").TextOrNull(instance.uuid);
    row.Key("mig_profile").TextOrNull(instance.profile).Key("sm_active_ratio").Optional(instance.sm_active_ratio);
    row.Key("memory_used_bytes").Optional(Whole(instance.memory_used_bytes));
    row.Key("memory_total_bytes").Optional(Whole(instance.memory_total_bytes)).EndObject();
  }
  row.EndArray().EndObject();
}

void WritePort(JsonRow& row, const live::PortView& port) {
  row.StartObject().Key("device").Text(port.device).Key("port").TextOrNull(port.port);
  row.Key("kind").Text(port.port.empty() ? "ethernet" : "infiniband").Key("is_up").Optional(Flag(port.reading.active));
  row.Key("rate_bytes_per_s").Optional(port.reading.rate_bytes_per_s);
  row.Key("receive_bytes_per_s").Optional(port.received_per_s);
  row.Key("transmit_bytes_per_s").Optional(port.transmitted_per_s);
  row.Key("transmit_wait_per_s").Optional(port.waits_per_s).Key("error_count").Optional(Whole(port.reading.errors));
  row.Key("errors_per_s").Optional(port.errors_per_s).EndObject();
}

void WriteGroups(JsonRow& row, const RankView& rank) {
  row.Key("groups").StartArray();
  for (const auto& [name, group] : rank.reading.groups) {
    row.StartObject().Key("group").Text(name).Key("enqueued_count").Optional(Whole(group.enqueued));
    row.Key("completed_count").Optional(Whole(group.completed)).Key("oldest_inflight_ns");
    const double open_s = group.oldest_inflight_s.value_or(0);
    open_s > 0 && open_s < 9e9 ? row.Int(std::llround(open_s * 1e9)) : row.Null();
    row.EndObject();
  }
  row.EndArray();
}

void WriteAlarms(JsonRow& row, const std::vector<live::Alarm>& alarms) {
  row.Key("alarms").Each(alarms, [&](const live::Alarm& alarm) {
    row.Key("kind").Text(alarm.kind).Key("severity").Text(live::AlarmSeverityName(alarm.severity));
    row.Key("text").Text(alarm.text).Key("rank").Optional(alarm.rank);
  });
}

void WriteRank(JsonRow& row, const RankView& rank, const live::View& view) {
  row.StartObject().Key("rank").Text(rank.rank).Key("host").TextOrNull(rank.host);
  row.Key("node").Text(view.nodes[rank.node_idx].host).Key("pid").TextOrNull(rank.pid);
  row.Key("local_rank").TextOrNull(rank.local_rank).Key("user").TextOrNull(rank.user);
  row.Key("device").TextOrNull(rank.device).Key("state").Text(live::RankStateName(rank.state));
  row.Key("waits_for_rank").Optional(rank.waits_for_rank).Key("step_count").Optional(rank.step_count);
  row.Key("behind_steps").Optional(rank.behind_steps).Key("progress_age_ns").Optional(rank.progress_age_ns);
  row.Key("open_phase");
  rank.open_phase_ns ? row.Text(StageName(*rank.reading.open_phase)) : row.Null();
  row.Key("open_phase_ns").Optional(rank.open_phase_ns);
  row.Key("is_since_start").Bool(rank.is_since_start).Key("steps_per_s").Optional(rank.steps_per_s);
  row.Key("step_ns").Optional(rank.step_ns).Key("own_ns").Optional(rank.own_ns);
  row.Key("step_history_ns").List(rank.step_history).Key("phases").StartObject();
  for (size_t i = 0; i < model::kStages.size(); ++i) {
    row.Key(model::StageName(model::kStages[i])).Optional(rank.phase_ratio[i]);
  }
  row.EndObject().Key("compute_ratio").Optional(rank.compute_ratio);
  row.Key("communication_ratio").Optional(rank.communication_ratio).Key("input_ratio").Optional(rank.input_ratio);
  row.Key("mfu_ratio").Optional(rank.mfu_ratio).Key("samples_per_s").Optional(rank.samples_per_s);
  row.Key("tokens_per_s").Optional(rank.tokens_per_s);
  row.Key("torch_memory_allocated_bytes").Optional(Whole(rank.reading.torch_allocated_bytes));
  row.Key("torch_memory_reserved_bytes").Optional(Whole(rank.reading.torch_reserved_bytes));
  row.Key("torch_memory_peak_bytes").Optional(Whole(rank.reading.torch_peak_bytes));
  row.Key("bus_bytes_per_s").Optional(rank.bus_bytes_per_s);
  row.Key("oldest_collective_ns").Optional(rank.oldest_collective_ns);
  WriteGroups(row, rank);
  row.Key("cpu_cores").Optional(rank.cpu_cores);
  row.Key("resident_memory_bytes").Optional(Whole(rank.reading.resident_bytes));
  row.Key("thread_count").Optional(Whole(rank.reading.threads));
  row.Key("storage_read_bytes_per_s").Optional(rank.io_read_per_s);
  row.Key("storage_written_bytes_per_s").Optional(rank.io_written_per_s).Key("gpu");
  rank.gpu ? WriteGpu(row, *rank.gpu) : static_cast<void>(row.Null());
  row.Key("event_count").Optional(Whole(rank.reading.events));
  row.Key("dropped_event_count").Optional(Whole(rank.reading.dropped_events));
  row.Key("log_error_count").Optional(Whole(rank.reading.log_errors));
  row.Key("log_errors_per_s").Optional(rank.log_errors_per_s).Key("values").StartArray();
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
  row.Key("engine").TextOrNull(serving.reading.engine).Key("request_count").Optional(Whole(serving.reading.requests));
  row.Key("failure_count").Optional(Whole(serving.reading.failures));
  row.Key("running_count").Optional(Whole(serving.reading.running));
  row.Key("waiting_count").Optional(Whole(serving.reading.waiting));
  row.Key("kv_cache_usage_ratio").Optional(serving.reading.kv_cache_usage_ratio);
  row.Key("preemption_count").Optional(Whole(serving.reading.preemptions));
  row.Key("preemptions_per_s").Optional(serving.preemptions_per_s);
  row.Key("requests_per_s").Optional(serving.requests_per_s).Key("failure_ratio").Optional(serving.failure_ratio);
  row.Key("tokens_per_s").Optional(serving.tokens_per_s);
  WriteQuantiles(row, "request_ns", serving.reading.recent_duration_s);
  WriteQuantiles(row, "first_token_ns", serving.reading.recent_first_token_s);
  WriteQuantiles(row, "inter_token_ns", serving.reading.recent_inter_token_s);
  row.EndObject();
}

void WriteStages(JsonRow& row, const live::StageVerdict& stages) {
  row.StartObject().Key("answer").Text(stages.answer).Key("rank").Optional(stages.rank);
  row.Key("stage").TextOrNull(stages.stage).Key("sentence").Text(stages.sentence).EndObject();
}

void WriteJobObject(JsonRow& row, const JobView& job, const live::View& view) {
  row.StartObject().Key("job_id").Text(job.job_id).Key("world_size").Optional(job.world_size);
  row.Key("missing_ranks").List(job.missing_ranks).Key("steps_per_s").Optional(job.steps_per_s);
  row.Key("step_ns").Optional(job.step_ns).Key("own_ns").Optional(job.own_ns);
  row.Key("step_median_ns").Optional(job.step_median_ns).Key("step_history_ns").List(job.step_history);
  row.Key("compute_ratio").Optional(job.compute_ratio).Key("communication_ratio").Optional(job.communication_ratio);
  row.Key("input_ratio").Optional(job.input_ratio).Key("mfu_ratio").Optional(job.mfu_ratio);
  row.Key("samples_per_s").Optional(job.samples_per_s).Key("tokens_per_s").Optional(job.tokens_per_s);
  row.Key("slowest_rank").Optional(job.slowest_rank).Key("slowest_ratio").Optional(job.slowest_ratio);
  row.Key("stages");
  job.stages ? WriteStages(row, *job.stages) : static_cast<void>(row.Null());
  WriteAlarms(row, job.alarms);
  row.Key("ranks").StartArray();
  for (const RankView& rank : job.ranks) WriteRank(row, rank, view);
  row.EndArray().Key("serving").StartArray();
  for (const ServingView& serving : job.serving) WriteServing(row, serving);
  row.EndArray().EndObject();
}

void WriteNode(JsonRow& row, const NodeView& node) {
  row.StartObject().Key("host").Text(node.host).Key("place").Text(node.place);
  row.Key("problem").TextOrNull(node.error ? node.error->ToString() : "").Key("silent_ns").Optional(node.silent_ns);
  row.Key("version").TextOrNull(node.version).Key("clock_offset_ns").Optional(node.clock_offset_ns);
  row.Key("collectors").StartArray();
  for (const auto& [name, collector] : node.collectors) {
    row.StartObject().Key("name").Text(name).Key("is_present").Optional(Flag(collector.present));
    row.Key("succeeded").Optional(Flag(collector.success)).EndObject();
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
