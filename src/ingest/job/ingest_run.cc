#include "ingest/job/ingest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "ingest/job/file_ingest.h"
#include "ingest/job/ingest_progress.h"
#include "ingest/job/rank_assignment.h"

namespace lockstep::ingest {
namespace {

const char* LedgerCode(const Error& error, bool source_failed) {
  if (error.code == ErrorCode::kLimitExceeded) return "limit_exceeded";
  if (error.code == ErrorCode::kUnsupported) return "unsupported_compression";
  return source_failed ? "unreadable_file" : "not_a_trace";
}

void ReportFailure(const TraceFile& file, const FileOutcome& outcome, model::Ledger* ledger) {
  const Error& error = *outcome.error;
  model::LedgerEntry entry;
  entry.code = LedgerCode(error, outcome.source_failed);
  // An error even for a file that only lay in a folder: what it holds may be the rank that is missing.
  entry.severity = model::Severity::kError;
  entry.source = file.DisplayName();
  entry.byte_offset = error.byte_offset;
  // Errors say what is wrong and then, behind a semicolon, what to do.
  const size_t advice = error.message.find("; ");
  entry.message = error.message.substr(0, advice);
  if (advice != std::string::npos) entry.advice = error.message.substr(advice + 2);
  ledger->Add(std::move(entry));
}

Error NothingRead(const std::vector<TraceFile>& files, const std::vector<FileOutcome>& outcomes) {
  Error first = *outcomes.front().error;
  first.file = files.front().DisplayName();
  if (files.size() == 1) return first;
  return {.code = ErrorCode::kCorruptData,
          .message = fmt::format("not one of {} files is a trace; the first: {}", files.size(), first.ToString())};
}

uint32_t ThreadCount(const IngestOptions& options) {
  return options.thread_count != 0 ? options.thread_count : std::max(1u, std::thread::hardware_concurrency());
}

void AppendWithRank(const model::Ledger& from, int32_t rank, model::Ledger* into) {
  for (model::LedgerEntry entry : from.entries()) {
    if (!entry.rank) entry.rank = rank;
    into->Add(std::move(entry));
  }
}

}  // namespace

Result<model::Run> IngestRun(const std::vector<std::string>& paths, const IngestOptions& options) {
  model::Run run;
  ASSIGN_OR_RETURN(const std::vector<TraceFile> files, FindTraceFiles(paths, options.limits, &run.ledger));

  uint64_t total_bytes = 0;
  for (const TraceFile& file : files) total_bytes += file.size_bytes;
  ProgressMeter meter(options.on_progress, total_bytes, static_cast<uint32_t>(files.size()), options.cancelled);
  std::vector<FileOutcome> outcomes = IngestFiles(files, options, ThreadCount(options), &meter, &run.names);
  if (meter.cancelled()) return Error{.code = ErrorCode::kCancelled, .message = "reading was cancelled"};
  meter.Finish();

  std::vector<LoadedTrace> loaded;
  std::vector<model::Ledger> ledgers;
  for (size_t i = 0; i < files.size(); ++i) {
    if (outcomes[i].contents.empty()) {
      ReportFailure(files[i], outcomes[i], &run.ledger);
      continue;
    }
    for (TraceContent& content : outcomes[i].contents) {
      // A name that says a rank speaks of one, not of all that the file holds.
      const NameFacts facts = content.trace.clock_is_aligned ? NameFacts() : files[i].facts;
      loaded.push_back({.trace = std::move(content.trace), .has_rank = content.has_rank, .facts = facts});
      ledgers.push_back(std::move(content.ledger));
    }
  }
  if (loaded.empty()) return NothingRead(files, outcomes);

  AssignRanks(&loaded, &run.ledger);
  for (size_t i = 0; i < loaded.size(); ++i) {
    AppendWithRank(ledgers[i], loaded[i].trace.rank.value, &run.ledger);
    if (!loaded[i].set_aside) run.ranks.push_back(std::move(loaded[i].trace));
  }
  std::sort(run.ranks.begin(), run.ranks.end(), [](const model::RankTrace& a, const model::RankTrace& b) {
    return std::pair(a.window, a.rank) < std::pair(b.window, b.rank);
  });
  return run;
}

}  // namespace lockstep::ingest
