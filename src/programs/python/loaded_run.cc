#include "programs/python/loaded_run.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <set>
#include <sstream>
#include <utility>

#include "analysis/analyze.h"
#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "base/mutex.h"
#include "present/page/page_blocks.h"
#include "present/query/query_error.h"
#include "present/query/source.h"
#include "present/query/tables.h"
#include "present/report/job_facts.h"
#include "programs/python/event_tables.h"
#include "programs/python/query_table.h"
#include "programs/python/table_specs.h"

namespace lockstep::python {
namespace {

bool IsPartial(const model::Run& run) { return ingest::IsPartial(run) || report::FactsOf(run).missing_rank_count > 0; }

std::string RanksText(const std::vector<model::RankTrace>& traces) {
  std::set<int32_t> ranks;
  for (const model::RankTrace& trace : traces) ranks.insert(trace.rank.value);
  std::string text;
  size_t listed = 0;
  for (const int32_t rank : ranks) {
    if (listed++ == 16) return text + fmt::format(" and {} more", ranks.size() - 16);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  }
  return text;
}

Error NoSuchTrack(const model::RankTrace& trace, size_t track) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("has {} tracks, and none is number {}", trace.tracks.size(), track),
               .rank = trace.rank.value};
}

Error NotRun(std::string_view pass) {
  return Error{
      .code = ErrorCode::kFailedPrecondition,
      .message = fmt::format("the pass '{}' was not run; leave passes= out of load(), or name it there", pass)};
}

/// SQLite's memory limit is per process: the previous limit is restored for other users of SQLite in it.
class MemoryLimitKeeper {
 public:
  MemoryLimitKeeper() : before_(sqlite3_hard_heap_limit64(-1)) {}
  ~MemoryLimitKeeper() { sqlite3_hard_heap_limit64(before_); }
  MemoryLimitKeeper(const MemoryLimitKeeper&) = delete;
  MemoryLimitKeeper& operator=(const MemoryLimitKeeper&) = delete;

 private:
  const sqlite3_int64 before_;
};

/// What is wrong with the SQL, the names there are, and the place.
Error ErrorOf(const query::QueryError& error, const std::string& sql) {
  using Kind = query::QueryError::Kind;
  Error told;
  switch (error.kind) {
    case Kind::kStatement: told.code = ErrorCode::kInvalidArgument; break;
    case Kind::kTimeout:
    case Kind::kMemory: told.code = ErrorCode::kLimitExceeded; break;
    case Kind::kInterrupted: told.code = ErrorCode::kCancelled; break;
    case Kind::kInternal: told.code = ErrorCode::kIo; break;
  }
  told.message = error.message;
  if (!error.known.empty()) told.message += fmt::format("; there are {}", fmt::join(error.known, ", "));
  if (error.offset) told.message += "\n" + query::MarkedLine(sql, *error.offset);
  return told;
}

/// An array that owns what it shows.
template <typename T>
Field Own(std::string name, Kind kind, std::shared_ptr<T[]> values, size_t length) {
  auto array = std::make_shared<Array>();
  array->kind = kind;
  array->length = length;
  array->data = values.get();
  array->owner = std::move(values);
  return {.name = std::move(name), .unit = {}, .nullable = false, .values = std::move(array)};
}

Field Constant(std::string name, int32_t value, size_t length) {
  std::shared_ptr<int32_t[]> values(new int32_t[length + 1]);
  for (size_t i = 0; i < length; ++i) values[i] = value;
  return Own(std::move(name), Kind::kInt32, std::move(values), length);
}

// Zeroed pages come from the system and take no memory until they are read.
Field Zeros(std::string name, size_t length) {
  std::shared_ptr<uint32_t[]> values(static_cast<uint32_t*>(std::calloc(length + 1, sizeof(uint32_t))), std::free);
  if (values == nullptr) throw std::bad_alloc();
  return Own(std::move(name), Kind::kUint32, std::move(values), length);
}

}  // namespace

Result<std::shared_ptr<LoadedRun>> LoadedRun::Load(const std::vector<std::string>& paths, LoadOptions options) {
  // An unknown pass is told before anything is read.
  RETURN_IF_ERROR(analysis::ResolvePasses(options.passes));
  std::shared_ptr<LoadedRun> loaded(new LoadedRun);
  options.ingest.thread_count = options.analysis.thread_count;
  options.ingest.take_operations = true;
  ASSIGN_OR_RETURN(loaded->run_, ingest::IngestRun(paths, options.ingest));
  options.ingest.on_progress = {};
  options.ingest.cancelled = nullptr;
  loaded->options_ = std::move(options);
  loaded->partial_as_read_ = IsPartial(loaded->run_);
  loaded->ledger_as_read_ = loaded->run_.ledger.entries();
  return loaded;
}

void LoadedRun::EnsureAnalysed() {
  const MutexLock lock(analysis_mutex_);
  if (result_) return;
  auto result = analysis::Analyze(&run_, options_.analysis, options_.passes);
  // The names of passes were looked at in Load, and nothing else is refused.
  if (!result) throw std::logic_error(result.error().ToString());
  result_ = std::move(*result);
}

const model::Run& LoadedRun::Analysed() {
  EnsureAnalysed();
  return run_;
}

const analysis::AnalysisResult& LoadedRun::Analysis() {
  EnsureAnalysed();
  return *result_;
}

bool LoadedRun::Partial() { return IsPartial(Analysed()); }

