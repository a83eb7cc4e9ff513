#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/bytes/trace_files.h"
#include "model/ledger.h"
#include "model/operation_trace.h"

namespace lockstep::ingest {

/// What an operation trace's file is, by its first bytes.
enum class OperationFormat : uint8_t {
  kNone,          ///< Nothing of ours.
  kStudyTable,    ///< CSV whose first line names the study's columns.
  kPrimusRank,    ///< Primus's JSON of one pipeline rank.
  kPrimusConfig,  ///< Its config.json.
};

/// Decides by the first bytes (decompressed; 4 KiB are enough), never by name.
OperationFormat SniffOperations(std::string_view head);

/// An operation trace as read, and what was skipped.
struct OperationContent {
  model::OperationTrace trace;
  model::Ledger ledger;
};

/// Reads the study's table: CSV with a header line, columns in any order (docs/formats/op-trace.md). Times are decimal
/// seconds, taken exactly. A line that is not an operation is skipped and counted in the ledger, with its number; a
/// damaged or cut stream gives what was before it and a ledger row.
/// Errors: kCorruptData when the header lacks a column, or no line is an operation; those of the first read.
Result<OperationContent> ReadOperationTable(ByteSource& source, const std::string& name);

/// What Primus's config.json says.
struct PrimusConfig {
  std::optional<int32_t> stage_count = {};
  std::optional<int32_t> micro_batch_count = {};
};
Result<PrimusConfig> ReadPrimusConfig(std::string text, const std::string& name);

/// Reads one stage's JSON: by iteration the starts and ends of forward and backward work, milliseconds from the
/// iteration's begin. Adds to `content`, whose types are then kBackwardCompute and kForwardCompute.
/// Errors: kCorruptData when it is no such JSON; an iteration that is not sound gets a ledger row.
Status ReadPrimusRank(std::string text, int32_t stage, const std::string& name, OperationContent* content);

/// Whether the first of `files` is an operation trace's, so that all of them are to be read as one.
Result<bool> AreOperationTraces(const std::vector<TraceFile>& files, const ByteLimits& limits);

/// Reads files for which AreOperationTraces says so. One table, or the files of one Primus pipeline; what is neither
/// gets a ledger row. Errors: kInvalidArgument for more than one table; those of reading when nothing was read.
Result<OperationContent> ReadOperations(const std::vector<TraceFile>& files, const ByteLimits& limits);

/// Puts operations and iterations into the order that model::OperationTrace promises.
void SortOperations(model::OperationTrace* trace);

}  // namespace lockstep::ingest
