#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "base/cell.h"
#include "model/run.h"

namespace lockstep::analysis {

// A table of a pass is declared once, in the pass's file. JSON, CSV, SQL, Python, the report page and their documents
// all come from the declaration.

enum class ColumnType : uint8_t { kInteger, kReal, kText, kBoolean, kObject };

/// Where a column is shown: a bit for each of JSON, CSV and SQL. Python has JSON's. Instants are on the aligned clock
/// in SQL and on the rank's own elsewhere.
enum class ColumnPlace : uint8_t {
  kOnlyInJson = 1,
  kOnlyInCsv = 2,
  kNotInSql = 3,
  kOnlyInSql = 4,
  kNotInCsv = 5,
  kNotInJson = 6,
  kEverywhere = 7,
};
/// `form`: one of the three alone.
constexpr bool IsIn(ColumnPlace place, ColumnPlace form) {
  return (static_cast<uint8_t>(place) & static_cast<uint8_t>(form)) != 0;
}

/// What cells are made of.
struct TableSource {
  const model::Run& run;
  const AnalysisResult& result;
};

/// A column, whatever its rows are.
struct TableColumn {
  std::string_view name;
  ColumnType type = ColumnType::kInteger;
  std::string_view unit;     ///< "ns", "ns, aligned clock", "bytes", "count", "0..1"; empty where it has none.
  std::string_view meaning;  ///< A sentence.
  std::string_view null;     ///< What null means; empty = never null.
  std::function<Cell(const TableSource&, const void* row)> value;
  ColumnPlace place = ColumnPlace::kEverywhere;
  bool is_key = false;                        ///< An integer that SQL looks rows up by.
  std::vector<std::string_view> values = {};  ///< Of a text that is one of these.
  bool is_list = false;                       ///< A cell is a list of what `type` says.
  std::vector<TableColumn> fields = {};       ///< Of an object; without values of their own.
};

/// In which order people read of tables; those of one order as the registry has their passes.
enum class TableOrder : uint8_t { kMeasured, kArrivals, kVerdicts };

/// Where a table stands among the others.
struct TablePlace {
  /// Where it lies in JSON's `data`, such as "wait_states.states[]"; without "[]" it is an object with a key for each
  /// row, its first column. Empty: `name`[]. A table inside an object of other tables is not a table in Python.
  std::string json_path = {};
  TableOrder order = TableOrder::kMeasured;
};

/// Rows of a table, whatever their type.
struct TableRows {
  const std::byte* first = nullptr;
  size_t count = 0;
  size_t row_bytes = 0;
  std::shared_ptr<const void> owner = {};  ///< Where they were made for the table and lie nowhere else.

  size_t size() const { return count; }
  const void* operator[](size_t row) const { return first + row * row_bytes; }
};

template <typename Row>
TableRows RowsOf(const std::vector<Row>& rows) {
  return {reinterpret_cast<const std::byte*>(rows.data()), rows.size(), sizeof(Row)};
}

struct Table {
  std::string_view name;      ///< Key under `data`, and the CSV file's name without ".csv".
  std::string_view sql_name;  ///< Table of `lockstep query`; empty: it has none of these rows.
  std::string_view sentence;  ///< What a row is, without a full stop.
  std::string_view pass;      ///< Empty: it is drawn from all that ran.
  std::vector<TableColumn> columns;
  std::function<TableRows(const TableSource&)> rows;
  TablePlace place = {};
  bool in_rank_order = false;  ///< Rows are sorted by `window`, then `rank`: its first columns, in the other order.
};

/// A column of rows of one type.
template <typename Row>
struct RowColumn {
  std::string_view name;
  ColumnType type = ColumnType::kInteger;
  std::string_view unit;
  std::string_view meaning;
  std::string_view null;
  std::function<Cell(const TableSource&, const Row&)> value;
  ColumnPlace place = ColumnPlace::kEverywhere;
  bool is_key = false;
  std::vector<std::string_view> values = {};
  bool is_list = false;
  std::vector<TableColumn> fields = {};

