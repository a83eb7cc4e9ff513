#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/rank_context.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "ingest/job/ingest_run.h"
#include "model/run.h"
#include "present/query/database.h"
#include "present/query/stop_sign.h"
#include "present/report/report.h"
#include "programs/python/array.h"

namespace lockstep::python {

struct LoadOptions {
  analysis::AnalysisOptions analysis = {};
  ingest::IngestOptions ingest = {};
  std::vector<std::string> passes = {};  ///< Empty: all.
};

/// Ends a query from another thread. Asking before the query began, or after its end, does nothing: ask until it is
/// over.
class QueryCancel {
 public:
  void Ask() {
    const MutexLock lock(mutex_);
    if (stop_ != nullptr) stop_->Ask();
  }
  void Watch(query::StopSign* stop) {
    const MutexLock lock(mutex_);
    stop_ = stop;
  }

 private:
  Mutex mutex_;
  query::StopSign* stop_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;
};

/// A job that was read, and the answers to what is asked of it. The passes run once, at the first question that needs
/// them. Thread-safe: every member may be called from several threads; the second caller waits for the first.
/// Everything that is handed out keeps the run alive, so columns may outlive it.
class LoadedRun : public std::enable_shared_from_this<LoadedRun> {
 public:
  /// Errors: those of ingest::IngestRun; kInvalidArgument for an unknown pass.
  static Result<std::shared_ptr<LoadedRun>> Load(const std::vector<std::string>& paths, LoadOptions options);

  /// The rank traces as they were read: which ranks, tracks and events there are never changes. Clocks and ledger do,
  /// in the first analysis: ask Analysed() for those.
  const std::vector<model::RankTrace>& traces() const { return run_.ranks; }

  const LoadOptions& options() const { return options_; }
  std::string_view NameText(NameId name) const { return run_.names[name]; }

  /// Runs the passes unless they have run. Cost the first time: that of analysis::Analyze.
  void EnsureAnalysed();
  /// The run with its clocks aligned and its ledger whole, and the passes' result.
  const model::Run& Analysed();
  const analysis::AnalysisResult& Analysis();

  /// Whether ranks or parts of files are missing: exit status 4 of the command. Before the analysis, what reading knew.
  bool PartialAsRead() const { return partial_as_read_; }
  bool Partial();
  /// The ledger as it was when reading ended.
  const std::vector<model::LedgerEntry>& LedgerAsRead() const { return ledger_as_read_; }

  /// A table of TableSpecs(), made at the first call.
  /// Errors: kInvalidArgument for an unknown name; kFailedPrecondition when its pass was not among those asked for.
  Result<std::shared_ptr<const Table>> GetTable(std::string_view name);

  /// What `lockstep analyze --json` prints.
  std::string Json();
  /// What `lockstep analyze` prints.
  std::string Text(const report::TextOptions& options);

  /// The report page of `lockstep analyze -o`, at most `page_bytes` large, into a file that is made or overwritten.
  /// Errors: kPermissionDenied, kNotFound, kIo.
  Status WritePage(const std::string& path, uint64_t page_bytes);

  /// What one statement of SQL answers (docs/query.md). Queries of a process run one after another: SQLite's limit of
  /// memory is the process's, and is put back afterwards. `cancel` may be asked from another thread meanwhile.
  /// Errors: kInvalidArgument for the SQL, with the place; kLimitExceeded; kCancelled; kFailedPrecondition when it
  /// reads a table of a pass that was not among those asked for.
  Result<std::shared_ptr<const Table>> Query(const std::string& sql, const query::QueryLimits& limits,
                                             QueryCancel* cancel);

  /// The trace of a rank and window. Errors: kInvalidArgument naming the ranks there are.
  Result<const model::RankTrace*> FindTrace(int32_t rank, int32_t window) const;
  /// A track's events, not copied. Errors: kInvalidArgument.
  Result<std::shared_ptr<const Table>> TrackEvents(int32_t rank, int32_t window, size_t track);
  /// The events of the rank's tracks named, a table each, with a column `track` before the others. Only that column,
  /// and correlation where a track has none (then 0), is not looked at where it lies.
  Result<std::vector<std::shared_ptr<const Table>>> JoinedEvents(int32_t rank, int32_t window,
                                                                 const std::vector<size_t>& tracks);
  Result<std::shared_ptr<const Table>> MemoryEvents(int32_t rank, int32_t window);

 private:
  LoadedRun() = default;
  std::shared_ptr<const Array> Names();

  LoadOptions options_;
  bool partial_as_read_ = false;
  std::vector<model::LedgerEntry> ledger_as_read_;
  model::Run run_;  // `ranks[].clock` and `ledger` are guarded by analysis_mutex_ until analysed_.

  Mutex analysis_mutex_;
  std::optional<analysis::AnalysisResult> result_;  // Guarded by analysis_mutex_ until set, constant afterwards.

  Mutex tables_mutex_;
  std::map<std::string, std::shared_ptr<const Table>, std::less<>> tables_ LOCKSTEP_GUARDED_BY(tables_mutex_);
  std::shared_ptr<const Array> names_ LOCKSTEP_GUARDED_BY(tables_mutex_);
};

}  // namespace lockstep::python
