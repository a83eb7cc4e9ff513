#pragma once

#include <optional>
#include <span>

#include "node/live/job_view.h"

namespace lockstep::export_live {

/// One figure of what a job does now, as other tools are given it. Values are in base units: seconds, bytes, shares
/// 0..1, amounts by second; nullopt means not measured.
template <typename Subject>
struct Figure {
  const char* tag;      ///< TensorBoard's, with its unit: "step/time_ms".
  double tag_scale;     ///< From base unit to the tag's.
  const char* metric;   ///< OpenTelemetry's: one of its own names where there is one, else "lockstep.".
  const char* unit;     ///< Of the metric, by UCUM: "s", "By", "1", "W", "Cel", "{step}/s".
  bool is_of_steps;     ///< Says nothing new before another step has ended.
  const char* meaning;  ///< A sentence.
  std::optional<double> (*read)(const Subject& subject);
};

std::span<const Figure<live::RankView>> RankFigures();
std::span<const Figure<live::JobView>> JobFigures();
std::span<const Figure<live::ServingView>> ServingFigures();

/// Quantiles of requests: p50, p95, p99.
struct Quantile {
  double quantile;
  const char* name;
};
std::span<const Quantile> ShownQuantiles();

}  // namespace lockstep::export_live
