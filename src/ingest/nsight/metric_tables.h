#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ingest/nsight/database.h"
#include "ingest/nsight/report_facts.h"
#include "ingest/nsight/report_notes.h"
#include "model/run.h"

namespace lockstep::ingest::nsight {

/// A series of a report, before it is known whose it is. Times are the report's own.
struct ReportCounter {
  std::optional<int64_t> gpu;  ///< As the sampler numbers devices (TARGET_INFO_GPU.pwGpuId); absent: of a network card.
  model::CounterSeries series;
};

/// What nsys sampled of devices (GPU_METRICS, or GENERIC_EVENTS where an older version put it) and of network cards
/// (NET_NIC_METRIC), one series per device or port and metric; of a metric that is called "SMs Active [Throughput %]"
/// the name is "SMs Active" and the unit "%". `cancelled` is asked now and then; true ends it early.
std::vector<ReportCounter> ReadMetrics(const Database& database, const std::function<bool()>& cancelled,
                                       ReportNotes* notes);

/// Gives every rank the series of the devices that it used, and the first one the others: those of network cards, and
/// of devices that no rank of the report used, under the machine's ordinals (they may be another rank's). Of these,
/// such as would take the name of a device that the rank used are left out and counted. Times become Unix time by
/// ReportFacts::base_ns. `pids` is parallel to `traces`.
void GiveCounters(std::vector<ReportCounter> counters, const ReportFacts& facts, const std::vector<int64_t>& pids,
                  const std::vector<model::RankTrace*>& traces, ReportNotes* notes);

}  // namespace lockstep::ingest::nsight
