#include "programs/cli/query/query_session.h"

#include <algorithm>
#include <utility>

namespace lockstep::cli {

Status QuerySession::Open(const query::QueryLimits& limits) {
  ASSIGN_OR_RETURN(database_, query::Database::Open(limits));
  return {};
}

std::optional<query::QueryError> QuerySession::Check(std::string_view sql) {
  auto tables = database_->Inspect(sql);
  if (!tables) return std::move(tables).error();
  tables_ = std::move(*tables);
  return std::nullopt;
}

Status QuerySession::Read() {
  if (is_read_) return {};
  ASSIGN_OR_RETURN(run_, input_.Ingest(paths_, console_, quiet_));
  ledger_before_ = run_.ledger;
  is_read_ = true;
  return {};
}

Status QuerySession::Prepare(const std::set<std::string>& tables) {
  RETURN_IF_ERROR(Read());
  query::PassesNeeded needed = query::PassesFor({tables.begin(), tables.end()});
  const auto has = [this](const std::string& pass) { return passes_.all || result_.Has(pass); };
  if (is_analysed_ && (passes_.all || !needed.all) && std::all_of(needed.names.begin(), needed.names.end(), has))
    return {};

  passes_.all = passes_.all || needed.all;
  for (std::string& name : needed.names) {
    if (std::find(passes_.names.begin(), passes_.names.end(), name) == passes_.names.end())
      passes_.names.push_back(std::move(name));
  }
  std::vector<std::string> only;
  if (!passes_.all) {
    only = passes_.names;
    // An empty list would mean all. Clocks are aligned in any case; of the passes this is the cheapest.
    if (only.empty()) only.emplace_back("memory");
  }
  database_->SetSource(nullptr);
  source_.reset();
  run_.ledger = ledger_before_;
  for (model::RankTrace& trace : run_.ranks) trace.clock = {};
  ASSIGN_OR_RETURN(result_, input_.Analyze(&run_, only));
  is_analysed_ = true;
  partial_ = IsPartial(run_);
  source_ = std::make_unique<query::Source>(run_, result_, input_.analysis(), &database_->stop());
  database_->SetSource(source_.get());
  return {};
}

tl::expected<query::QuerySummary, query::QueryError> QuerySession::Run(std::string_view sql, query::RowWriter& writer) {
  return database_->Run(sql, writer);
}

}  // namespace lockstep::cli
