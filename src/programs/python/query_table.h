#pragma once

#include <string>
#include <vector>

#include "base/cell.h"
#include "present/query/row_writer.h"
#include "programs/python/array.h"

namespace lockstep::python {

/// Collects the rows of a query as columns. SQL's values have types and its columns do not, so a column is what its
/// values are: int64 where all are whole numbers, float64 where some are not, else text (numbers among texts as texts);
/// a column without any value is text. It can hold nulls where some value is NULL. The unit is what the name ends in
/// (`_ns`,
/// `_bytes`, `_bytes_per_s`, `_ratio`, `_count`); of two columns of one name the second is called name_2.
class QueryTable : public query::RowWriter {
 public:
  void Begin(const std::vector<std::string>& columns) override;
  void Row(const std::vector<Cell>& cells) override;
  void End() override {}

  /// Nothing may be added afterwards.
  Table Finish() &&;

 private:
  struct Values {
    std::string name;
    std::vector<Cell> cells = {};
    bool has_null = false;
    bool has_integer = false;
    bool has_real = false;
    bool has_text = false;
  };
  std::vector<Values> columns_;
};

}  // namespace lockstep::python
