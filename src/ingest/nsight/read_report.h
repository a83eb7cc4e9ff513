#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/nsight/database.h"
#include "ingest/nsight/rank_environment.h"
#include "ingest/nsight/report_notes.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest::nsight {

/// What the file around a report's tables says.
struct ReportFile {
  std::string display_name;
  uint64_t size_bytes = 0;
  ProcessLaunches launches = {};
};

/// The tables of an export, whatever form they had, as columns: what ReadNsysExport does once it has them.
Result<std::vector<TraceContent>> ReadReport(Database* database, const ReportFile& file,
                                             const TraceReaderOptions& options, ReportNotes* notes);

}  // namespace lockstep::ingest::nsight
