#pragma once

#include <cstdint>
#include <functional>
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

enum class ColumnType : uint8_t { kInteger, kReal, kText, kBoolean, kIntegers };

/// Where a column is shown. Instants are on the aligned clock in SQL and on the rank's own elsewhere.
enum class ColumnPlace : uint8_t { kEverywhere, kOnlyInSql, kNotInSql };

/// A column, whatever its rows are.
struct TableColumn {
  std::string_view name;
  ColumnType type = ColumnType::kInteger;
  std::string_view unit;     ///< "ns", "ns, aligned clock", "bytes", "count", "0..1"; empty where it has none.
  std::string_view meaning;  ///< A sentence.
  std::string_view null;     ///< What null means; empty = never null.
  std::function<Cell(const model::Run&, const AnalysisResult&, size_t row)> value;
  ColumnPlace place = ColumnPlace::kEverywhere;
  bool is_key = false;                        ///< An integer that SQL looks rows up by.
  std::vector<std::string_view> values = {};  ///< Of a text that is one of these.
};

struct Table {
  std::string_view name;      ///< Key under `data`, and the CSV file's name without ".csv".
  std::string_view sql_name;  ///< Table of `lockstep query`; empty: of `lockstep analyze` alone, by an option of it.
  std::string_view sentence;  ///< What a row is, without a full stop.
  std::string_view pass;
  std::vector<TableColumn> columns;
  std::function<size_t(const AnalysisResult&)> row_count;
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
  std::function<Cell(const model::Run&, const Row&)> value;
  ColumnPlace place = ColumnPlace::kEverywhere;
  bool is_key = false;
  std::vector<std::string_view> values = {};
};

/// A table over a vector of an output, such as &Kernels::rows.
template <typename Output, typename Row>
Table DeclareTable(std::string_view name, std::string_view sql_name, std::string_view sentence,
                   std::vector<Row> Output::*rows, std::vector<RowColumn<Row>> columns) {
  Table table{name,     sql_name,
              sentence, Output::kPass,
              {},       [rows](const AnalysisResult& result) {
                return (result.Get<Output>().*rows).size(); }};
  for (RowColumn<Row>& column : columns) {
    table.columns.push_back(
        {column.name, column.type, column.unit, column.meaning, column.null,
         [rows, value = std::move(column.value)](const model::Run& run, const AnalysisResult& result, size_t row) {
           return value(run, (result.Get<Output>().*rows)[row]);
         },
         column.place, column.is_key, std::move(column.values)});
  }
  return table;
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
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(from.*kMember)>, std::string>) {
      if (null_if_empty && (from.*kMember).empty()) return {};
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
                        [null_if_empty = !null.empty()](const model::Run& run, const Row& row) {
                          return table_internal::CellAt<kMember, kRest...>(run, row, null_if_empty);
                        }};
}

/// A column of an enumerator's name. `values`: all names that there are.
template <auto kMember, auto kNameOf>
auto NamedField(std::string_view name, std::string_view meaning, std::vector<std::string_view> values = {}) {
  using Row = typename table_internal::MemberOf<decltype(kMember)>::Row;
  RowColumn<Row> column{
      name, ColumnType::kText,
      "",   meaning,
      "",   [](const model::Run&, const Row& row) {
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
  return RowColumn<Row>{name, ColumnType::kInteger,
                        "",   meaning,
                        null, [](const model::Run& run, const Row& row) {
                          return RankCell(run, row.*kMember); }};
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
  return {"window",
          ColumnType::kInteger,
          "",
          "0 for the first trace of this rank in time, 1 for the next, and so on.",
          "",
          [](const model::Run& run, const Row& row) { return Cell(int64_t{run.ranks[row.rank_index].window}); },
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
  Table table = DeclareTable(name, sql_name, sentence, rows, std::move(columns));
  table.in_rank_order = true;
  return table;
}

}  // namespace lockstep::analysis
