#include "ingest/job/assemble_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "ingest/job/join_spans.h"
#include "ingest/job/rank_assignment.h"
#include "ingest/job/same_recording.h"

namespace lockstep::ingest {
namespace {

const char* LedgerCode(const Error& error, bool source_failed) {
  if (error.code == ErrorCode::kLimitExceeded) return "limit_exceeded";
  if (error.code == ErrorCode::kUnsupported) return source_failed ? "unsupported_compression" : "unsupported_format";
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

void AppendWithRank(const model::Ledger& from, int32_t rank, model::Ledger* into) {
  for (model::LedgerEntry entry : from.entries()) {
    if (!entry.rank) entry.rank = rank;
    into->Add(std::move(entry));
  }
}

/// Events that other processes hold cannot be put together here.
void JoinToOthers(const LoadedTrace& spans, const model::NameTable& names, bool held_elsewhere,
                  std::vector<LoadedTrace>* loaded, model::Ledger* ledger) {
  model::LedgerEntry entry;
  entry.source = spans.trace.source;
  entry.rank = spans.trace.rank.value;
  if (held_elsewhere) {
    entry.code = "spans_left_out";
    entry.severity = model::Severity::kWarning;
    entry.message = fmt::format("spans that belong to {} were left out: processes of MPI do not join them",
                                (*loaded)[spans.joins.front()].trace.source);
    entry.advice = "use lockstep instead of lockstep-mpi, or analyse the span traces alone";
    ledger->Add(std::move(entry));
    return;
  }
  std::optional<uint64_t> left_out;  // Of all traces that take a part.
  for (const size_t target : spans.joins) {
    model::RankTrace& into = (*loaded)[target].trace;
    const SpanScope scope = (*loaded)[target].is_span_trace ? SpanScope::kAll : SpanScope::kOwnTime;
    const uint64_t outside = JoinSpans(spans.trace, names, scope, &into);
    left_out = std::min(left_out.value_or(outside), outside);
  }
  if (left_out.value_or(0) == 0) return;
  entry.code = "spans_outside_trace";
  entry.severity = model::Severity::kInfo;
  entry.count = *left_out;
  entry.message =
      fmt::format("{} spans lie before or after the profiler's trace of the rank, or between its windows", *left_out);
  entry.advice = "analyse the folder of the span traces alone to see them all";
  ledger->Add(std::move(entry));
}

}  // namespace

Status AssembleRun(const std::vector<TraceFile>& files, std::vector<FileOutcome> outcomes, model::Run* run,
                   std::vector<TracePlace>* places) {
  std::vector<LoadedTrace> loaded;
  std::vector<model::Ledger> ledgers;
  std::vector<TracePlace> origins;
  const auto same = FindSameRecordings(files, &outcomes, &run->ledger);
  for (size_t i = 0; i < files.size(); ++i) {
    if (outcomes[i].contents.empty()) {
      ReportFailure(files[i], outcomes[i], &run->ledger);
      continue;
    }
    for (size_t c = 0; c < outcomes[i].contents.size(); ++c) {
      if (same.contains({i, c})) continue;
      TraceContent& content = outcomes[i].contents[c];
      // A name that says a rank speaks of one, not of all that the file holds.
      const NameFacts facts =
          content.trace.clock_is_aligned || content.several_processes ? NameFacts() : files[i].facts;
      loaded.push_back({.trace = std::move(content.trace),
                        .has_rank = content.has_rank,
                        .facts = facts,
                        .is_span_trace = content.is_span_trace});
      ledgers.push_back(std::move(content.ledger));
      origins.push_back({i, c});
    }
  }
  if (loaded.empty()) return NothingRead(files, outcomes);

  AssignRanks(&loaded, &run->ledger);
  for (LoadedTrace& spans : loaded) {
    if (!spans.joins.empty()) JoinToOthers(spans, run->names, places != nullptr, &loaded, &run->ledger);
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < loaded.size(); ++i) {
    AppendWithRank(ledgers[i], loaded[i].trace.rank.value, &run->ledger);
    if (!loaded[i].set_aside) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(loaded[a].trace.window, loaded[a].trace.rank) <
           std::pair(loaded[b].trace.window, loaded[b].trace.rank);
  });
  for (const size_t i : order) {
    run->ranks.push_back(std::move(loaded[i].trace));
    if (places != nullptr) places->push_back(origins[i]);
  }
  return {};
}

}  // namespace lockstep::ingest
