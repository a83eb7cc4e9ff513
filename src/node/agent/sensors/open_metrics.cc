#include "node/agent/sensors/open_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/trim.h"

namespace lockstep::agent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view kTotal = "_total";

/// What is before the next `separator`, taken from `rest`.
std::string_view TakeUntil(char separator, std::string_view* rest) {
  const size_t end = std::min(rest->find(separator), rest->size());
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return Trimmed(part);
}

/// "0.75" in thousandths; what is no such number counts as 1.
int WeightOf(std::string_view text) {
  if (text.empty() || (text[0] != '0' && text[0] != '1')) return 1000;
  if (text[0] == '1') return 1000;
  int weight = 0;
  int place = 100;
  for (const char c : text.substr(std::min<size_t>(2, text.size()))) {
    if (c < '0' || c > '9') return 1000;
    weight += (c - '0') * place;
    place /= 10;
  }
  return weight;
}

// With 16 digits, as prometheus-cpp's TextSerializer writes them: both formats say the same number.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.16g}", value);
}

/// A bound or a quantile: with a point.
std::string Canonical(double value) {
  std::string text = Number(value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void AppendEscaped(std::string_view text, std::string* out) {
  for (const char c : text) {
    if (c == '\n') {
      *out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out->push_back('\\');
    out->push_back(c);
  }
}

/// Writes {name="value",...}.
class LabelWriter {
 public:
  explicit LabelWriter(std::string* out) : out_(out) {}
  void Add(std::string_view name, std::string_view value) {
    out_->push_back(before_);
    before_ = ',';
    *out_ += name;
    *out_ += "=\"";
    AppendEscaped(value, out_);
    out_->push_back('"');
  }
  void End() {
    if (before_ == ',') out_->push_back('}');
  }

 private:
  std::string* out_;
  char before_ = '{';
};

/// As the standard counts: names and values of all labels.
bool IsShortEnough(const Exemplar& exemplar) {
  constexpr size_t kMostCharacters = 128;
  size_t characters = 0;
  for (const auto& [name, value] : exemplar.labels) characters += name.size() + value.size();
  return characters <= kMostCharacters;
}

bool IsOf(const ClientMetric& metric, const Exemplar& exemplar) {
  return metric.label.size() == exemplar.series.size() &&
         std::all_of(exemplar.series.begin(), exemplar.series.end(), [&](const auto& wanted) {
           return std::any_of(metric.label.begin(), metric.label.end(), [&](const auto& label) {
             return label.name == wanted.first && label.value == wanted.second;
           });
         });
}

class Writer {
 public:
  explicit Writer(const std::vector<Exemplar>& exemplars) : exemplars_(exemplars) {}

  void Write(const MetricFamily& family) {
    name_ = family_ = family.name;
    const bool is_counter = family.type == MetricType::Counter;
    if (is_counter && name_.ends_with(kTotal)) name_.remove_suffix(kTotal.size());
    fmt::format_to(std::back_inserter(out), "# TYPE {} {}\n# HELP {} ", name_, TypeOf(family.type), name_);
    AppendEscaped(family.help, &out);
    out.push_back('\n');
    for (const ClientMetric& metric : family.metric) {
      switch (family.type) {
        case MetricType::Counter: Line(metric, "_total", Number(metric.counter.value)); break;
        case MetricType::Gauge: Line(metric, "", Number(metric.gauge.value)); break;
        case MetricType::Histogram: WriteHistogram(metric); break;
        case MetricType::Summary: WriteSummary(metric); break;
        default: Line(metric, "", Number(metric.untyped.value)); break;
      }
    }
  }
  std::string out;

 private:
  static const char* TypeOf(MetricType type) {
    switch (type) {
      case MetricType::Counter: return "counter";
      case MetricType::Gauge: return "gauge";
      case MetricType::Histogram: return "histogram";
      case MetricType::Summary: return "summary";
      default: return "unknown";
    }
  }

  void WriteHistogram(const ClientMetric& metric) {
    const auto& histogram = metric.histogram;
    double last = 0;
    double from = -std::numeric_limits<double>::infinity();
    const auto line = [&](uint64_t count, double bound) {
      Line(metric, "_bucket", std::to_string(count), "le", Canonical(bound));
      AddExemplar(metric, from, bound);
      from = bound;
    };
    for (const auto& bucket : histogram.bucket) {
      line(bucket.cumulative_count, bucket.upper_bound);
      last = bucket.upper_bound;
    }
    if (histogram.bucket.empty() || !std::isinf(last)) {
      line(histogram.sample_count, std::numeric_limits<double>::infinity());
    }
    Line(metric, "_count", std::to_string(histogram.sample_count));
    Line(metric, "_sum", Number(histogram.sample_sum));
  }

  /// Puts the one that was counted above `from` and up to `bound` at the end of the line before.
  void AddExemplar(const ClientMetric& metric, double from, double bound) {
    const auto found = std::find_if(exemplars_.begin(), exemplars_.end(), [&](const Exemplar& each) {
      return each.family == family_ && each.value > from && each.value <= bound && IsShortEnough(each) &&
             IsOf(metric, each);
    });
    if (found == exemplars_.end()) return;
    out.pop_back();
    out += " # ";
    LabelWriter labels(&out);
    for (const auto& [name, value] : found->labels) labels.Add(name, value);
    labels.End();
    fmt::format_to(std::back_inserter(out), " {} {:.3f}\n", Number(found->value), found->unix_seconds);
  }

  void WriteSummary(const ClientMetric& metric) {
    for (const auto& each : metric.summary.quantile) {
      Line(metric, "", Number(each.value), "quantile", Canonical(each.quantile));
    }
    Line(metric, "_count", std::to_string(metric.summary.sample_count));
    Line(metric, "_sum", Number(metric.summary.sample_sum));
  }

  void Line(const ClientMetric& metric, std::string_view suffix, const std::string& value, std::string_view extra = {},
            const std::string& extra_value = {}) {
    out += name_;
    out += suffix;
    LabelWriter labels(&out);
    for (const auto& each : metric.label) labels.Add(each.name, each.value);
    if (!extra.empty()) labels.Add(extra, extra_value);
    labels.End();
    out.push_back(' ');
    out += value;
    out.push_back('\n');
  }

  const std::vector<Exemplar>& exemplars_;
  std::string_view family_;  ///< In full.
  std::string_view name_;
};

}  // namespace

bool AcceptsOpenMetrics(std::string_view accept) {
  int open = 0;
  int plain = 0;
  while (!accept.empty()) {
    std::string_view element = TakeUntil(',', &accept);
    const std::string_view type = TakeUntil(';', &element);
    int weight = 1000;
    bool is_ours = true;
    while (!element.empty()) {
      const std::string_view parameter = TakeUntil(';', &element);
      if (parameter.starts_with("q=")) weight = WeightOf(parameter.substr(2));
      if (parameter.starts_with("version=")) is_ours = parameter == "version=1.0.0";
    }
    if (type == "application/openmetrics-text" && is_ours) open = std::max(open, weight);
    if (type == "text/plain") plain = std::max(plain, weight);
  }
  return open > 0 && open >= plain;
}

std::string OpenMetricsText(const std::vector<MetricFamily>& families, const std::vector<Exemplar>& exemplars) {
  Writer writer(exemplars);
  for (const MetricFamily& family : families) writer.Write(family);
  writer.out += "# EOF\n";
  return std::move(writer.out);
}

}  // namespace lockstep::agent
