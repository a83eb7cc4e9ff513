#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "present/report/comparison_report.h"
#include "present/report/csv_table.h"
#include "present/report/json_stream.h"
#include "present/report/scaling_report.h"

namespace lockstep::report {
namespace {

using comparison::Fitted;
using comparison::ScalingCurve;
using comparison::ScalingPoint;

void WriteFitted(JsonRow& row, const char* key, const char* margin_key, bool known, const Fitted& fitted) {
  row.Key(key);
  known ? row.Double(fitted.value) : row.Null();
  row.Key(margin_key).Value(known ? OptionalCell(fitted.margin) : Cell());
}

FlatTable Points(const ScalingCurve& curve) {
  FlatTable table{
      .name = "scaling",
      .columns = {"label", "ranks", "step_count", "step_ns", "low_ns", "high_ns", "ideal_step_ns", "fitted_step_ns",
                  "work_ns", "communication_ns", "communication_ratio", "speed_up", "ideal_speed_up",
                  "strong_efficiency", "weak_efficiency", "items_per_s", "slowest_rank", "slowest_ratio"},
      .row_count = curve.points.size()};
  table.fill = [&curve](size_t i, std::vector<Cell>* cells) {
    const ScalingPoint& p = curve.points[i];
    const ScalingPoint& first = curve.points.front();
    const bool weak = curve.options.kind == comparison::Scaling::kWeak;
    const double larger = static_cast<double>(p.ranks) / first.ranks;
    const double fitted = curve.fit.serial.value + curve.fit.parallel.value / p.ranks +
                          curve.fit.communication.value * GrowthAt(curve.fit.growth, p.ranks);
    *cells = {Cell(p.label),
              Cell(int64_t{p.ranks}),
              Cell(uint64_t{p.step_count}),
              Cell(p.step_ns),
              OptionalCell(p.low_ns),
              OptionalCell(p.high_ns),
              Cell(weak ? first.step_ns : first.step_ns / larger),
              curve.fit.fitted ? Cell(fitted) : Cell(),
              Cell(p.work_ns),
              Cell(p.communication_ns),
              Cell(p.communication_ratio),
              Cell(p.speed_up),
              Cell(larger),
              Cell(p.strong_efficiency),
              Cell(p.weak_efficiency),
              OptionalCell(p.items_per_s),
              Cell(int64_t{p.slowest_rank}),
              Cell(p.slowest_share)};
  };
  return table;
}

FlatTable NoSync(const ScalingCurve& curve) {
  FlatTable table{
      .name = "no_sync",
      .columns = {"label", "ranks", "full_ns", "no_sync_ns", "overhead_ns", "low_ns", "high_ns", "overhead_ratio"},
      .row_count = curve.direct.size()};
  table.fill = [&curve](size_t i, std::vector<Cell>* cells) {
    const comparison::DirectOverhead& row = curve.direct[i];
    *cells = {Cell(row.label),       Cell(int64_t{row.ranks}), Cell(row.full_ns),         Cell(row.no_sync_ns),
              Cell(row.overhead_ns), OptionalCell(row.low_ns), OptionalCell(row.high_ns), Cell(row.ratio)};
  };
  return table;
}

void WriteTable(JsonDocument& json, const char* key, const FlatTable& table) {
  json.Key(key);
  WriteRows(json, table);
}

void WriteFit(JsonDocument& json, const ScalingCurve& curve) {
  const comparison::ScalingFit& fit = curve.fit;
  json.Key("fit");
  JsonRow row;
  row.Key("fitted").Bool(fit.fitted).Key("reason").Text(fit.reason);
  WriteFitted(row, "serial_ns", "serial_margin_ns", fit.fitted, fit.serial);
  const bool strong = curve.options.kind == comparison::Scaling::kStrong;
  WriteFitted(row, "parallel_ns", "parallel_margin_ns", fit.fitted && strong, fit.parallel);
  WriteFitted(row, "communication_ns", "communication_margin_ns", fit.fitted, fit.communication);
  const auto number = [&](const char* key, double value) {
    row.Key(key).Value(OptionalCell(fit.fitted ? std::optional(value) : std::nullopt));
  };
  row.Key("growth").Text(GrowthName(fit.growth)).Key("growth_known").Bool(fit.growth_known);
  number("serial_ratio", fit.serial_share);
  number("communication_ratio", fit.communication_share);
  number("worst_residual_ratio", fit.worst_residual);
  number("next_ranks", fit.next_ranks);
  number("next_step_ns", fit.next_step_ns);
  number("next_low_ns", fit.next_low_ns);
  number("next_high_ns", fit.next_high_ns);
  number("next_efficiency", fit.next_efficiency);
  row.Key("next_bound").TextOrNull(fit.bound);
  WriteRow(json, row);
}

void WriteData(JsonDocument& json, const ScalingCurve& curve) {
  json.StartObject();
  json.Key("verdict");
  JsonRow row;
  row.Key("sentence").Text(curve.sentence).Key("kind").Text(ScalingName(curve.options.kind));
  row.Key("confidence").Double(curve.options.confidence).Key("notes").List(curve.notes);
  WriteRow(json, row);
  WriteTable(json, "points", Points(curve));
  WriteTable(json, "no_sync", NoSync(curve));
  WriteFit(json, curve);
  json.EndObject();
}

}  // namespace

void WriteScalingJson(const ScalingCurve& curve, std::ostream& out) {
  WriteDocument(out, "lockstep.scaling/1", curve.partial, [&](JsonDocument& json) {
    WriteData(json, curve);
    json.Key("ledger");
    json.StartArray();
    for (const auto& [label, entries] : curve.ledgers) WriteLedgerRows(json, label, entries);
    json.EndArray();
  });
}

std::string ScalingDataJson(const ScalingCurve& curve) {
  std::ostringstream out;
  {
    JsonDocument json(out, 0);
    WriteData(json, curve);
  }
  return out.str();
}

Status WriteScalingCsv(const ScalingCurve& curve, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // Writing the first file says what is wrong.
  RETURN_IF_ERROR(WriteCsvTable(folder, Points(curve)));
  return WriteCsvTable(folder, NoSync(curve));
}

}  // namespace lockstep::report
