#include "present/query/row_table.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

using Type = ColumnType;

std::vector<Field<TrackPlace>> TrackFields() {
  using Row = TrackPlace;
  return {
      {{"rank", Type::kInteger, "", "Global rank of the process.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(source.rank(row.rank_index).rank.value); },
       [](const Source& source, const Row& row) -> std::optional<int64_t> {
         return source.rank(row.rank_index).rank.value;
       }},
      {{"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(source.rank(row.rank_index).window); },
       [](const Source& source, const Row& row) -> std::optional<int64_t> {
         return source.rank(row.rank_index).window;
       }},
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

std::unique_ptr<Table> MakeTrackTable() {
  return std::make_unique<RowTable<TrackPlace>>(
      RowTable<TrackPlace>::Parts{.name = "tracks",
                                  .sentence = "One row per CPU thread and device stream of a rank",
                                  .pass = "",
                                  .fields = TrackFields(),
                                  .rows = [](const Source& source) { return source.tracks(); },
                                  .sorted_by = {kWindowColumn, kRankColumn}});
}

}  // namespace lockstep::query