  /// The same column of a table, or of an object.
  TableColumn Of(decltype(TableColumn::value) table_value = nullptr) const {
    return {name, type, unit, meaning, null, std::move(table_value), place, is_key, values, is_list, fields};
  }
};

template <typename Row>
RowColumn<Row> In(ColumnPlace place, RowColumn<Row> column) {
  column.place = place;
  return column;
}

/// A column of CSV alone, where a list of JSON is one text: `text_of` joins it.
template <typename Row, typename TextOf>
RowColumn<Row> JoinedInCsv(std::string_view name, TextOf text_of) {
  return {name,
          ColumnType::kText,
          "",
          "",
          "",
          [text_of](const TableSource& source, const Row& row) { return Cell(text_of(source, row)); },
          ColumnPlace::kOnlyInCsv};
}

/// A table over rows that `rows_of` finds; with an empty pass it is there whatever ran.
template <typename Row>
Table DeclareTableOver(std::function<const std::vector<Row>&(const TableSource&)> rows_of, std::string_view pass,
                       std::string_view name, std::string_view sql_name, std::string_view sentence,
                       const std::vector<RowColumn<Row>>& columns, TablePlace place) {
  Table table{name, sql_name, sentence, pass, {}, nullptr, std::move(place)};
  if (table.place.json_path.empty()) table.place.json_path = std::string(name) + "[]";
  table.rows = [rows_of = std::move(rows_of)](const TableSource& source) { return RowsOf(rows_of(source)); };
  for (const RowColumn<Row>& column : columns) {
    table.columns.push_back(column.Of([value = column.value](const TableSource& source, const void* row) {
      return value(source, *static_cast<const Row*>(row));
    }));
  }
  return table;
}

/// A table over a vector of an output, such as &Kernels::rows.
template <typename Output, typename Row>
Table DeclareTable(std::string_view name, std::string_view sql_name, std::string_view sentence,
                   std::vector<Row> Output::*rows, const std::vector<RowColumn<Row>>& columns, TablePlace place = {}) {
  const auto rows_of = [rows](const TableSource& source) -> const std::vector<Row>& {
    return source.result.Get<Output>().*rows;
  };
  return DeclareTableOver<Row>(rows_of, Output::kPass, name, sql_name, sentence, columns, std::move(place));
}

namespace table_internal {

template <typename T>
struct MemberOf;
template <typename Class, typename T>
struct MemberOf<T Class::*> {
  using Row = Class;
  using Value = T;
};

template <typename T>
struct Unwrapped {
  using Type = T;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};

template <typename T>
constexpr ColumnType TypeOf() {
  if constexpr (std::is_same_v<T, bool>) return ColumnType::kBoolean;
  if constexpr (std::is_floating_point_v<T>) return ColumnType::kReal;
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, NameId>) return ColumnType::kText;
  return ColumnType::kInteger;
}

template <typename T>
Cell CellOf(const model::Run& run, const T& value) {
  if constexpr (std::is_same_v<T, NameId>) {
    return std::string(run.names[value]);
  } else if constexpr (requires { value.value; }) {  // base/ids.h
    return CellOf(run, value.value);
  } else if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T> || std::is_same_v<T, std::string>) {
    return Cell(value);
  } else if constexpr (std::is_unsigned_v<T>) {
    return Cell(uint64_t{value});
  } else {
    return Cell(int64_t{value});
  }
}
template <typename T>
Cell CellOf(const model::Run& run, const std::optional<T>& value) {
  return value ? CellOf(run, *value) : Cell();
}

template <typename T>
inline constexpr bool kMayBeAbsent = std::is_pointer_v<T> || !std::is_same_v<typename Unwrapped<T>::Type, T>;

/// What lies behind a path of members; null behind an absent optional.
template <auto kMember, auto... kRest, typename T>
Cell CellAt(const model::Run& run, const T& from, bool null_if_empty) {
  if constexpr (kMayBeAbsent<T>) {
    return from ? CellAt<kMember, kRest...>(run, *from, null_if_empty) : Cell();
  } else if constexpr (sizeof...(kRest) > 0) {
    return CellAt<kRest...>(run, from.*kMember, null_if_empty);
  } else {
    using Value = std::remove_cvref_t<decltype(from.*kMember)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      if (null_if_empty && (from.*kMember).empty()) return {};
    } else if constexpr (std::is_same_v<Value, NameId>) {
      if (null_if_empty && run.names[from.*kMember].empty()) return {};
    }
    return CellOf(run, from.*kMember);
  }
}

template <auto kMember, auto... kRest>
constexpr auto LastOf() {
  if constexpr (sizeof...(kRest) == 0) {
    return kMember;
  } else {
    return LastOf<kRest...>();
  }
}

}  // namespace table_internal

/// A column of a member as it is, such as Field<&KernelRow::count>("count", "count", "Events."), or of a member's
/// member: Field<&Row::duration, &Quantiles::p95_ns>(...). Its type is that member's; behind an absent optional it is
/// null, and so is an empty text where `null` says what null means.
template <auto kMember, auto... kRest>
auto Field(std::string_view name, std::string_view unit, std::string_view meaning, std::string_view null = "") {
  using Row = typename table_internal::MemberOf<decltype(kMember)>::Row;
  using Last = decltype(table_internal::LastOf<kMember, kRest...>());
  using Value = typename table_internal::Unwrapped<typename table_internal::MemberOf<Last>::Value>::Type;
  return RowColumn<Row>{name,
                        table_internal::TypeOf<Value>(),
                        unit,
                        meaning,
                        null,
                        [null_if_empty = !null.empty()](const TableSource& source, const Row& row) {
                          return table_internal::CellAt<kMember, kRest...>(source.run, row, null_if_empty);
                        }};
}

/// A column of an enumerator's name. `values`: all names that there are.
template <auto kMember, auto kNameOf>
auto NamedField(std::string_view name, std::string_view meaning, std::vector<std::string_view> values = {}) {
  using Row = typename table_internal::MemberOf<decltype(kMember)>::Row;
  RowColumn<Row> column{
      name, ColumnType::kText,
      "",   meaning,
      "",   [](const TableSource&, const Row& row) {
                          return Cell(std::string(kNameOf(row.*kMember))); }};
  column.values = std::move(values);
  return column;
}

