#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/cell.h"

namespace lockstep::query {

/// Takes the rows of one result, as they come. Texts may hold any bytes.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  virtual void Begin(const std::vector<std::string>& columns) = 0;
  virtual void Row(const std::vector<Cell>& cells) = 0;
  /// Only after the last row of a query that did not fail.
  virtual void End() = 0;
  /// Whether the reader has gone, so that the query may end.
  virtual bool closed() const { return false; }
};

struct TableStyle {
  int width = 0;  ///< Columns of the terminal; 0 = no limit.
  bool colour = false;
  bool unicode = true;
};

/// Columns as wide as their first 1,000 rows need, numbers to the right; texts are shortened until it fits, and where
/// that is not enough each row becomes a block of `column  value` lines. NULL is the word, dim where there is colour.
/// Control characters become '?'. Holds back 1,000 rows.
std::unique_ptr<RowWriter> MakeTableWriter(std::ostream& out, const TableStyle& style);
/// RFC 4180: a header, then the rows, CR LF. NULL is an empty field, the empty text is "".
std::unique_ptr<RowWriter> MakeCsvWriter(std::ostream& out);
/// One object, `lockstep.query/1`: columns, then rows as objects. Columns of one name get _2, _3, ... behind it.
std::unique_ptr<RowWriter> MakeJsonWriter(std::ostream& out, bool partial);
/// One object a line.
std::unique_ptr<RowWriter> MakeNdjsonWriter(std::ostream& out);

/// The names with _2, _3, ... behind those that were there before.
std::vector<std::string> DistinctNames(const std::vector<std::string>& names);

}  // namespace lockstep::query
