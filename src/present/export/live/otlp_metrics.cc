#include "present/export/live/otlp_metrics.h"

#include <otlp_metrics.pb.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "present/export/live/figures.h"
#include "present/report/utf8.h"

namespace lockstep::export_live {
namespace {

constexpr size_t kRanksAPayload = 200;
constexpr int kCumulative = 2;
// An UpDownCounter in OpenTelemetry's conventions, all others that we have are gauges there.
constexpr std::string_view kUsage = "hw.gpu.memory.usage";

using Attributes = google::protobuf::RepeatedPtrField<otlp::KeyValue>;

void Add(Attributes* attributes, const char* key, std::string_view value) {
  otlp::KeyValue* entry = attributes->Add();
  entry->set_key(key);
  entry->mutable_value()->set_string_value(report::ValidUtf8(value));
}
void Add(Attributes* attributes, const char* key, double value) {
  otlp::KeyValue* entry = attributes->Add();
  entry->set_key(key);
  entry->mutable_value()->set_double_value(value);
}
/// As a number where it is one.
void AddNumber(Attributes* attributes, const char* key, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return Add(attributes, key, text);
  otlp::KeyValue* entry = attributes->Add();
  entry->set_key(key);
  entry->mutable_value()->set_int_value(number);
}

class Maker {
 public:
  Maker(const live::JobView& job, int64_t unix_ns, int64_t start_unix_ns, std::string_view version)
      : job_(job), unix_ns_(unix_ns), start_unix_ns_(start_unix_ns), version_(version) {}

  std::vector<OtlpPayload> Make() {
    AddJob();
    size_t rank_count = 0;
    for (const live::RankView& rank : job_.ranks) {
      if (rank.state == live::RankState::kUnheard) continue;
      AddRank(rank);
      if (++rank_count % kRanksAPayload == 0) Finish();
    }
    Finish();
    return std::move(payloads_);
  }

 private:
  void Finish() {
    if (point_count_ > 0) payloads_.push_back({request_.SerializeAsString(), point_count_});
    request_.Clear();
    point_count_ = 0;
  }

  otlp::ScopeMetrics* Begin(Attributes** attributes) {
    otlp::ResourceMetrics* resource = request_.add_resource_metrics();
    *attributes = resource->mutable_resource()->mutable_attributes();
    Add(*attributes, "service.name", "lockstep");
    Add(*attributes, "lockstep.job.id", job_.job_id);
    otlp::ScopeMetrics* scope = resource->add_scope_metrics();
    scope->mutable_scope()->set_name("lockstep");
    scope->mutable_scope()->set_version(std::string(version_));
    return scope;
  }

  otlp::NumberDataPoint* Point(otlp::ScopeMetrics* scope, const char* name, const char* unit, const char* meaning,
                               double value) {
    // Points of one metric stand together.
    otlp::Metric* metric = nullptr;
    if (scope->metrics_size() > 0 && scope->metrics(scope->metrics_size() - 1).name() == name) {
      metric = scope->mutable_metrics(scope->metrics_size() - 1);
    } else {
      metric = scope->add_metrics();
      metric->set_name(name);
      metric->set_unit(unit);
      metric->set_description(meaning);
    }
    otlp::NumberDataPoint* point = nullptr;
    if (name == kUsage) {
      metric->mutable_sum()->set_aggregation_temporality(kCumulative);
      point = metric->mutable_sum()->add_data_points();
      point->set_start_time_unix_nano(static_cast<uint64_t>(start_unix_ns_));
    } else {
      point = metric->mutable_gauge()->add_data_points();
    }
    point->set_time_unix_nano(static_cast<uint64_t>(unix_ns_));
    point->set_as_double(value);
    ++point_count_;
    return point;
  }

