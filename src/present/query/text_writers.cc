#include <fmt/format.h>

#include <map>

#include "base/cell.h"
#include "present/query/row_writer.h"
#include "present/report/csv_table.h"
#include "present/report/json_stream.h"
#include "present/report/utf8.h"

namespace lockstep::query {
namespace {

class CsvWriter : public RowWriter {
 public:
  explicit CsvWriter(std::ostream& out) : out_(out) {}

  void Begin(const std::vector<std::string>& columns) override {
    std::vector<Cell> header(columns.begin(), columns.end());
    Row(header);
  }
  void Row(const std::vector<Cell>& cells) override {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out_ << ',';
      std::visit([this](const auto& value) { Write(value); }, cells[i]);
    }
    out_ << "\r\n";
  }
  void End() override { out_.flush(); }
  bool closed() const override { return !out_.good(); }

 private:
  void Write(std::monostate) {}
  void Write(bool value) { out_ << (value ? '1' : '0'); }
  void Write(int64_t value) { out_ << value; }
  void Write(uint64_t value) { out_ << value; }
  void Write(double value) { out_ << fmt::format("{}", value); }
  void Write(const NestedCell& value) { Write(value.Text()); }
  // The empty text is no NULL.
  void Write(const std::string& value) { out_ << (value.empty() ? "\"\"" : report::CsvQuoted(value)); }

  std::ostream& out_;
};

class JsonWriter : public RowWriter {
 public:
  JsonWriter(std::ostream& out, bool lines, bool partial) : out_(out), lines_(lines), partial_(partial) {}

  void Begin(const std::vector<std::string>& columns) override {
    names_ = DistinctNames(columns);
    for (std::string& name : names_) name = report::ValidUtf8(name);
    if (lines_) return;
    report::JsonRow list;
    list.Key("").List(names_);
    const std::string_view object = list.Finish();  // {"":[...]}
    out_ << fmt::format(
        "{{\n  \"schema\": \"lockstep.query/1\",\n  \"partial\": {},\n  \"columns\": {},\n  \"rows\": [", partial_,
        object.substr(4, object.size() - 5));
  }
  void Row(const std::vector<Cell>& cells) override {
    report::JsonRow row;
    for (size_t i = 0; i < cells.size(); ++i) row.Key(names_[i]).Value(cells[i]);
    if (!lines_) out_ << (any_ ? ",\n    " : "\n    ");
    any_ = true;
    out_ << row.Finish();
    if (lines_) out_ << '\n';
  }
  void End() override {
    if (!lines_) out_ << (any_ ? "\n  ]\n}\n" : "]\n}\n");
    out_.flush();
  }
  bool closed() const override { return !out_.good(); }

 private:
  std::ostream& out_;
  const bool lines_;
  const bool partial_;
  std::vector<std::string> names_;
  bool any_ = false;
};

}  // namespace

std::unique_ptr<RowWriter> MakeCsvWriter(std::ostream& out) { return std::make_unique<CsvWriter>(out); }

std::unique_ptr<RowWriter> MakeJsonWriter(std::ostream& out, bool partial) {
  return std::make_unique<JsonWriter>(out, false, partial);
}

std::unique_ptr<RowWriter> MakeNdjsonWriter(std::ostream& out) {
  return std::make_unique<JsonWriter>(out, true, false);
}

std::vector<std::string> DistinctNames(const std::vector<std::string>& names) {
  std::vector<std::string> distinct;
  std::map<std::string, int> seen;
  for (const std::string& name : names) {
    std::string unique = name;
    while (seen.count(unique) != 0) unique = fmt::format("{}_{}", name, ++seen[name]);
    seen[unique] = std::max(seen[unique], 1);
    distinct.push_back(unique);
  }
  return distinct;
}

}  // namespace lockstep::query
