#pragma once

#include <string>
#include <vector>

#include "ingest/bytes/trace_files.h"
#include "ingest/torch_trace/trace_reader.h"
#include "model/ledger.h"
#include "model/run.h"

namespace lockstep::ingest {

/// One trace that was read, before its place in the job is known.
struct LoadedTrace {
  model::RankTrace trace;
  bool has_rank = false;  ///< `trace.rank` came from distributedInfo.
  NameFacts facts;
  bool is_span_trace = false;
  bool is_nccl_ring = false;
  std::vector<CommunicatorPlace> communicators = {};  ///< Of such a one.
  bool set_aside = false;                             ///< Out: it claims a rank and time that an earlier trace has.
  /// Out: the traces that take this one over, which no profiler wrote; it is set aside itself then. By index.
  std::vector<size_t> joins = {};

  bool IsProfile() const { return !is_span_trace && !is_nccl_ring; }
};

/// Decides rank, world size, host and window of every trace, in the order given (that of the files):
/// rank from distributedInfo, else from the name, else the lowest free one (files of one host and process share it);
/// the traces of a rank that do not overlap in time are its windows; of two that overlap one is set aside, and a span
/// trace or ring joins what it overlaps (trace_windows.h). Windows are numbered alike on all ranks where the traces'
/// times allow it, else per rank in order of time. Ledger rows: rank_from_name, rank_from_order, several_windows
/// (info); rank_name_mismatch, mixed_world_sizes, rank_outside_world, missing_ranks (warnings); rank_conflict (error).
void AssignRanks(std::vector<LoadedTrace>* traces, model::Ledger* ledger);

/// "0-3, 7, 9-11" for sorted distinct numbers; cut with "and N more" after 16 ranges.
std::string RangesText(const std::vector<int32_t>& sorted);

}  // namespace lockstep::ingest
