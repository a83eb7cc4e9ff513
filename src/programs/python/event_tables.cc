#include "programs/python/event_tables.h"

#include <type_traits>
#include <utility>

#include "programs/python/column_builder.h"

namespace lockstep::python {
namespace {

constexpr const char* kOwnClock = "ns, the rank's own clock";

// Codes are looked at as the integers they are.
static_assert(sizeof(NameId) == sizeof(int32_t) && std::is_standard_layout_v<NameId>);
static_assert(sizeof(model::Category) == sizeof(int8_t));

template <typename T>
Field View(std::string name, std::string unit, Kind kind, const lockstep::Column<T>& column,
           std::shared_ptr<const void> owner, std::shared_ptr<const Array> dictionary = nullptr) {
  auto array = std::make_shared<Array>();
  array->kind = kind;
  array->length = column.size();
  array->owner = std::move(owner);
  array->data = column.data();
  array->dictionary = std::move(dictionary);
  return {.name = std::move(name), .unit = std::move(unit), .nullable = false, .values = std::move(array)};
}

std::shared_ptr<const Array> CategoryDictionary() {
  static const std::shared_ptr<const Array> kCategories = [] {
    ColumnBuilder names({"category", Kind::kText});
    for (int i = 0; i < model::kCategoryCount; ++i) names.Text(model::CategoryName(static_cast<model::Category>(i)));
    return std::move(names).Finish().values;
  }();
  return kCategories;
}

}  // namespace

std::shared_ptr<const Array> NameDictionary(const model::NameTable& names) {
  ColumnBuilder texts({"name", Kind::kText});
  for (uint32_t id = 0; id < names.size(); ++id) texts.Text(names[NameId{id}]);
  return std::move(texts).Finish().values;
}

Table EventTable(const model::Track& track, std::shared_ptr<const Array> names, std::shared_ptr<const void> owner) {
  const model::EventColumns& events = track.events;
  Table table;
  table.name = "events";
  table.row_count = events.size();
  table.columns.push_back(View("start_ns", kOwnClock, Kind::kInt64, events.start_ns, owner));
  table.columns.push_back(View("duration_ns", "ns", Kind::kInt64, events.duration_ns, owner));
  table.columns.push_back(View("name", "", Kind::kCategory32, events.name, owner, std::move(names)));
  table.columns.push_back(View("category", "", Kind::kCategory8, events.category, owner, CategoryDictionary()));
  if (events.correlation.size() == events.size() && !events.empty()) {
    table.columns.push_back(View("correlation", "", Kind::kUint32, events.correlation, owner));
  }
  return table;
}

Table MemoryEventTable(const model::MemoryColumns& memory, std::shared_ptr<const void> owner) {
  Table table;
  table.name = "memory_events";
  table.row_count = memory.size();
  table.columns.push_back(View("time_ns", kOwnClock, Kind::kInt64, memory.time_ns, owner));
  table.columns.push_back(View("change_bytes", "bytes", Kind::kInt64, memory.change_bytes, owner));
  table.columns.push_back(View("allocated_bytes", "bytes", Kind::kInt64, memory.allocated_bytes, owner));
  table.columns.push_back(View("reserved_bytes", "bytes", Kind::kInt64, memory.reserved_bytes, owner));
  table.columns.push_back(View("device", "", Kind::kInt16, memory.device, owner));
  return table;
}

}  // namespace lockstep::python
