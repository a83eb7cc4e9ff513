#include <memory>

#include "query/tables.h"
#include "report/declared_tables.h"

namespace lockstep::query {
namespace {

using report::Cell;
using report::DeclaredColumn;
using report::DeclaredTable;
using report::DeclaredType;

ColumnType TypeOf(DeclaredType type) {
  switch (type) {
    case DeclaredType::kInteger: return ColumnType::kInteger;
    case DeclaredType::kReal: return ColumnType::kReal;
    case DeclaredType::kText: return ColumnType::kText;
    case DeclaredType::kBoolean: return ColumnType::kBoolean;
    case DeclaredType::kIntegers: return ColumnType::kJson;
  }
  return ColumnType::kText;
}

struct CellWriter {
  CellOut& out;
  void operator()(std::monostate) const { out.Null(); }
  void operator()(bool value) const { out.Bool(value); }
  void operator()(int64_t value) const { out.Int(value); }
  void operator()(uint64_t value) const { out.Count(value); }
  void operator()(double value) const { out.Real(value); }
  void operator()(const std::string& value) const { out.Copy(value); }
  void operator()(const report::IntegerList& value) const { out.Copy(value.Text()); }
};

/// A table that is declared for JSON and CSV as well (report/declared_tables.h). Its rows are few: scans see them all.
class DeclaredQueryTable : public Table {
 public:
  explicit DeclaredQueryTable(const DeclaredTable& declared)
      : declared_(declared), spec_{declared.sql_name, declared.sentence, declared.pass, {}} {
    for (const DeclaredColumn& column : declared.columns) {
      spec_.columns.push_back({column.name, TypeOf(column.type), column.unit, column.meaning, column.null});
    }
  }

  const TableSpec& spec() const override { return spec_; }
  bool CanUse(const Constraint&) const override { return false; }
  Estimate EstimateOf(const Source* source, std::span<const Constraint>) const override {
    const double rows = source == nullptr ? 1000.0 : static_cast<double>(declared_.row_count(source->result()));
    return {rows, rows};
  }
  bool IsSorted(const Source*, std::span<const Constraint>, int) const override { return false; }
  std::unique_ptr<Cursor> Open(const Source& source) const override {
    return std::make_unique<Scan>(declared_, source);
  }

 private:
  class Scan : public Cursor {
   public:
    Scan(const DeclaredTable& declared, const Source& source)
        : declared_(declared), source_(source), end_(declared.row_count(source.result())) {}
    void Filter(std::span<const BoundConstraint>) override { at_ = 0; }
    bool done() const override { return at_ >= end_; }
    void Next() override {
      if ((++at_ & 0xfff) == 0 && source_.stop().Check()) at_ = end_;
    }
    void Column(int column, CellOut& out) const override {
      const DeclaredColumn& declared = declared_.columns[static_cast<size_t>(column)];
      std::visit(CellWriter{out}, declared.value(source_.run(), source_.result(), at_));
    }
    int64_t row_id() const override { return static_cast<int64_t>(at_); }

   private:
    const DeclaredTable& declared_;
    const Source& source_;
    size_t at_ = 0;
    size_t end_;
  };

  const DeclaredTable& declared_;
  TableSpec spec_;
};

}  // namespace

void AddDeclaredTables(TableList* tables) {
  for (const DeclaredTable& declared : report::DeclaredTables()) {
    if (!declared.sql_name.empty()) tables->push_back(std::make_unique<DeclaredQueryTable>(declared));
  }
}

}  // namespace lockstep::query
