#include "present/report/run_tables.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "analysis/collectives.h"
#include "present/report/job_facts.h"

namespace lockstep::report {
namespace {

using analysis::CollectiveInstance;
using analysis::CollectiveMember;
using analysis::ColumnPlace;
using analysis::ColumnType;
using analysis::DeclareTableOver;
using analysis::Field;
using analysis::FieldAt;
using analysis::In;
using analysis::ListField;
using analysis::NamedField;
using analysis::ObjectField;
using analysis::RankField;
using analysis::RowColumn;
using analysis::TableSource;
using model::ClockMap;
using model::LedgerEntry;
using model::RankTrace;

template <typename Row>
RowColumn<Row> Keyed(RowColumn<Row> column) {
  column.is_key = true;
  return column;
}

const std::vector<RankTrace>& RunRanks(const TableSource& source) { return source.run.ranks; }
const std::vector<LedgerEntry>& LedgerEntries(const TableSource& source) { return source.run.ledger.entries(); }
const std::vector<CollectiveInstance>& CollectiveInstances(const TableSource& source) {
  return source.result.Get<analysis::Collectives>().instances;
}

std::vector<RowColumn<RankTrace>> RankNumberColumns() {
  return {Keyed(Field<&RankTrace::rank>("rank", "", "Global rank of the process.")),
          Keyed(Field<&RankTrace::window>("window", "",
                                          "0 for the first trace of this rank in time, 1 for the next, and so on."))};
}

const char* BasisNameOf(const ClockMap& clock) { return model::ClockBasisName(clock.basis); }

std::vector<RowColumn<RankTrace>> ClockColumns() {
  return {
      NamedField<&RankTrace::clock, BasisNameOf>(
          "basis", "How the clock was aligned: `reference`, `collectives` or `wall_clock`."),
      Field<&RankTrace::clock, &ClockMap::offset_ns>(
          "offset_ns", "ns", "What this rank's clock reads more than the reference's, at `clock_reference_ns`."),
      Field<&RankTrace::clock, &ClockMap::uncertainty_ns>("uncertainty_ns", "ns",
                                                          "Half-width of the offset's interval.", "not known"),
      Field<&RankTrace::clock, &ClockMap::drift_ppm>("drift_ppm", "microseconds per second",
                                                     "Growth of the offset; 0 when none was found."),
      Field<&RankTrace::clock, &ClockMap::reference_ns>("reference_ns", "ns, the rank's own clock",
                                                        "Instant at which `clock_offset_ns` holds."),
      Field<&RankTrace::clock, &ClockMap::sample_count>("sample_count", "count", "Collectives that were used."),
  };
}

/// `first_ns` and `last_ns`: on the rank's own clock, or the common one.
template <auto kInstant>
RowColumn<RankTrace> InstantColumn(std::string_view name, std::string_view meaning, bool is_aligned) {
  RowColumn<RankTrace> column =
      Field<kInstant>(name, is_aligned ? "ns, aligned clock" : "ns, the rank's own clock", meaning, "no events");
  if (is_aligned) {
    column.value = [](const TableSource&, const RankTrace& trace) {
      return trace.*kInstant ? Cell(trace.clock.ToRun(*(trace.*kInstant))) : Cell();
    };
  }
  return column;
}

std::vector<RowColumn<RankTrace>> RankColumns() {
  using Row = RankTrace;
  std::vector<RowColumn<Row>> columns = RankNumberColumns();
  columns.insert(
      columns.end(),
      {NamedField<&Row::rank_source, model::RankSourceName>(
           "rank_source", "How the rank is known: `distributed_info`, `file_name` or `order`."),
       Field<&Row::world_size>("world_size", "count", "World size as this file states it.", "not stated"),
       Field<&Row::host>("host", "", "Host name.", "not stated"),
       {"device", ColumnType::kText, "", "Name of the device that this rank's events ran on.",
        "no device events, or the file does not name its devices",
        [](const TableSource&, const Row& row) {
          std::string name = DeviceOf(row).name;
          return name.empty() ? Cell() : Cell(std::move(name));
        }},
       In(ColumnPlace::kNotInCsv,
          ListField<Row>(
              [](const Row& row) { return DeviceOf(row).ordinals; },
              RowColumn<int32_t>{"device_ordinals", ColumnType::kInteger, "",
                                 "Ordinals of the devices with events, as the process calls them.", "",
                                 [](const TableSource&, int32_t ordinal) { return Cell(int64_t{ordinal}); }})),
       Field<&Row::backend>("backend", "", "Communication backend.", "not stated"),
       Field<&Row::source>("source", "", "Path of the file; `archive!member` inside an archive."),
       Field<&Row::event_count>("event_count", "count", "Elements of `traceEvents`, of every kind."),
       Field<&Row::json_bytes>("json_bytes", "bytes", "Size of the JSON, unpacked."),
       In(ColumnPlace::kNotInSql, InstantColumn<&Row::first_ns>("first_ns", "Smallest start of an event.", false)),
       In(ColumnPlace::kNotInSql, InstantColumn<&Row::last_ns>("last_ns", "Largest end of an event.", false)),
       In(ColumnPlace::kOnlyInSql, InstantColumn<&Row::first_ns>("first_ns", "Smallest start of an event.", true)),
       In(ColumnPlace::kOnlyInSql, InstantColumn<&Row::last_ns>("last_ns", "Largest end of an event.", true)),
       In(ColumnPlace::kOnlyInSql,
          InstantColumn<&Row::first_ns>("trace_first_ns", "`first_ns` as the file has it.", false)),
       In(ColumnPlace::kOnlyInSql,
          InstantColumn<&Row::last_ns>("trace_last_ns", "`last_ns` as the file has it.", false))});
  constexpr std::string_view kFlat[] = {"clock_basis",     "clock_offset_ns",    "clock_uncertainty_ns",
                                        "clock_drift_ppm", "clock_reference_ns", "clock_sample_count"};
  const std::vector<RowColumn<Row>> clock = ClockColumns();
  for (size_t i = 0; i < clock.size(); ++i) {
    const bool is_in_csv = i >= 1 && i <= 3;
    columns.push_back(In(is_in_csv ? ColumnPlace::kNotInJson : ColumnPlace::kOnlyInSql, clock[i]));
    columns.back().name = kFlat[i];
  }
  columns.push_back(In(ColumnPlace::kOnlyInJson, ObjectField("clock", "How it was aligned.", "", clock)));
  return columns;
}

std::vector<RowColumn<LedgerEntry>> LedgerColumns() {
  using Row = LedgerEntry;
  return {
      Field<&Row::code>("code", "", "Stable name (json.md, codes of the ledger)."),
      NamedField<&Row::severity, model::SeverityName>(
          "severity", "`info`, `warning` or `error`; an `error` means that something is missing."),
      Field<&Row::source>("source", "", "File, and member of an archive.", "concerns the whole run"),
      Field<&Row::rank>("rank", "", "Rank.", "not known, or the whole run"),
      Field<&Row::byte_offset>("byte_offset", "bytes", "Where it was seen first, in the unpacked JSON.", "no place"),
      Field<&Row::count>("count", "count", "How often."),
      Field<&Row::message>("message", "", "What was seen."),
      Field<&Row::advice>("advice", "", "What to do.", "nothing to do"),
  };
}

using InstanceColumn = RowColumn<CollectiveInstance>;

InstanceColumn GroupNameColumn(std::string_view name) {
  return Field<&CollectiveInstance::group>(name, "",
                                           "Process group: its name, description or members; `default` when unknown.");
}
InstanceColumn MatchColumn() {
  return NamedField<&CollectiveInstance::basis, analysis::MatchBasisName>(
      "match", "How the ranks' parts were joined: by `sequence` or by `order`.");
}
InstanceColumn SynchronisingColumn() {
  return Field<&CollectiveInstance::synchronising>(
      "synchronising", "", "No member can finish before all have arrived (`all_reduce`, ..., not `broadcast`).");
}
InstanceColumn CompleteColumn() {
  return Field<&CollectiveInstance::complete>("complete", "", "Every member of the group is here.");
}

/// What both tables say of an instance, before and behind what is of their own rows.
std::vector<InstanceColumn> ColumnsBefore() {
  using Row = CollectiveInstance;
  return {
      In(ColumnPlace::kOnlyInSql,
         Keyed(InstanceColumn{"instance", ColumnType::kInteger, "",
                              "Number of the collective in the run, in order of first arrival; both tables share it.",
                              "",
                              [](const TableSource& source, const Row& row) {
                                return Cell(int64_t{&row - CollectiveInstances(source).data()});
                              }})),
      Keyed(Field<&Row::window>("window", "", "Window it belongs to.")),
      In(ColumnPlace::kOnlyInSql, GroupNameColumn("group_name")),
      In(ColumnPlace::kNotInSql, GroupNameColumn("group")),
      Keyed(Field<&Row::sequence>("sequence", "",
                                  "Sequence number in the group as recorded, else the order of occurrence from 0.")),
      In(ColumnPlace::kNotInSql, MatchColumn()),
      Field<&Row::name>("name", "",
                        "`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `send`, ..."),
      Field<&Row::bytes>("bytes", "bytes", "Size of the whole buffer, as nccl-tests count it.", "not recorded"),
      Field<&Row::group_size>("group_size", "count", "Members of the group, with or without a trace.", "not known"),
      In(ColumnPlace::kNotInSql, SynchronisingColumn()),
      In(ColumnPlace::kNotInSql, CompleteColumn()),
  };
}

std::vector<InstanceColumn> ColumnsBehind() {
  using Row = CollectiveInstance;
  return {
      RankField<&Row::last_rank_index>(
          "last_rank", "The rank that arrived last.",
          "the margin is below the clocks' uncertainty, or a member lacks it or came later without a trace"),
      Field<&Row::transfer_ns>("transfer_ns", "ns", "Time of the collective itself after all members have arrived.",
                               "not complete"),
      Field<&Row::algbw_bytes_per_s>("algbw_bytes_per_s", "bytes/s",
                                     "`bytes` / `transfer_ns`: waiting is not included.", "size or transfer unknown"),
      Field<&Row::busbw_bytes_per_s>("busbw_bytes_per_s", "bytes/s",
                                     "`algbw_bytes_per_s` times nccl-tests' factor for the operation.",
                                     "size or transfer unknown"),
      In(ColumnPlace::kOnlyInSql, MatchColumn()),
      In(ColumnPlace::kOnlyInSql, SynchronisingColumn()),
      In(ColumnPlace::kOnlyInSql, CompleteColumn()),
  };
}

template <typename Row, typename Item, typename Find>
void AddLifted(const std::vector<RowColumn<Item>>& from, Find find, std::vector<RowColumn<Row>>* to) {
  for (const RowColumn<Item>& column : from) to->push_back(FieldAt<Row>(find, column));
}

std::vector<RowColumn<MemberPlace>> MemberColumns() {
  using Row = CollectiveMember;
  const auto instance = [](const TableSource& source, const MemberPlace& place) {
    return &CollectiveInstances(source)[place.instance];
  };
  const auto member = [](const TableSource& source, const MemberPlace& place) {
    return &CollectiveInstances(source)[place.instance].members[place.member];
  };
  const std::vector<RowColumn<Row>> own = {
      Keyed(RankField<&Row::rank_index>("rank", "Global rank of this member.")),
      Field<&Row::arrival_ns>("arrival_ns", "ns, aligned clock",
                              "Start of this rank's kernel; CPU jobs: of the backend's range."),
      Field<&Row::end_ns>("end_ns", "ns, aligned clock", "End of it."),
      Field<&Row::wait_ns>("wait_ns", "ns",
                           "Last arrival (of the members that were recorded) less own arrival; where it is not "
                           "synchronising, no more than the own duration.",
                           "a member's window lacks the collective, or it was joined wrongly"),
      Field<&Row::duration_ns>("duration_ns", "ns", "Duration of this rank's kernel or range; needs no clock."),
  };
  std::vector<RowColumn<MemberPlace>> columns;
  AddLifted(ColumnsBefore(), instance, &columns);
  AddLifted(own, member, &columns);
  AddLifted(ColumnsBehind(), instance, &columns);
  return columns;
}

/// The member with the earliest or the latest arrival, by which of std::min_element and std::max_element it is.
template <typename Choose>
InstanceColumn ArrivalColumn(std::string_view name, std::string_view meaning, Choose choose) {
  return {name,
          ColumnType::kInteger,
          "ns, aligned clock",
          meaning,
          "",
          [choose](const TableSource&, const CollectiveInstance& row) {
            return row.members.empty() ? Cell() : Cell(choose(row.members)->arrival_ns);
          }};
}

std::vector<InstanceColumn> InstanceColumns() {
  using Row = CollectiveInstance;
  const auto earlier = [](const CollectiveMember& a, const CollectiveMember& b) { return a.arrival_ns < b.arrival_ns; };
  std::vector<InstanceColumn> columns = ColumnsBefore();
  columns.insert(
      columns.end(),
      {{"rank_count", ColumnType::kInteger, "count", "Ranks that have it; a row each in `collectives`.", "",
        [](const TableSource&, const Row& row) { return Cell(uint64_t{row.members.size()}); }},
       ListField<&Row::missing_ranks>("missing_ranks", "", "Members that have a trace in this window which lacks it."),
       ArrivalColumn("first_arrival_ns", "Earliest arrival.",
                     [earlier](const auto& members) { return std::ranges::min_element(members, earlier); }),
       ArrivalColumn("last_arrival_ns", "Latest arrival; less the earliest it is the skew.",
                     [earlier](const auto& members) { return std::ranges::max_element(members, earlier); })});
  const std::vector<InstanceColumn> behind = ColumnsBehind();
  columns.insert(columns.end(), behind.begin(), behind.end());
  return columns;
}

}  // namespace

const analysis::Table& RankTable() {
  static const analysis::Table table = DeclareTableOver<RankTrace>(
      RunRanks, "", "ranks", "ranks", "One row per trace file: which rank, where it ran, how its clock was aligned",
      RankColumns(), {});
  return table;
}

const analysis::Table& ClockTable() {
  static const analysis::Table table = [] {
    std::vector<RowColumn<RankTrace>> columns = RankNumberColumns();
    for (RowColumn<RankTrace>& column : ClockColumns()) columns.push_back(std::move(column));
    return DeclareTableOver<RankTrace>(RunRanks, "", "clocks", "", "How each rank's clock was aligned", columns, {});
  }();
  return table;
}

const analysis::Table& LedgerTable() {
  static const analysis::Table table = DeclareTableOver<LedgerEntry>(
      LedgerEntries, "", "ledger", "ledger", "Everything that was repaired, skipped, guessed or refused while reading",
      LedgerColumns(), {});
  return table;
}

std::vector<MemberPlace> MemberPlaces(const analysis::AnalysisResult& result) {
  std::vector<MemberPlace> places;
  const auto& instances = result.Get<analysis::Collectives>().instances;
  for (size_t i = 0; i < instances.size(); ++i) {
    for (size_t m = 0; m < instances[i].members.size(); ++m)
      places.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(m)});
  }
  return places;
}

const analysis::Table& MemberTable() {
  static const analysis::Table table = [] {
    analysis::Table made = DeclareTableOver<MemberPlace>(
        nullptr, analysis::Collectives::kPass, "collectives", "collectives",
        "One row per collective and rank that took part: arrival, waiting, duration", MemberColumns(), {});
    made.rows = [](const TableSource& source) {
      auto places = std::make_shared<const std::vector<MemberPlace>>(MemberPlaces(source.result));
      analysis::TableRows rows = analysis::RowsOf(*places);
      rows.owner = std::move(places);
      return rows;
    };
    return made;
  }();
  return table;
}

const analysis::Table& InstanceTable() {
  static const analysis::Table table = DeclareTableOver<CollectiveInstance>(
      CollectiveInstances, analysis::Collectives::kPass, "collective_instances", "collective_instances",
      "One row per collective, over all ranks: size, bandwidth, who was last", InstanceColumns(), {});
  return table;
}

}  // namespace lockstep::report
