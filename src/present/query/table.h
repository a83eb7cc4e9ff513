#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "present/query/cell_out.h"
#include "present/query/column_spec.h"
#include "present/query/source.h"

namespace lockstep::query {

/// `column op ?` of a WHERE clause.
struct Constraint {
  int column = 0;
  unsigned char op = 0;  ///< SQLITE_INDEX_CONSTRAINT_EQ, _GT, _GE, _LT, _LE.
};

/// A constraint with the value it compares with. What a cursor cannot use (a text against a number) it may ignore:
/// SQLite checks every row again, so a cursor may return too much and never too little.
struct BoundConstraint {
  Constraint constraint;
  sqlite3_value* value = nullptr;

  bool is_null() const { return sqlite3_value_type(value) == SQLITE_NULL; }
  /// The whole number it equals, if it is one.
  std::optional<int64_t> integer() const;
  /// Largest whole number not above it, smallest not below it; absent for what is not a number.
  std::optional<int64_t> floor() const;
  std::optional<int64_t> ceil() const;
  std::optional<std::string_view> text() const;
};

/// What a scan under some constraints is expected to cost and yield; units of rows visited.
struct Estimate {
  double cost = 0;
  double rows = 0;
};

/// One scan. Rowids are unique within the table.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// Begins, at the first row.
  virtual void Filter(std::span<const BoundConstraint> constraints) = 0;
  virtual bool done() const = 0;
  virtual void Next() = 0;
  virtual void Column(int column, CellOut& out) const = 0;
  virtual int64_t row_id() const = 0;
};

/// A table that SQL can name. Stateless: what it reads is in the Source, which may be absent while a statement is only
/// looked at before the traces are read.
class Table {
 public:
  virtual ~Table() = default;
  virtual const TableSpec& spec() const = 0;
  /// Whether Filter makes use of it. Texts are compared byte by byte there; other collations are not asked for.
  virtual bool CanUse(const Constraint& constraint) const = 0;
  virtual Estimate EstimateOf(const Source* source, std::span<const Constraint> constraints) const = 0;
  /// Whether rows under these constraints come in ascending order of the column.
  virtual bool IsSorted(const Source* source, std::span<const Constraint> constraints, int column) const = 0;
  virtual std::unique_ptr<Cursor> Open(const Source& source) const = 0;
};

}  // namespace lockstep::query
