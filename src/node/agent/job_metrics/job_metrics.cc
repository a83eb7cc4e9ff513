#include "node/agent/job_metrics/job_metrics.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/median.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "model/stages/rank_memory.h"
#include "node/agent/sensors/rank_label.h"
#include "node/agent/sensors/serving_metric_specs.h"

namespace lockstep::agent {

using model::At;
using model::Stage;

namespace {

using prometheus::MetricFamily;

constexpr size_t kMostKinds = 64;  // Of requests of one job; further ones are "other".
// Shorter ones come and go between two scrapes, and each would leave a series behind.
constexpr int64_t kLongPhaseNs = 5 * kSecondNs;
constexpr const char* kEngine = "liblockstep";

// A millisecond to ten minutes, four a factor of ten: the sum gives the mean step time, the buckets its spread.
prometheus::Histogram::BucketBoundaries StepBuckets() {
  return {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600};
}

using Labels = MetricLabels;

// Counters of the program that are metrics of their own.
constexpr std::pair<std::string_view, const char*> kKnown[] = {
    {"torch_memory_allocated_bytes", "lockstep_torch_memory_allocated_bytes"},
    {"torch_memory_reserved_bytes", "lockstep_torch_memory_reserved_bytes"},
    {"torch_memory_peak_bytes", "lockstep_torch_memory_peak_bytes"},
    {"torch_memory_total_bytes", "lockstep_torch_memory_total_bytes"},
    {"torch_alloc_retries", "lockstep_torch_alloc_retries_total"},
    {"torch_ooms", "lockstep_torch_ooms_total"},
    {"gpu_peak_flops_per_second", "lockstep_gpu_peak_flops_per_second"},
};

/// Null: it has no metric of its own.
const char* MetricOf(std::string_view counter) {
  const auto* const known =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const auto& each) { return counter == each.first; });
  return known == std::end(kKnown) ? nullptr : known->second;
}

/// All that Collect() may have: what ranks do, and requests.
const MetricSpecs& CollectedSpecs() {
  static const MetricSpecs specs = [] {
    MetricSpecs all = JobMetricSpecs();
    all.insert(all.end(), ServingMetricSpecs().begin(), ServingMetricSpecs().end());
    return all;
  }();
  return specs;
}

void AddServing(const std::string& job, const std::string& model, const ServingMeter& meter, uint64_t running,
                MetricFamilies* out) {
  const Labels labels = {{"job_id", job}, {"model", model}, {"engine", kEngine}};
  out->Add("lockstep_serving_requests_total", labels, static_cast<double>(meter.request_count()));
  out->Add("lockstep_serving_request_failures_total", labels, static_cast<double>(meter.failure_count()));
  out->Add("lockstep_serving_requests_running", labels, static_cast<double>(running));
  out->Add("lockstep_serving_generation_tokens_total", labels, static_cast<double>(meter.output_count()));
  out->Add("lockstep_serving_request_duration_seconds", labels, meter.duration.Collect());
  out->Add("lockstep_serving_time_to_first_token_seconds", labels, meter.time_to_first_output.Collect());
  out->Add("lockstep_serving_time_per_output_token_seconds", labels, meter.time_per_output.Collect());
  out->Add("lockstep_serving_inter_token_latency_seconds", labels, meter.inter_output.Collect());
  out->Add("lockstep_serving_recent_request_duration_seconds", labels, meter.recent_duration.Collect(SteadyNow()));
  out->Add("lockstep_serving_recent_time_to_first_token_seconds", labels,
           meter.recent_first_output.Collect(SteadyNow()));
  out->Add("lockstep_serving_recent_inter_token_latency_seconds", labels,
           meter.recent_inter_output.Collect(SteadyNow()));
}

}  // namespace

JobMetrics::Job::Job() : step_seconds(StepBuckets()) {}

void JobMetrics::AddRank(const Rank& rank, MetricFamilies* out) {
  const RankIdentity& identity = rank.identity;
  const RankMeter& meter = rank.meter;
  const Labels labels = {{"job_id", rank.job}, {"rank", rank.label}, {"host", identity.host}};
  Labels info = labels;
  info.emplace_back("pid", std::to_string(identity.pid));
  if (identity.local_rank) info.emplace_back("local_rank", std::to_string(*identity.local_rank));
  if (!identity.user.empty()) info.emplace_back("user", identity.user);
  if (!identity.device.empty()) info.emplace_back("device", identity.device);
  out->Add("lockstep_rank_info", info, 1);
  out->Add("lockstep_rank_up", labels, 1);
  if (!rank.records) return;
  out->Add("lockstep_steps_total", labels, static_cast<double>(meter.step_count()));
  out->Add("lockstep_step_seconds_total", labels, Seconds(meter.step_ns()));
  // A phase that is not known is absent, and its time counts for no phase.
  model::StageTimes stage_ns = meter.stage_ns();
  const bool hides =
      meter.hides_communication() || (meter.has_device_times() && At(stage_ns, Stage::kCommunication) == 0);
  if (hides) At(stage_ns, Stage::kOther) += std::exchange(At(stage_ns, Stage::kCommunication), 0);
  for (const Stage stage : model::kStages) {
    if (hides && stage == Stage::kCommunication) continue;
    Labels with_phase = labels;
    with_phase.emplace_back("phase", StageName(stage));
    out->Add("lockstep_step_phase_seconds_total", with_phase, Seconds(At(stage_ns, stage)));
  }
  if (meter.last_step_end_ns() && !meter.may_have_newer_step()) {  // A full file is not a job that hangs.
    out->Add("lockstep_rank_last_progress_timestamp_seconds", labels, Seconds(*meter.last_step_end_ns()));
  }
  const int64_t now_ns = UnixNow();
  if (meter.open_phase() && !meter.may_have_newer_step() && now_ns - meter.open_phase()->since_ns >= kLongPhaseNs) {
    Labels with_phase = labels;
    with_phase.emplace_back("phase", StageName(meter.open_phase()->stage));
    out->Add("lockstep_rank_long_phase_seconds", with_phase, Seconds(now_ns - meter.open_phase()->since_ns));
  }
  const auto amount = [&](const char* value, const char* metric) {
    const auto found = meter.amounts().find(value);
    if (found != meter.amounts().end()) out->Add(metric, labels, found->second);
  };
  amount("samples", "lockstep_samples_total");
  amount("tokens", "lockstep_tokens_total");
  amount("model_flops", "lockstep_model_flops_total");
  for (const auto& [name, value] : meter.values()) {
    if (name == model::kHidesCommunicationCounter) continue;
    // The daemon sees these for itself, also of ranks that record nothing.
    if (name == model::kResidentMemoryCounter || name == model::kHostMemoryCounter) continue;
    if (const char* const known = MetricOf(name)) {
      out->Add(known, labels, value);
      continue;
    }
    Labels named = labels;
    named.emplace_back("name", name);
    out->Add("lockstep_user_value", named, value);
  }
  Labels source = labels;
  source.emplace_back("source", "spans");
  out->Add("lockstep_events_total", source, static_cast<double>(meter.record_count()));
  for (const auto& [reason, count] :
       {std::pair("file_full", meter.dropped_count()), std::pair("too_fast", meter.missed_count()),
        std::pair("too_many_names", meter.left_out_count())}) {
    Labels with_reason = source;
    with_reason.emplace_back("reason", reason);
    out->Add("lockstep_events_dropped_total", with_reason, static_cast<double>(count));
  }
}

