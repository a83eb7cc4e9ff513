#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {

/// Whether `bytes` begin an Nsight Systems report (.nsys-rep, .qdrep), which only nsys itself can read.
bool StartsNsysReport(std::string_view bytes);

/// Version of nsys that wrote a report, by its first line: {2026, 2, 1, 210}; absent for the oldest ("Report 1").
std::optional<std::array<int, 4>> ReportVersion(std::string_view head);

/// The version in what `nsys --version` prints: "NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0".
std::optional<std::array<int, 4>> NsysVersion(std::string_view printed);

/// Exports the report at `path` with the nsys that PATH leads to, into a private folder that is gone afterwards, and
/// reads that. Errors: kUnsupported when there is no nsys, when it is older than the report, when it cannot export it,
/// or when the report has no path: each says what to run; those of ReadNsysExport.
Result<std::vector<TraceContent>> ReadNsysReport(std::string_view head, const std::string& path,
                                                 const std::string& display_name, const TraceReaderOptions& options);

}  // namespace lockstep::ingest