  template <typename Subject>
  void AddFigures(std::span<const Figure<Subject>> figures, const Subject& subject, otlp::ScopeMetrics* scope,
                  const live::RankView* rank) {
    for (const Figure<Subject>& figure : figures) {
      const std::optional<double> value = figure.read(subject);
      if (!value || !std::isfinite(*value)) continue;
      otlp::NumberDataPoint* point = Point(scope, figure.metric, figure.unit, figure.meaning, *value);
      if (rank == nullptr || !std::string_view(figure.metric).starts_with("hw.")) continue;
      const live::GpuReading& gpu = rank->gpu->reading;
      Add(point->mutable_attributes(), "hw.type", "gpu");
      Add(point->mutable_attributes(), "hw.id", gpu.uuid.empty() ? gpu.gpu : gpu.uuid);
    }
  }

  void AddRank(const live::RankView& rank) {
    Attributes* attributes = nullptr;
    otlp::ScopeMetrics* scope = Begin(&attributes);
    AddNumber(attributes, "lockstep.rank", rank.rank);
    Add(attributes, "host.name", rank.host);
    if (!rank.pid.empty()) AddNumber(attributes, "process.pid", rank.pid);
    if (rank.step_count) {
      Point(scope, "lockstep.step.count", "{step}", "Steps that have ended.", static_cast<double>(*rank.step_count));
    }
    AddFigures(RankFigures(), rank, scope, &rank);
    for (const auto& [name, value] : rank.reading.user_values) {
      if (!std::isfinite(value)) continue;
      Add(Point(scope, "lockstep.user.value", "1", "Newest value of a counter of the program's own.", value)
              ->mutable_attributes(),
          "lockstep.user.name", name);
    }
  }

  void AddQuantiles(const live::Quantiles& quantiles, const char* name, const char* meaning,
                    const live::ServingView& serving, otlp::ScopeMetrics* scope) {
    for (const Quantile& shown : ShownQuantiles()) {
      const auto found = quantiles.find(shown.quantile);
      if (found == quantiles.end() || !std::isfinite(found->second)) continue;
      otlp::NumberDataPoint* point = Point(scope, name, "s", meaning, found->second);
      Add(point->mutable_attributes(), "gen_ai.request.model", serving.reading.model);
      Add(point->mutable_attributes(), "quantile", shown.quantile);
    }
  }

  void AddJob() {
    Attributes* attributes = nullptr;
    otlp::ScopeMetrics* scope = Begin(&attributes);
    AddFigures<live::JobView>(JobFigures(), job_, scope, nullptr);
    for (const live::ServingView& serving : job_.serving) {
      Attributes* of_node = nullptr;
      otlp::ScopeMetrics* node = Begin(&of_node);
      Add(of_node, "host.name", serving.host);
      Add(of_node, "gen_ai.request.model", serving.reading.model);
      Add(of_node, "lockstep.serving.engine", serving.reading.engine);
      AddFigures<live::ServingView>(ServingFigures(), serving, node, nullptr);
      AddQuantiles(serving.reading.recent_duration_s, "lockstep.serving.request.duration",
                   "Quantiles of requests that ended within the last minute, from begin to end.", serving, node);
      AddQuantiles(serving.reading.recent_first_token_s, "lockstep.serving.time_to_first_token",
                   "The same, from begin to first output.", serving, node);
    }
  }

  const live::JobView& job_;
  const int64_t unix_ns_;
  const int64_t start_unix_ns_;
  const std::string_view version_;
  otlp::ExportMetricsServiceRequest request_;
  uint64_t point_count_ = 0;
  std::vector<OtlpPayload> payloads_;
};

}  // namespace

std::vector<OtlpPayload> MakeOtlpMetrics(const live::JobView& job, int64_t unix_ns, int64_t start_unix_ns,
                                         std::string_view version) {
  return Maker(job, unix_ns, start_unix_ns, version).Make();
}

OtlpReply ReadOtlpReply(std::string_view bytes) {
  otlp::ExportMetricsServiceResponse response;
  if (bytes.size() > 1 << 20 || !response.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  const int64_t rejected = response.partial_success().rejected_data_points();
  return {rejected > 0 ? static_cast<uint64_t>(rejected) : 0,
          report::Printable(response.partial_success().error_message())};
}

}  // namespace lockstep::export_live
