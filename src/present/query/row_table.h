#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "present/query/table.h"

namespace lockstep::query {

/// A column of a RowTable: what it is, and how a row gives it.
template <typename Row>
struct Field {
  using Get = std::function<void(const Source&, const Row&, CellOut&)>;
  using Key = std::function<std::optional<int64_t>(const Source&, const Row&)>;

  Field(ColumnSpec column, Get get_value, Key key_value = nullptr)
      : spec(column), get(std::move(get_value)), key(std::move(key_value)) {}

  ColumnSpec spec;
  Get get;
  Key key;  ///< The value as a number, for `column = ?`; null where scans do not look at it. Must agree with `get`.
};

/// Places of `rank` and `window` in a table that begins with them and whose rows are in the order of ranks: for
/// Parts::sorted_by.
inline constexpr int kRankColumn = 0;
inline constexpr int kWindowColumn = 1;

/// A table over an array of rows that is there anyway (a pass's result). `column = ?` on columns with a key is decided
/// here; where the rows are sorted by such columns, by binary search. `Rows` has size() and operator[].
template <typename Row, typename Rows = std::span<const Row>>
class RowTable : public Table {
 public:
  struct Parts {
    std::string_view name;
    std::string_view sentence;
    std::string_view pass;
    std::vector<Field<Row>> fields;
    std::function<Rows(const Source&)> rows;
    /// Columns with keys by which rows are sorted, the first one first.
    std::vector<int> sorted_by = {};
  };

  explicit RowTable(Parts parts) : parts_(std::move(parts)) {
    spec_ = {parts_.name, parts_.sentence, parts_.pass, {}};
    for (const Field<Row>& field : parts_.fields) spec_.columns.push_back(field.spec);
  }

  const TableSpec& spec() const override { return spec_; }

  bool CanUse(const Constraint& constraint) const override {
    return constraint.op == SQLITE_INDEX_CONSTRAINT_EQ && FieldOf(constraint.column).key != nullptr;
  }

  Estimate EstimateOf(const Source* source, std::span<const Constraint> constraints) const override {
    const double count = source == nullptr ? 10000.0 : static_cast<double>(parts_.rows(*source).size());
    double rows = count;
    double visited = count;
    for (const Constraint& constraint : constraints) {
      rows /= 8;
      if (!parts_.sorted_by.empty() && Contains(parts_.sorted_by, constraint.column)) visited /= 8;
    }
    return {visited + rows, rows};
  }

  bool IsSorted(const Source* source, std::span<const Constraint>, int column) const override {
    for (const int sorted : parts_.sorted_by) {
      if (sorted == column) return true;
      // Behind a column that has one value in all rows, the next one orders them.
      if (source == nullptr) return false;
      const Rows rows = parts_.rows(*source);
      const auto& key = FieldOf(sorted).key;
      if (rows.size() > 0 && key(*source, rows[0]) != key(*source, rows[rows.size() - 1])) return false;
    }
    return false;
  }

  std::unique_ptr<Cursor> Open(const Source& source) const override {
    return std::make_unique<Scan>(*this, source, parts_.rows(source));
  }

 private:
  static bool Contains(const std::vector<int>& columns, int column) {
    return std::find(columns.begin(), columns.end(), column) != columns.end();
  }

  const Field<Row>& FieldOf(int column) const { return parts_.fields[static_cast<size_t>(column)]; }

  class Scan : public Cursor {
   public:
    Scan(const RowTable& table, const Source& source, Rows rows) : table_(table), source_(source), rows_(rows) {}

    void Filter(std::span<const BoundConstraint> constraints) override {
      wanted_.clear();
      at_ = 0;
      end_ = rows_.size();
      for (const BoundConstraint& bound : constraints) {
        if (bound.is_null()) end_ = 0;  // nothing equals NULL
        if (const auto value = bound.integer()) wanted_.emplace_back(bound.constraint.column, *value);
      }
      Narrow();
      SkipUnwanted();
    }

    bool done() const override { return at_ >= end_; }

    void Next() override {
      ++at_;
      SkipUnwanted();
    }

    void Column(int column, CellOut& out) const override { table_.FieldOf(column).get(source_, rows_[at_], out); }

    int64_t row_id() const override { return static_cast<int64_t>(at_); }

   private:
    std::optional<int64_t> KeyOf(int column, size_t row) const {
      return table_.FieldOf(column).key(source_, rows_[row]);
    }

    // Goes through the columns by which rows are sorted for as long as one of them has one value over all rows left.
    void Narrow() {
      for (const int column : table_.parts_.sorted_by) {
        if (at_ >= end_) return;
        const auto wanted =
            std::find_if(wanted_.begin(), wanted_.end(), [&](const auto& w) { return w.first == column; });
        if (wanted == wanted_.end()) {
          if (KeyOf(column, at_) != KeyOf(column, end_ - 1)) return;
          continue;
        }
        const auto partition = [&](auto before) {
          size_t low = at_;
          size_t high = end_;
          while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (before(KeyOf(column, middle))) {
              low = middle + 1;
            } else {
              high = middle;
            }
          }
          return low;
        };
        const int64_t value = wanted->second;
        const size_t first = partition([value](std::optional<int64_t> key) { return key < value; });
        end_ = partition([value](std::optional<int64_t> key) { return key <= value; });
        at_ = first;
      }
    }

    void SkipUnwanted() {
      while (at_ < end_ && !wanted_.empty() && !IsWanted()) {
        ++at_;
        if ((at_ & 0xfff) == 0 && source_.stop().Check()) at_ = end_;
      }
    }

    bool IsWanted() const {
      return std::all_of(wanted_.begin(), wanted_.end(),
                         [this](const auto& w) { return KeyOf(w.first, at_) == w.second; });
    }

    const RowTable& table_;
    const Source& source_;
    Rows rows_;
    std::vector<std::pair<int, int64_t>> wanted_;  // column, value
    size_t at_ = 0;
    size_t end_ = 0;
  };

  Parts parts_;
  TableSpec spec_;
};

}  // namespace lockstep::query
