#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::exposition {

struct MetricLabel {
  std::string_view name;
  std::string value;  ///< Without escapes; any bytes.
};

/// One line of Prometheus's text format: `name{label="value",...} value`. A time behind it is passed over.
struct MetricSample {
  std::string_view name;  ///< [a-zA-Z_:][a-zA-Z0-9_:]*
  std::vector<MetricLabel> labels;
  double value = 0;  ///< May be infinite or no number.

  /// Null: it has no such label.
  const std::string* Find(std::string_view label) const;
};

struct ExpositionCount {
  uint64_t sample_count = 0;
  uint64_t bad_line_count = 0;  ///< Lines that are neither comments nor samples; they are passed over.
  bool is_cut = false;          ///< There were more samples than kMostSamples; the rest was not read.
};

constexpr uint64_t kMostSamples = 1'000'000;
constexpr size_t kMostLabels = 64;
constexpr size_t kMostLineBytes = size_t{64} << 10;

/// Reads the text format 0.0.4 (what GET /metrics answers) and hands each sample to `take`, which must not keep it. The
/// bytes are from outside: what is not a sample is counted. Cost: one pass, no allocation but for escapes and long
/// values.
ExpositionCount ReadExposition(std::string_view text, const std::function<void(const MetricSample& sample)>& take);

}  // namespace lockstep::exposition
