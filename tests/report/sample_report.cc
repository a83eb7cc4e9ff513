// Prints the report of the run made by hand (report/testing/sample_run.h), for tests that look at it from outside:
//   sample_report tables | json | csv FOLDER | text [ascii] [colour] [width=N] [top=N] [rank=N] [step=N] [SECTION...]
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "analysis/pass_registry.h"
#include "analysis/table.h"
#include "present/report/json_stream.h"
#include "present/report/report.h"
#include "present/report/testing/sample_run.h"

namespace {

namespace analysis = lockstep::analysis;

const char* TypeName(analysis::ColumnType type) {
  switch (type) {
    case analysis::ColumnType::kInteger: return "integer";
    case analysis::ColumnType::kReal: return "number";
    case analysis::ColumnType::kText: return "string";
    case analysis::ColumnType::kBoolean: return "boolean";
    case analysis::ColumnType::kObject: return "object";
  }
  return "string";
}

void PrintColumns(const std::vector<analysis::TableColumn>& columns, lockstep::report::JsonRow* row) {
  row->StartArray();
  for (const analysis::TableColumn& column : columns) {
    if (!IsIn(column.place, analysis::ColumnPlace::kOnlyInJson)) continue;
    row->StartObject().Key("name").Text(column.name).Key("type").Text(TypeName(column.type));
    row->Key("is_list").Bool(column.is_list).Key("unit").Text(column.unit).Key("meaning").Text(column.meaning);
    row->Key("null").Text(column.null).Key("values").StartArray();
    for (const std::string_view value : column.values) row->Text(value);
    row->EndArray().Key("fields");
    PrintColumns(column.fields, row);
    row->EndObject();
  }
  row->EndArray();
}

/// The tables that passes declare, as JSON shows them: an object a line.
void PrintTables() {
  for (const analysis::Table* table : analysis::Tables()) {
    lockstep::report::JsonRow row;
    row.Key("name").Text(table->name).Key("sentence").Text(table->sentence).Key("pass").Text(table->pass);
    row.Key("path").Text(table->place.json_path).Key("columns");
    PrintColumns(table->columns, &row);
    std::cout << row.Finish() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  const lockstep::report::testing::Sample sample = lockstep::report::testing::MakeSample();
  const std::string what = argc > 1 ? argv[1] : "text";
  if (what == "tables") {
    PrintTables();
    return 0;
  }
  if (what == "json") {
    lockstep::report::WriteJson(sample.run, sample.result, true, std::cout);
    return 0;
  }
  if (what == "csv" && argc > 2) return lockstep::report::WriteCsv(sample.run, sample.result, argv[2]) ? 0 : 1;
  lockstep::report::TextOptions options;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const long number = std::atol(word.substr(word.find('=') + 1).c_str());
    if (word == "ascii")
      options.unicode = false;
    else if (word == "colour")
      options.colour = true;
    else if (word.starts_with("width="))
      options.width = static_cast<int>(number);
    else if (word.starts_with("top="))
      options.top = static_cast<size_t>(number);
    else if (word.starts_with("rank="))
      options.rank = static_cast<int32_t>(number);
    else if (word.starts_with("step="))
      options.step = number;
    else
      options.sections.push_back(word);
  }
  lockstep::report::WriteText(sample.run, sample.result, options, std::cout);
  return 0;
}