Result<std::shared_ptr<const Table>> LoadedRun::GetTable(std::string_view name) {
  if (FindTableSpec(name) == nullptr) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = fmt::format("no table is named '{}'", name)};
  }
  const analysis::AnalysisResult& result = Analysis();
  const std::string_view pass = PassOfTable(name);
  if (!pass.empty() && !result.Has(pass)) {
    return NotRun(pass);
  }
  const MutexLock lock(tables_mutex_);
  const auto found = tables_.find(name);
  if (found != tables_.end()) return found->second;
  auto table = std::make_shared<const Table>(BuildTable(name, run_, result));
  tables_.emplace(std::string(name), table);
  return std::shared_ptr<const Table>(std::move(table));
}

std::string LoadedRun::Json() {
  const analysis::AnalysisResult& result = Analysis();
  std::ostringstream out;
  report::WriteJson(run_, result, Partial(), out);
  return std::move(out).str();
}

std::string LoadedRun::Text(const report::TextOptions& options) {
  const analysis::AnalysisResult& result = Analysis();
  std::ostringstream out;
  report::WriteText(run_, result, options, out);
  return std::move(out).str();
}

std::shared_ptr<const Array> LoadedRun::Names() {
  const MutexLock lock(tables_mutex_);
  if (names_ == nullptr) names_ = NameDictionary(run_.names);
  return names_;
}

Status LoadedRun::WritePage(const std::string& path, uint64_t page_bytes) {
  const analysis::AnalysisResult& result = Analysis();
  const page::PageInput input{run_, result, options_.analysis, Partial()};
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) page::WriteAnalyzePage(input, page_bytes, out);
  out.close();
  if (out) return {};
  const int code = errno;
  return Error{.code = code == EACCES || code == EPERM ? ErrorCode::kPermissionDenied
                       : code == ENOENT                ? ErrorCode::kNotFound
                                                       : ErrorCode::kIo,
               .message = fmt::format("cannot be written ({})", code != 0 ? std::strerror(code) : "write failed"),
               .file = path};
}

Result<std::shared_ptr<const Table>> LoadedRun::Query(const std::string& sql, const query::QueryLimits& limits,
                                                      QueryCancel* cancel) {
  const analysis::AnalysisResult& result = Analysis();
  static Mutex process_mutex;
  const MutexLock lock(process_mutex);
  const MemoryLimitKeeper keeper;
  ASSIGN_OR_RETURN(const std::unique_ptr<query::Database> database, query::Database::Open(limits));
  const auto tables = database->Inspect(sql);
  if (!tables) return ErrorOf(tables.error(), sql);
  const query::PassesNeeded needed = query::PassesFor({tables->begin(), tables->end()});
  for (const analysis::PassInfo& pass : analysis::Passes()) {
    const bool wanted = (needed.all && pass.kind == analysis::PassKind::kUsual) ||
                        std::find(needed.names.begin(), needed.names.end(), pass.name) != needed.names.end();
    if (wanted && !result.Has(pass.name)) return NotRun(pass.name);
  }
  const query::Source source(run_, result, options_.analysis, &database->stop());
  database->SetSource(&source);
  QueryTable rows;
  cancel->Watch(&database->stop());
  const auto summary = database->Run(sql, rows);
  cancel->Watch(nullptr);
  database->SetSource(nullptr);
  if (!summary) return ErrorOf(summary.error(), sql);
  return std::make_shared<const Table>(std::move(rows).Finish());
}

Result<const model::RankTrace*> LoadedRun::FindTrace(int32_t rank, int32_t window) const {
  bool rank_known = false;
  for (const model::RankTrace& trace : run_.ranks) {
    if (trace.rank.value != rank) continue;
    rank_known = true;
    if (trace.window == window) return &trace;
  }
  if (rank_known) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("has no window {}; see run.ranks for what there is", window),
                 .rank = rank};
  }
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("no trace of this rank was read; there are {}", RanksText(run_.ranks)),
               .rank = rank};
}

Result<std::shared_ptr<const Table>> LoadedRun::TrackEvents(int32_t rank, int32_t window, size_t track) {
  ASSIGN_OR_RETURN(const model::RankTrace* trace, FindTrace(rank, window));
  if (track >= trace->tracks.size()) return NoSuchTrack(*trace, track);
  return std::make_shared<const Table>(EventTable(trace->tracks[track], Names(), shared_from_this()));
}

Result<std::vector<std::shared_ptr<const Table>>> LoadedRun::JoinedEvents(int32_t rank, int32_t window,
                                                                          const std::vector<size_t>& tracks) {
  ASSIGN_OR_RETURN(const model::RankTrace* trace, FindTrace(rank, window));
  std::vector<std::shared_ptr<const Table>> chunks;
  for (const size_t track : tracks) {
    if (track >= trace->tracks.size()) return NoSuchTrack(*trace, track);
    auto chunk = std::make_shared<Table>(EventTable(trace->tracks[track], Names(), shared_from_this()));
    chunk->columns.insert(chunk->columns.begin(), Constant("track", static_cast<int32_t>(track), chunk->row_count));
    if (chunk->Find("correlation") == nullptr) chunk->columns.push_back(Zeros("correlation", chunk->row_count));
    chunks.push_back(std::move(chunk));
  }
  if (chunks.empty()) {  // No rows, and the columns all the same.
    auto chunk = std::make_shared<Table>(EventTable(model::Track(), Names(), nullptr));
    chunk->columns.insert(chunk->columns.begin(), Constant("track", 0, 0));
    chunk->columns.push_back(Zeros("correlation", 0));
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

Result<std::shared_ptr<const Table>> LoadedRun::MemoryEvents(int32_t rank, int32_t window) {
  ASSIGN_OR_RETURN(const model::RankTrace* trace, FindTrace(rank, window));
  return std::make_shared<const Table>(MemoryEventTable(trace->memory, shared_from_this()));
}

}  // namespace lockstep::python
