#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::agent {

/// A metric as docs/daemon-metrics.md lists it. Texts hold no line break and no backslash: the writer would not escape
/// them.
struct MetricSpec {
  const char* name;    ///< Base units; counters end in _total.
  const char* type;    ///< "counter", "gauge", "histogram", "summary".
  const char* labels;  ///< Separated by commas; empty: none.
  const char* help;
};
using MetricSpecs = std::vector<MetricSpec>;

prometheus::MetricFamily MakeFamily(const MetricSpec& spec);

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

/// Makes families of what is added. A name that no spec has is left out.
class MetricFamilies {
 public:
  explicit MetricFamilies(const MetricSpecs& specs) : specs_(specs) {}

  /// Of a counter or gauge.
  void Add(std::string_view name, MetricLabels labels, double value);
  /// Of a histogram or summary: with what it has collected.
  void Add(std::string_view name, MetricLabels labels, prometheus::ClientMetric metric);
  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  prometheus::MetricFamily* FamilyOf(std::string_view name);

  const MetricSpecs& specs_;
  std::map<std::string, size_t, std::less<>> places_;
  std::vector<prometheus::MetricFamily> families_;
};

/// Puts families of one name together: two sensors may have the same metric.
void MergeFamilies(std::vector<prometheus::MetricFamily> more, std::vector<prometheus::MetricFamily>* families);

}  // namespace lockstep::agent
