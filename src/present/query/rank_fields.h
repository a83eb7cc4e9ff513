#pragma once

#include <cstdint>
#include <optional>

#include "present/query/row_table.h"

namespace lockstep::query {

/// `rank` and `window` of rows that have a rank_index; every such table begins with them.
template <typename Row>
Field<Row> RankField() {
  return {{"rank", ColumnType::kInteger, "", "Global rank of the process.", ""},
          [](const Source& source, const Row& row, CellOut& out) { out.Int(source.rank(row.rank_index).rank.value); },
          [](const Source& source, const Row& row) -> std::optional<int64_t> {
            return source.rank(row.rank_index).rank.value;
          }};
}

template <typename Row>
Field<Row> WindowField() {
  return {{"window", ColumnType::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.",
           ""},
          [](const Source& source, const Row& row, CellOut& out) { out.Int(source.rank(row.rank_index).window); },
          [](const Source& source, const Row& row) -> std::optional<int64_t> {
            return source.rank(row.rank_index).window;
          }};
}

/// Places of the two in a table that begins with them and whose rows are in the order of ranks: for Parts::sorted_by.
inline constexpr int kRankColumn = 0;
inline constexpr int kWindowColumn = 1;

}  // namespace lockstep::query
