#include "analysis/profile_history/profile_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>

#include "base/nanoseconds.h"
#include "base/utf8.h"

namespace lockstep::profile_history {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::vector<std::pair<std::string, std::string>>;

class Families {
 public:
  void Add(const std::string& name, Labels labels, double value) {
    for (MetricFamily& family : families_) {
      if (family.name == name) return Put(family, std::move(labels), value);
    }
    for (const ProfileMetricSpec& spec : ProfileMetricSpecs()) {
      if (name != spec.name) continue;
      MetricFamily family;
      family.name = spec.name;
      family.help = spec.help;
      family.type = std::string_view(spec.type) == "counter" ? MetricType::Counter : MetricType::Gauge;
      families_.push_back(std::move(family));
      return Put(families_.back(), std::move(labels), value);
    }
  }
  std::string Text() const {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, families_);
    return text.str();
  }

 private:
  static void Put(MetricFamily& family, Labels labels, double value) {
    ClientMetric metric;
    metric.counter.value = metric.gauge.value = value;
    for (auto& [label, text] : labels) metric.label.push_back({std::move(label), Printable(text)});
    family.metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> families_;
};

bool IsOfAName(const std::string& figure) { return figure.find(':') != std::string::npos; }

}  // namespace

const std::vector<ProfileMetricSpec>& ProfileMetricSpecs() {
  static const std::vector<ProfileMetricSpec> specs = {
      {"lockstep_profile_captures_total", "counter", "job_id,outcome",
       "Captures: done, partial, failed; and those left out: skipped_silent (the job was silent or stuck), "
       "skipped_busy "
       "(another capture of it ran), skipped_overrun (the one before was not done)."},
      {"lockstep_profile_last_look_timestamp_seconds", "gauge", "job_id",
       "When the job was last looked at, in seconds since 1970: the rest is as old as this."},
      {"lockstep_profile_last_success_timestamp_seconds", "gauge", "job_id",
       "When the last capture began that gave figures."},
      {"lockstep_profile_capture_seconds", "gauge", "job_id", "How long the last capture took, its analysis included."},
      {"lockstep_profile_step_seconds", "gauge", "job_id", "Median step of the last capture."},
      {"lockstep_profile_figure_ratio", "gauge", "job_id,figure",
       "The last capture's figure over its level; of figures that are no kernel's and no collective's."},
      {"lockstep_profile_regression_ratio", "gauge", "job_id,figure,rank",
       "How much worse a figure has become: 0.25 is a quarter more, or a quarter less bandwidth; 0 while there is no "
       "regression. The rank is there where the figure is one rank's."},
      {"lockstep_profile_regressions_total", "counter", "job_id",
       "Regressions that were called, over the job's captures."},
      {"lockstep_profile_kept_bytes", "gauge", "job_id,kind", "What is kept on disk: traces, reports, history."},
      {"lockstep_profile_budget_bytes", "gauge", "job_id", "What may be kept."},
  };
  return specs;
}

std::string ProfileMetricsText(const ProfileFacts& facts, const JobHistory& history) {
  Families families;
  const Labels job = {{"job_id", facts.job_id}};
  const auto with = [&](const char* label, const std::string& value) {
    Labels labels = job;
    labels.emplace_back(label, value);
    return labels;
  };
  const CaptureCounts& counts = facts.counts;
  const std::pair<const char*, uint64_t> outcomes[] = {{"done", counts.done},
                                                       {"partial", counts.partial},
                                                       {"failed", counts.failed},
                                                       {"skipped_silent", counts.skipped_silent},
                                                       {"skipped_busy", counts.skipped_busy},
                                                       {"skipped_overrun", counts.skipped_overrun}};
  for (const auto& [outcome, count] : outcomes) {
    families.Add("lockstep_profile_captures_total", with("outcome", outcome), static_cast<double>(count));
  }
  families.Add("lockstep_profile_last_look_timestamp_seconds", job, Seconds(facts.now_unix_ns));
  if (facts.last_success_unix_ns) {
    families.Add("lockstep_profile_last_success_timestamp_seconds", job, Seconds(*facts.last_success_unix_ns));
  }
  if (facts.last_took_ns) families.Add("lockstep_profile_capture_seconds", job, Seconds(*facts.last_took_ns));
  for (const auto& [name, state] : history.figures()) {
    if (name == "step") families.Add("lockstep_profile_step_seconds", job, state.value / 1e9);
    if (!IsOfAName(name) && state.level && *state.level > 0) {
      families.Add("lockstep_profile_figure_ratio", with("figure", name), state.value / *state.level);
    }
    if (IsOfAName(name) && !state.regression) continue;
    Labels labels = with("figure", name);
    double ratio = 0;
    if (state.regression) {
      if (state.regression->rank) labels.emplace_back("rank", std::to_string(*state.regression->rank));
      const double change = state.regression->ratio();
      ratio = change < 0 ? -change : change;
    }
    families.Add("lockstep_profile_regression_ratio", std::move(labels), ratio);
  }
  families.Add("lockstep_profile_regressions_total", job, static_cast<double>(facts.regression_count));
  families.Add("lockstep_profile_kept_bytes", with("kind", "traces"), static_cast<double>(facts.kept.traces));
  families.Add("lockstep_profile_kept_bytes", with("kind", "reports"), static_cast<double>(facts.kept.reports));
  families.Add("lockstep_profile_kept_bytes", with("kind", "history"), static_cast<double>(facts.kept.history));
  families.Add("lockstep_profile_budget_bytes", job, static_cast<double>(facts.budget_bytes));
  return families.Text();
}

}  // namespace lockstep::profile_history
