#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "analysis/analysis_result.h"
#include "present/query/database.h"
#include "present/query/tables.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {

/// A job that is asked one query after another. Traces are read once, at the first query that is sound; passes run when
/// a query first names a table of theirs.
class QuerySession {
 public:
  QuerySession(RunInput& input, std::vector<std::string> paths, Console& console, bool quiet)
      : input_(input), paths_(std::move(paths)), console_(console), quiet_(quiet) {}

  Status Open(const query::QueryLimits& limits);

  /// What is wrong with the SQL, without reading anything; no value = nothing.
  std::optional<query::QueryError> Check(std::string_view sql);
  /// Reads the traces if they have not been read, and runs the passes that these tables need.
  Status Prepare(const std::set<std::string>& tables);
  /// After Check and Prepare.
  tl::expected<query::QuerySummary, query::QueryError> Run(std::string_view sql, query::RowWriter& writer);

  /// Tables that the SQL of the last Check reads.
  const std::set<std::string>& tables() const { return tables_; }
  bool partial() const { return partial_; }
  size_t trace_count() const { return run_.ranks.size(); }
  query::StopSign& stop() { return database_->stop(); }

 private:
  Status Read();

  RunInput& input_;
  const std::vector<std::string> paths_;
  Console& console_;
  const bool quiet_;

  std::unique_ptr<query::Database> database_;
  std::set<std::string> tables_;
  bool is_read_ = false;
  model::Run run_;
  model::Ledger ledger_before_;  // as reading left it; each analysis adds its own
  query::PassesNeeded passes_;
  bool is_analysed_ = false;
  analysis::AnalysisResult result_;
  std::unique_ptr<query::Source> source_;
  bool partial_ = false;
};

}  // namespace lockstep::cli