/// Global rank of what lies at a rank index of the run; null without one.
inline Cell RankCell(const model::Run& run, std::optional<size_t> rank_index) {
  if (!rank_index) return std::monostate{};
  return Cell(int64_t{run.ranks[*rank_index].rank.value});
}
/// A column of the rank at a member that is a rank index.
template <auto kMember>
auto RankField(std::string_view name, std::string_view meaning, std::string_view null = "") {
  using Row = typename table_internal::MemberOf<decltype(kMember)>::Row;
  return RowColumn<Row>{
      name, ColumnType::kInteger,
      "",   meaning,
      null, [](const TableSource& source, const Row& row) {
                          return RankCell(source.run, row.*kMember); }};
}

/// A column of what `find` leads to from a row, a pointer; null where that is null.
template <typename Row, typename Item, typename Find>
RowColumn<Row> FieldAt(Find find, RowColumn<Item> of_item) {
  RowColumn<Row> column{of_item.name,
                        of_item.type,
                        of_item.unit,
                        of_item.meaning,
                        of_item.null,
                        [find, value = of_item.value](const TableSource& source, const Row& row) {
                          const Item* item = find(source, row);
                          return item == nullptr ? Cell() : value(source, *item);
                        },
                        of_item.place,
                        of_item.is_key};
  column.fields = std::move(of_item.fields);
  return column;
}

/// A column of lists: the values of all items of a row.
template <typename Row, typename Item, typename Items>
RowColumn<Row> ListField(Items items, RowColumn<Item> of_item) {
  RowColumn<Row> column{of_item.name,
                        of_item.type,
                        of_item.unit,
                        of_item.meaning,
                        of_item.null,
                        [items, value = of_item.value](const TableSource& source, const Row& row) {
                          NestedCell list;
                          for (const Item& item : items(row)) list.Add(value(source, item));
                          return Cell(std::move(list));
                        }};
  column.is_list = true;
  column.fields = std::move(of_item.fields);
  return column;
}
/// The same of a member that holds numbers, and of one that holds rank indices.
template <auto kMember>
auto ListField(std::string_view name, std::string_view unit, std::string_view meaning) {
  using Member = table_internal::MemberOf<decltype(kMember)>;
  using Item = typename Member::Value::value_type;
  return ListField<typename Member::Row>(std::mem_fn(kMember),
                                         RowColumn<Item>{name, table_internal::TypeOf<Item>(), unit, meaning, "",
                                                         [](const TableSource& source, const Item& item) {
                                                           return table_internal::CellOf(source.run, item);
                                                         }});
}
template <auto kMember>
auto RankListField(std::string_view name, std::string_view meaning) {
  return ListField<typename table_internal::MemberOf<decltype(kMember)>::Row>(
      std::mem_fn(kMember),
      RowColumn<size_t>{name, ColumnType::kInteger, "", meaning, "",
                        [](const TableSource& source, size_t rank_index) { return RankCell(source.run, rank_index); }});
}

/// A column of an object with these fields of the row.
template <typename Row>
RowColumn<Row> ObjectField(std::string_view name, std::string_view meaning, std::string_view null,
                           std::vector<RowColumn<Row>> fields) {
  RowColumn<Row> column{name, ColumnType::kObject, "", meaning, null, nullptr};
  for (const RowColumn<Row>& field : fields) column.fields.push_back(field.Of());
  column.value = [fields = std::move(fields)](const TableSource& source, const Row& row) {
    NestedCell object(false);
    for (const RowColumn<Row>& field : fields) object.Add(field.value(source, row), field.name);
    return Cell(std::move(object));
  };
  return column;
}

/// The columns of rows with `rank_index` and of those with `group`.
template <typename Row>
RowColumn<Row> RankColumn() {
  RowColumn<Row> column = RankField<&Row::rank_index>("rank", "Global rank of the process.");
  column.is_key = true;
  return column;
}
template <typename Row>
RowColumn<Row> WindowColumn() {
  return {
      "window",
      ColumnType::kInteger,
      "",
      "0 for the first trace of this rank in time, 1 for the next, and so on.",
      "",
      [](const TableSource& source, const Row& row) { return Cell(int64_t{source.run.ranks[row.rank_index].window}); },
      ColumnPlace::kEverywhere,
      true};
}
template <typename Row>
RowColumn<Row> GroupColumn() {
  return Field<&Row::group>("group_number", "", "Number of the group in `groups`.");
}

/// A table whose rows are in the order of the run's ranks; `rank` and `window` come first.
template <typename Output, typename Row>
Table DeclareRankTable(std::string_view name, std::string_view sql_name, std::string_view sentence,
                       std::vector<Row> Output::*rows, std::vector<RowColumn<Row>> columns) {
  columns.insert(columns.begin(), {RankColumn<Row>(), WindowColumn<Row>()});
  Table table = DeclareTable(name, sql_name, sentence, rows, columns);
  table.in_rank_order = true;
  return table;
}

}  // namespace lockstep::analysis
