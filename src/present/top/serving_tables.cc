#include "present/top/serving_tables.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "present/report/format.h"
#include "present/top/figure_text.h"
#include "present/top/job_tables.h"

namespace lockstep::top {
namespace {

using live::JobView;
using live::ServingReading;
using live::ServingView;
using report::Align;
using report::FormatPercent;
using report::Paint;
using report::TableCell;
using report::TextTable;

// From here on new requests find no room, and the engine puts others back for them.
constexpr double kFullCache = 0.95;

std::string CountText(const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : "-"; }

}  // namespace

std::string QuantileText(const ServingReading& serving, const live::Quantiles& quantiles, double share) {
  const auto found = quantiles.find(share);
  if (found == quantiles.end() || !(found->second >= 0) || !(found->second < 9e9)) return "-";
  return (serving.engine == "liblockstep" ? "" : "~") +
         report::FormatDuration(static_cast<int64_t>(found->second * 1e9));
}

TextTable ServingTable(const JobView& job) {
  TextTable table({{.header = "requests", .align = Align::kLeft, .flexible = true},
                   {.header = "host", .align = Align::kLeft, .drop = 5},
                   {.header = "running", .drop = 2},
                   {.header = "per s"},
                   {.header = "failed", .drop = 1},
                   {.header = "tokens/s", .drop = 4},
                   {.header = "P50"},
                   {.header = "P95"},
                   {.header = "P99"},
                   {.header = "first P50", .drop = 6},
                   {.header = "first P95", .drop = 7},
                   {.header = "first P99", .drop = 3}});
  for (const ServingView& serving : job.serving) {
    const ServingReading& reading = serving.reading;
    const bool fails = serving.failure_ratio.value_or(0) > 0;
    const auto time = [&](const live::Quantiles& quantiles, double share) {
      return QuantileText(reading, quantiles, share);
    };
    const live::Quantiles& all = reading.recent_duration_s;
    const live::Quantiles& first = reading.recent_first_token_s;
    table.AddRow({OrDash(reading.model), OrDash(serving.host), CountText(reading.running),
                  RateText(serving.requests_per_s),
                  TableCell(FormatPercent(serving.failure_ratio), fails ? Paint::kBad : Paint::kPlain),
                  RateText(serving.tokens_per_s), time(all, 0.5), time(all, 0.95), time(all, 0.99), time(first, 0.5),
                  time(first, 0.95), time(first, 0.99)});
  }
  return table;
}

TextTable EngineTable(const JobView& job) {
  TextTable table({{.header = "engine of", .align = Align::kLeft, .flexible = true},
                   {.header = "host", .align = Align::kLeft, .drop = 4},
                   {.header = "engine", .align = Align::kLeft, .drop = 3},
                   {.header = "running", .drop = 2},
                   {.header = "waiting"},
                   {.header = "KV cache"},
                   {.header = "preempted/s", .drop = 1},
                   {.header = "token P50"},
                   {.header = "token P95", .drop = 5},
                   {.header = "token P99"}});
  for (const ServingView& serving : job.serving) {
    const ServingReading& reading = serving.reading;
    const live::Quantiles& between = reading.recent_inter_token_s;
    if (!reading.waiting && !reading.kv_cache_usage_ratio && !reading.preemptions && between.empty()) continue;
    table.AddRow({OrDash(reading.model), OrDash(serving.host), OrDash(reading.engine), CountText(reading.running),
                  CountText(reading.waiting),
                  TableCell(FormatPercent(reading.kv_cache_usage_ratio),
                            reading.kv_cache_usage_ratio.value_or(0) > kFullCache ? Paint::kWarn : Paint::kPlain),
                  TableCell(RateText(serving.preemptions_per_s),
                            serving.preemptions_per_s.value_or(0) > 0 ? Paint::kWarn : Paint::kPlain),
                  QuantileText(reading, between, 0.5), QuantileText(reading, between, 0.95),
                  QuantileText(reading, between, 0.99)});
  }
  return table;
}

}  // namespace lockstep::top
