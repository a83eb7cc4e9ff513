// SQL over a small run: any bytes. Nothing may crash or go on for ever, errors can be shown, every writer copes with
// the rows, and the connection answers afterwards as before.
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "base/cell.h"
#include "fuzz.h"
#include "present/query/database.h"
#include "present/query/query_error.h"
#include "present/query/row_writer.h"
#include "present/query/tables.h"
#include "present/query/testing/asked_run.h"
#include "present/report/utf8.h"

namespace {

using namespace lockstep::query;

// Hands every row to one of the writers, and stops after some.
class SomeRows : public RowWriter {
 public:
  explicit SomeRows(std::unique_ptr<RowWriter> writer) : writer_(std::move(writer)) {}
  void Begin(const std::vector<std::string>& columns) override {
    writer_->Begin(columns);
    column_count_ = columns.size();
  }
  void Row(const std::vector<lockstep::Cell>& cells) override {
    FUZZ_CHECK(cells.size() == column_count_);
    writer_->Row(cells);
    ++row_count_;
  }
  void End() override { writer_->End(); }
  bool closed() const override { return row_count_ >= 1200; }

 private:
  std::unique_ptr<RowWriter> writer_;
  size_t column_count_ = 0;
  size_t row_count_ = 0;
};

std::unique_ptr<RowWriter> Writer(size_t choice, std::ostream& out) {
  switch (choice % 5) {
    case 0: return MakeCsvWriter(out);
    case 1: return MakeJsonWriter(out, false);
    case 2: return MakeNdjsonWriter(out);
    case 3: return MakeTableWriter(out, {.width = 40, .colour = true, .unicode = true});
    default: return MakeTableWriter(out, {});
  }
}

void CheckError(const QueryError& error, std::string_view sql) {
  FUZZ_CHECK(!error.message.empty());
  FUZZ_CHECK(error.kind != QueryError::Kind::kInternal);
  FUZZ_CHECK(error.unknown_name.empty() || !error.known.empty());
  if (!error.offset) return;
  FUZZ_CHECK(*error.offset <= sql.size());
  const std::string marked = MarkedLine(sql, *error.offset);
  FUZZ_CHECK(lockstep::report::ValidUtf8(marked) == marked);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static lockstep::query::testing::AskedRun asked(lockstep::query::testing::RandomRun(1, 4), [] {
    QueryLimits limits;
    limits.timeout = std::chrono::milliseconds(40);
    limits.memory_bytes = 16 << 20;
    return limits;
  }());
  static const std::string event_count = asked.AskOne("SELECT count(*) FROM events");
  const std::string_view sql(reinterpret_cast<const char*>(data), size);

  const auto tables = asked.database().Inspect(sql);
  if (!tables) {
    CheckError(tables.error(), sql);
  } else {
    for (const std::string& table : *tables) FUZZ_CHECK(FindTable(table) != nullptr);
    std::ostringstream out;
    SomeRows writer(Writer(size, out));
    const auto summary = asked.database().Run(sql, writer);
    if (!summary) CheckError(summary.error(), sql);
    // Table and JSON texts are for terminals and parsers.
    if (summary) FUZZ_CHECK(lockstep::report::ValidUtf8(out.str()) == out.str());
  }
  FUZZ_CHECK(asked.AskOne("SELECT count(*) FROM events") == event_count);
  return 0;
}
