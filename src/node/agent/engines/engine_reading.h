#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "node/agent/engines/engine_kind.h"

namespace lockstep::agent {

/// A histogram as it stands at one look.
struct EngineHistogram {
  std::vector<std::pair<double, uint64_t>> buckets;  ///< Upper bound, count up to it; ascending, the last is infinite.
  double sum = 0;
  bool operator==(const EngineHistogram&) const = default;
};

/// An engine's metrics of one model, under our names. What it does not report is absent.
struct EngineModel {
  std::string model;                          ///< "unknown": it does not say.
  std::map<std::string_view, double> values;  ///< Counters and gauges, finite, not negative.
  std::map<std::string_view, EngineHistogram> histograms;
};

/// One answer of an engine's /metrics.
struct EngineReading {
  std::vector<EngineModel> models;  ///< By name, each once; at most kMostEngineModels.
  uint64_t left_out_count = 0;      ///< Samples that have a name of ours and no place: too many models or buckets, or
                                    ///< values that cannot be.
};

constexpr size_t kMostEngineModels = 16;
constexpr size_t kMostEngineBuckets = 128;
constexpr size_t kMostModelBytes = 128;

/// Reads what an engine answers: its names become ours, series that differ in other labels than the model's are added
/// up (engines of one server, ranks of data parallelism). The bytes are from outside. Errors: kInvalidArgument when
/// nothing in them is of such an engine.
Result<EngineReading> ReadEngineMetrics(std::string_view text, EngineKind kind);

}  // namespace lockstep::agent
