#include <fmt/format.h>

#include <string>

#include "present/query/event_columns.h"
#include "present/query/rank_fields.h"
#include "present/query/tables.h"
#include "present/report/job_facts.h"

namespace lockstep::query {
namespace {

using model::RankTrace;
using Type = ColumnType;

void WriteInstant(const RankTrace& trace, const std::optional<int64_t>& trace_ns, bool aligned, CellOut& out) {
  if (!trace_ns) return out.Null();
  out.Int(aligned ? trace.clock.ToRun(*trace_ns) : *trace_ns);
}

std::vector<Field<RankTrace>> RankFields() {
  using Row = RankTrace;
  return {
      {{"rank", Type::kInteger, "", "Global rank of the process.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.rank.value); },
       [](const Source&, const Row& row) -> std::optional<int64_t> { return row.rank.value; }},
      {{"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.window); },
       [](const Source&, const Row& row) -> std::optional<int64_t> { return row.window; }},
      {{"rank_source", Type::kText, "", "How the rank is known: `distributed_info`, `file_name` or `order`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(model::RankSourceName(row.rank_source)); }},
      {{"world_size", Type::kInteger, "count", "World size as this file states it.", "not stated"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.world_size); }},
      {{"host", Type::kText, "", "Host name.", "not stated"},
       [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.host); }},
      {{"device", Type::kText, "", "Name of the device that this rank's events ran on.",
        "no device events, or the file does not name its devices"},
       [](const Source&, const Row& row, CellOut& out) {
         const std::string name = report::DeviceOf(row).name;
         name.empty() ? out.Null() : out.Copy(name);
       }},
      {{"device_ordinals", Type::kJson, "", "Ordinals of the devices with events, as the process calls them.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         out.Copy(fmt::format("[{}]", fmt::join(report::DeviceOf(row).ordinals, ",")));
       }},
      {{"backend", Type::kText, "", "Communication backend.", "not stated"},
       [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.backend); }},
      {{"source", Type::kText, "", "Path of the file; `archive!member` inside an archive.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.source); }},
      {{"event_count", Type::kInteger, "count", "Elements of `traceEvents`, of every kind.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.event_count); }},
      {{"json_bytes", Type::kInteger, "bytes", "Size of the JSON, unpacked.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.json_bytes); }},
      {{"first_ns", Type::kInteger, "ns, aligned clock", "Smallest start of an event.", "no events"},
       [](const Source&, const Row& row, CellOut& out) { WriteInstant(row, row.first_ns, true, out); }},
      {{"last_ns", Type::kInteger, "ns, aligned clock", "Largest end of an event.", "no events"},
       [](const Source&, const Row& row, CellOut& out) { WriteInstant(row, row.last_ns, true, out); }},
      {{"trace_first_ns", Type::kInteger, "ns, the rank's own clock", "`first_ns` as the file has it.", "no events"},
       [](const Source&, const Row& row, CellOut& out) { WriteInstant(row, row.first_ns, false, out); }},
      {{"trace_last_ns", Type::kInteger, "ns, the rank's own clock", "`last_ns` as the file has it.", "no events"},
       [](const Source&, const Row& row, CellOut& out) { WriteInstant(row, row.last_ns, false, out); }},
      {{"clock_basis", Type::kText, "", "How the clock was aligned: `reference`, `collectives` or `wall_clock`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(report::ClockBasisName(row.clock.basis)); }},
      {{"clock_offset_ns", Type::kInteger, "ns",
        "What this rank's clock reads more than the reference's, at `clock_reference_ns`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.clock.offset_ns); }},
      {{"clock_uncertainty_ns", Type::kInteger, "ns", "Half-width of the offset's interval.", "not known"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.clock.uncertainty_ns); }},
      {{"clock_drift_ppm", Type::kReal, "microseconds per second", "Growth of the offset; 0 when none was found.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.clock.drift_ppm); }},
      {{"clock_reference_ns", Type::kInteger, "ns, the rank's own clock", "Instant at which `clock_offset_ns` holds.",
        ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.clock.reference_ns); }},
      {{"clock_sample_count", Type::kInteger, "count", "Collectives that were used.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.clock.sample_count); }},
  };
}

std::vector<Field<TrackPlace>> TrackFields() {
  using Row = TrackPlace;
  return {
      RankField<Row>(),
      WindowField<Row>(),
      {{"track", Type::kInteger, "", "Number of the track in the run: what `events.track` and `kernels.track` mean.",
        ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(&row - source.tracks().data()); },
       [](const Source& source, const Row& row) -> std::optional<int64_t> { return &row - source.tracks().data(); }},
      {{"lane", Type::kText, "",
        "What it holds: `operators`, `python`, `runtime`, `device`, `device_annotation`, `other`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(model::LaneName(row.track->lane)); }},
      {{"process_id", Type::kInteger, "", "`pid` of the file; the ordinal on devices.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.track->process_id); }},
      {{"thread_id", Type::kInteger, "", "`tid` of the file; the stream on devices.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.track->thread_id); }},
      {{"thread_name", Type::kText, "", "Name of the thread.", "not stated"},
       [](const Source& source, const Row& row, CellOut& out) {
         out.StaticOrNull(source.run().names[row.track->thread_name]);
       }},
      {{"device", Type::kInteger, "", "Device ordinal.", "not on a device"},
       [](const Source&, const Row& row, CellOut& out) {
         IsDeviceLane(row.track->lane) ? out.Int(row.track->device().value) : out.Null();
       }},
      {{"stream", Type::kInteger, "", "Stream.", "not on a device"},
       [](const Source&, const Row& row, CellOut& out) {
         IsDeviceLane(row.track->lane) ? out.Int(row.track->stream().value) : out.Null();
       }},
      {{"event_count", Type::kInteger, "count", "Events on it.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.track->events.size()); }},
  };
}

}  // namespace

void AddRankTables(TableList* tables) {
  tables->push_back(std::make_unique<RowTable<RankTrace>>(RowTable<RankTrace>::Parts{
      .name = "ranks",
      .sentence = "One row per trace file: which rank, where it ran, how its clock was aligned",
      .pass = "",
      .fields = RankFields(),
      .rows = [](const Source& source) { return std::span<const RankTrace>(source.run().ranks); },
      .sorted_by = {kWindowColumn, kRankColumn}}));
  tables->push_back(std::make_unique<RowTable<TrackPlace>>(
      RowTable<TrackPlace>::Parts{.name = "tracks",
                                  .sentence = "One row per CPU thread and device stream of a rank",
                                  .pass = "",
                                  .fields = TrackFields(),
                                  .rows = [](const Source& source) { return source.tracks(); },
                                  .sorted_by = {kWindowColumn, kRankColumn}}));
}

}  // namespace lockstep::query