void JobMetrics::See(const RankIdentity& identity) {
  Rank& rank = ranks_[identity.pid];
  rank.identity = identity;
  rank.job = JobLabel(identity.job_id, identity.pid);
  rank.label = RankLabel(identity.rank, identity.pid);
  std::unique_ptr<Job>& job = jobs_[rank.job];
  if (job == nullptr) job = std::make_unique<Job>();
}

const RankMeter& JobMetrics::Take(const RankIdentity& identity, const ingest::span_follow::Followed& followed,
                                  const std::function<const std::string&(uint32_t)>& name_of) {
  See(identity);
  Rank& rank = ranks_[identity.pid];
  rank.meter.Take(followed, name_of);
  // Records from before the daemon started would look as if they all happened now, so the records of a file count only
  // after it was read to its end once.
  rank.records = rank.records || !followed.has_more;
  if (!rank.records) return rank.meter;
  Job& job = *jobs_[rank.job];
  for (const model::StepStages& step : rank.meter.new_steps()) job.step_seconds.Observe(Seconds(step.duration_ns));
  const auto serving = [&](const std::string& name) -> ServingMeter& {
    const bool is_known = job.serving.contains(name) || job.serving.size() < kMostKinds;
    std::unique_ptr<ServingMeter>& meter = job.serving[is_known ? name : "other"];
    if (meter == nullptr) meter = std::make_unique<ServingMeter>();
    return *meter;
  };
  for (const EndedRequest& request : rank.meter.ended_requests()) serving(request.name).Take(request);
  // Counters are there, with 0, from the first request on and not from the first that ends.
  for (const auto& [name, count] : rank.meter.OpenRequests()) serving(name);
  return rank.meter;
}

void JobMetrics::Forget(int32_t pid) {
  ranks_.erase(pid);
  std::erase_if(jobs_, [&](const auto& job) {
    return std::none_of(ranks_.begin(), ranks_.end(), [&](const auto& rank) { return rank.second.job == job.first; });
  });
}

std::vector<MetricFamily> JobMetrics::Collect() const {
  MetricFamilies out(CollectedSpecs());
  // A rank's workers have its number too, and record files of their own: the one that steps is the rank.
  std::map<std::pair<std::string_view, std::string_view>, const Rank*> main;
  for (const auto& [pid, rank] : ranks_) {
    const Rank*& held = main[{rank.job, rank.label}];
    const auto worth = [](const Rank& of) { return std::tuple(of.meter.step_count(), of.records, -of.identity.pid); };
    if (held == nullptr || worth(*held) < worth(rank)) held = &rank;
  }
  for (const auto& [key, rank] : main) AddRank(*rank, &out);
  for (const auto& [id, job] : jobs_) {
    std::optional<int32_t> world_size;
    std::vector<int64_t> recent_ns;
    std::map<std::string, uint64_t> running;
    for (const auto& [pid, rank] : ranks_) {
      if (rank.job != id) continue;
      // Without an id each rank is a job of its own, which has not as many ranks as its launcher says.
      if (rank.identity.world_size && !rank.identity.job_id.empty()) {
        world_size = std::max(world_size.value_or(0), *rank.identity.world_size);
      }
      const auto& steps = rank.meter.recent_steps_ns();
      recent_ns.insert(recent_ns.end(), steps.begin(), steps.end());
      for (const auto& [name, count] : rank.meter.OpenRequests()) {
        running[job->serving.contains(name) ? name : "other"] += count;
      }
    }
    const Labels labels = {{"job_id", id}};
    if (world_size) out.Add("lockstep_job_world_size", labels, *world_size);
    if (!recent_ns.empty()) {
      out.Add("lockstep_job_step_median_seconds", labels, Seconds(UpperMedian(&recent_ns)));
      out.Add("lockstep_step_duration_seconds", labels, job->step_seconds.Collect());
    }
    for (const auto& [model, meter] : job->serving) AddServing(id, model, *meter, running[model], &out);
  }
  return out.Take();
}

}  // namespace lockstep::agent
