#pragma once

#include <string>

#include "node/live/job_view.h"
#include "present/report/text_table.h"

namespace lockstep::top {

/// Requests of a job: P50, P95 and P99 of the last minute, rates. Empty without requests.
report::TextTable ServingTable(const live::JobView& job);

/// What stands behind them: queue, key-value cache, preemptions, times between outputs. A row for each model of which
/// any of it was measured.
report::TextTable EngineTable(const live::JobView& job);

/// "12 ms"; "~12 ms" of an engine, whose latencies are estimates from its buckets; "-" where there is none.
std::string QuantileText(const live::ServingReading& serving, const live::Quantiles& quantiles, double share);

}  // namespace lockstep::top
