#include "analysis/idle.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "query/rank_fields.h"
#include "query/tables.h"

namespace lockstep::query {
namespace {

using analysis::IdleHostRow;
using analysis::IdleRow;
using analysis::LaunchRow;
using analysis::MemoryRow;
using analysis::QueueRow;
using Type = ColumnType;

// A number as the row holds it.
template <auto kField, typename Row>
void WriteNumber(const Source&, const Row& row, CellOut& out) {
  using Value = std::remove_cvref_t<decltype(row.*kField)>;
  if constexpr (std::is_floating_point_v<Value>) {
    out.Real(row.*kField);
  } else {
    out.Int(static_cast<int64_t>(row.*kField));
  }
}

template <auto kField, typename Row>
Field<Row> Number(std::string_view name, std::string_view unit, std::string_view meaning) {
  using Value = std::remove_cvref_t<decltype(std::declval<Row>().*kField)>;
  return {{name, std::is_floating_point_v<Value> ? Type::kReal : Type::kInteger, unit, meaning, ""},
          WriteNumber<kField, Row>};
}

template <auto kField, typename Row>
Field<Row> OptionalNumber(std::string_view name, std::string_view unit, std::string_view meaning,
                          std::string_view null) {
  return {{name, Type::kInteger, unit, meaning, null},
          [](const Source&, const Row& row, CellOut& out) { out.Optional(row.*kField); }};
}

template <typename Row>
Field<Row> DeviceField() {
  return {{"device", Type::kInteger, "", "Device ordinal.", ""},
          [](const Source&, const Row& row, CellOut& out) { out.Int(row.device.value); }};
}

template <typename Row>
Field<Row> StreamField() {
  return {{"stream", Type::kInteger, "", "Stream.", ""},
          [](const Source&, const Row& row, CellOut& out) { out.Int(row.stream.value); }};
}

template <typename Row>
void AddRankTable(TableList* tables, std::string_view name, std::string_view sentence, std::string_view pass,
                  std::vector<Field<Row>> fields, std::function<std::span<const Row>(const Source&)> rows) {
  fields.insert(fields.begin(), {RankField<Row>(), WindowField<Row>()});
  tables->push_back(
      std::make_unique<RowTable<Row>>(typename RowTable<Row>::Parts{.name = name,
                                                                    .sentence = sentence,
                                                                    .pass = pass,
                                                                    .fields = std::move(fields),
                                                                    .rows = std::move(rows),
                                                                    .sorted_by = {kWindowColumn, kRankColumn}}));
}

void AddIdle(TableList* tables) {
  AddRankTable<IdleRow>(
      tables, "idle", "Idle time between a stream's consecutive events, by cause", "idle",
      {DeviceField<IdleRow>(), StreamField<IdleRow>(),
       Number<&IdleRow::host_wait_ns, IdleRow>(
           "host_wait_ns", "ns", "The next event's launch call began after the previous event had ended."),
       Number<&IdleRow::kernel_wait_ns, IdleRow>("kernel_wait_ns", "ns",
                                                 "Launched in time, gap below the threshold (30 us)."),
       Number<&IdleRow::other_ns, IdleRow>("other_ns", "ns", "The rest.")},
      [](const Source& source) { return std::span<const IdleRow>(source.result().Get<analysis::Idle>().rows); });
  AddRankTable<IdleHostRow>(
      tables, "idle_host", "What the host was doing while the whole device was idle", "idle",
      {Number<&IdleHostRow::runtime_ns, IdleHostRow>("runtime_ns", "ns", "In a call of the device runtime or driver."),
       Number<&IdleHostRow::data_loader_ns, IdleHostRow>("data_loader_ns", "ns", "In a data loader."),
       Number<&IdleHostRow::operator_ns, IdleHostRow>("operator_ns", "ns", "In an operator."),
       Number<&IdleHostRow::unknown_ns, IdleHostRow>("unknown_ns", "ns", "Nothing was recorded.")},
      [](const Source& source) { return std::span<const IdleHostRow>(source.result().Get<analysis::Idle>().host); });
}

void AddLaunch(TableList* tables) {
  AddRankTable<LaunchRow>(
      tables, "launch", "Launch calls of a rank paired with their device events by correlation id", "launch",
      {Number<&LaunchRow::launch_count, LaunchRow>("launch_count", "count",
                                                   "Device events with a launch call in the file."),
       Number<&LaunchRow::unlinked_count, LaunchRow>("unlinked_count", "count", "Device events without."),
       Number<&LaunchRow::total_delay_ns, LaunchRow>(
           "total_delay_ns", "ns", "Sum of launch delays: end of the call to the start on the device, at least 0."),
       Number<&LaunchRow::max_delay_ns, LaunchRow>("max_delay_ns", "ns", "Largest."),
       OptionalNumber<&LaunchRow::median_delay_ns, LaunchRow>("median_delay_ns", "ns", "Median.", "no linked event"),
       Number<&LaunchRow::long_delay_count, LaunchRow>("long_delay_count", "count", "Delays over 100 us."),
       Number<&LaunchRow::short_kernel_count, LaunchRow>("short_kernel_count", "count",
                                                         "Device events shorter than their launch call."),
       Number<&LaunchRow::long_call_count, LaunchRow>("long_call_count", "count", "Launch calls over 50 us.")},
      [](const Source& source) { return std::span<const LaunchRow>(source.result().Get<analysis::Launch>().rows); });
  AddRankTable<QueueRow>(
      tables, "queues", "Length of each stream's launch queue: launched and not yet started", "launch",
      {DeviceField<QueueRow>(), StreamField<QueueRow>(),
       Number<&QueueRow::change_count, QueueRow>("change_count", "count", "Changes of the length."),
       Number<&QueueRow::mean_length, QueueRow>("mean_length", "events", "Mean over changes."),
       Number<&QueueRow::max_length, QueueRow>("max_length", "events", "Largest."),
       Number<&QueueRow::full_ns, QueueRow>("full_ns", "ns", "Time with 1,024 or more: the host blocks.")},
      [](const Source& source) { return std::span<const QueueRow>(source.result().Get<analysis::Launch>().queues); });
}

void AddMemory(TableList* tables) {
  using Row = MemoryRow;
  AddRankTable<Row>(
      tables, "memory", "The caching allocator's counters for one device of one rank", "memory",
      {Number<&Row::device, Row>("device", "", "Device ordinal; -1 = CPU."),
       OptionalNumber<&Row::peak_allocated_bytes, Row>("peak_allocated_bytes", "bytes", "Largest `Total Allocated`.",
                                                       "not recorded"),
       OptionalNumber<&Row::peak_reserved_bytes, Row>("peak_reserved_bytes", "bytes", "Largest `Total Reserved`.",
                                                      "not recorded"),
       OptionalNumber<&Row::device_memory_bytes, Row>("device_memory_bytes", "bytes", "Capacity of the device.",
                                                      "not stated"),
       Number<&Row::allocation_count, Row>("allocation_count", "count", "Allocations."),
       Number<&Row::free_count, Row>("free_count", "count", "Frees."),
       Number<&Row::net_bytes, Row>("net_bytes", "bytes", "Allocated less freed over the window.")},
      [](const Source& source) { return std::span<const Row>(source.result().Get<analysis::Memory>().rows); });
}

}  // namespace

void AddDeviceTables(TableList* tables) {
  AddIdle(tables);
  AddLaunch(tables);
  AddMemory(tables);
}

}  // namespace lockstep::query
