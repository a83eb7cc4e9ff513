#include "ingest/job/assemble_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "ingest/job/communicators.h"
#include "ingest/job/join_spans.h"
#include "ingest/job/rank_assignment.h"
#include "ingest/job/same_recording.h"
#include "ingest/nccl_trace/nccl_trace.h"

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
          .message = fmt::format("none of {} files is a trace; the first: {}", files.size(), first.ToString())};
}

void AppendWithRank(const model::Ledger& from, int32_t rank, model::Ledger* into) {
  for (model::LedgerEntry entry : from.entries()) {
    if (!entry.rank) entry.rank = rank;
    into->Add(std::move(entry));
  }
}

/// Every trace that others take over, into each of them. Out: how many of its events none of these took, by trace.
std::vector<uint64_t> JoinToOthers(const std::vector<TracePlace>& origins, const model::NameTable& names,
                                   EventsElsewhere* elsewhere, std::vector<LoadedTrace>* loaded) {
  std::vector<std::optional<uint64_t>> left_out(loaded->size());
  const auto count = [&](size_t from, uint64_t outside) {
    left_out[from] = std::min(left_out[from].value_or(outside), outside);
  };
  std::vector<TraceJoin> joins;
  std::vector<std::pair<size_t, size_t>> joined_traces;
  for (size_t from = 0; from < loaded->size(); ++from) {
    LoadedTrace& spans = (*loaded)[from];
    if (!spans.joins.empty() && spans.is_nccl_ring && elsewhere == nullptr) TurnIntoAnnotations(&spans.trace);
    for (const size_t target : spans.joins) {
      LoadedTrace& into = (*loaded)[target];
      const SpanScope scope = into.IsProfile() ? SpanScope::kOwnTime : SpanScope::kAll;
      if (elsewhere == nullptr) {
        count(from, JoinSpans(spans.trace, names, scope, &into.trace));
        continue;
      }
      joins.push_back({origins[from], origins[target], scope});
      joins.back().from.is_nccl_ring = spans.is_nccl_ring;
      joined_traces.emplace_back(from, target);
    }
  }
  if (!joins.empty()) {
    const std::vector<JoinedTrace> joined = elsewhere->join(joins);
    for (size_t i = 0; i < joins.size(); ++i) {
      const auto& [from, target] = joined_traces[i];
      count(from, joined[i].left_out);
      model::RankTrace& into = (*loaded)[target].trace;
      into.event_count = joined[i].event_count;
      into.complete_event_count = joined[i].complete_event_count;
      into.first_ns = joined[i].first_ns;
      into.last_ns = joined[i].last_ns;
    }
  }
  std::vector<uint64_t> counts;
  for (const auto& each : left_out) counts.push_back(each.value_or(0));
  return counts;
}

void ReportLeftOut(const LoadedTrace& spans, uint64_t left_out, model::Ledger* ledger) {
  if (left_out == 0) return;
  model::LedgerEntry entry;
  entry.source = spans.trace.source;
  entry.rank = spans.trace.rank.value;
  entry.code = spans.is_nccl_ring ? "nccl_operations_outside_trace" : "spans_outside_trace";
  entry.severity = model::Severity::kInfo;
  entry.count = left_out;
  entry.message = fmt::format("{} {} lie before or after the profiler's trace of the rank, or between its windows",
                              left_out, spans.is_nccl_ring ? "operations of NCCL" : "spans");
  entry.advice =
      fmt::format("analyse the folder of the {} alone to see them all", spans.is_nccl_ring ? "rings" : "span traces");
  ledger->Add(std::move(entry));
}

}  // namespace

Status AssembleRun(const std::vector<TraceFile>& files, std::vector<FileOutcome> outcomes, model::Run* run,
                   EventsElsewhere* elsewhere) {
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
                        .is_span_trace = content.is_span_trace,
                        .is_nccl_ring = content.is_nccl_ring,
                        .communicators = std::move(content.communicators)});
      ledgers.push_back(std::move(content.ledger));
      origins.push_back({i, c});
    }
  }
  if (loaded.empty()) return NothingRead(files, outcomes);

  AssignRanks(&loaded, &run->ledger);
  ResolveCommunicators(&loaded);
  const std::vector<uint64_t> left_out = JoinToOthers(origins, run->names, elsewhere, &loaded);
  for (size_t i = 0; i < loaded.size(); ++i) ReportLeftOut(loaded[i], left_out[i], &run->ledger);
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
    if (elsewhere != nullptr) {
      elsewhere->places.push_back(origins[i]);
      elsewhere->places.back().is_nccl_ring = loaded[i].is_nccl_ring;
    }
  }
  return {};
}

}  // namespace lockstep::ingest
