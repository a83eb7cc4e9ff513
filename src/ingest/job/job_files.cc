#include "ingest/job/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "ingest/bytes/file_names.h"
#include "ingest/job/stages_beside.h"
#include "ingest/kernel_profile/kernel_profile_files.h"
#include "ingest/nsight/json_export/json_export.h"

namespace lockstep::ingest {
namespace {

bool HoldsNsysJson(const TraceFile& file, const ByteLimits& limits) {
  auto source = OpenTraceFile(file, limits);
  if (!source) return false;
  std::array<char, kNsysJsonHeadBytes> head;
  const auto size = (*source)->Read(head);
  return size && StartsNsysJson({head.data(), *size});
}

}  // namespace

Result<JobFiles> FindJobFiles(const std::vector<std::string>& paths, const ByteLimits& limits, model::Ledger* ledger) {
  JobFiles found;
  OtherFiles others;
  model::Ledger met;
  auto traces = FindTraceFiles(paths, limits, &met, &others);
  std::set<std::string> taken;
  if (traces) {
    found.traces = std::move(*traces);
    for (TraceFile& file : others.lines) {
      if (HoldsNsysJson(file, limits)) found.traces.push_back(std::move(file));
    }
    std::stable_sort(found.traces.begin(), found.traces.end(), InOrderOfName);
    std::erase_if(found.traces, IsStagesSummary);
    found.kernel_profiles = ReadKernelTables(others.tables, &taken);
    std::erase_if(found.traces, [&](const TraceFile& file) { return taken.contains(file.path); });
  }
  // A report that ncu turned into a table was not left out.
  std::set<std::string> names;
  for (const std::string& path : taken) names.insert(PrintableName(path));
  for (const model::LedgerEntry& entry : met.entries()) {
    if (entry.code != "ncu_report" || !names.contains(entry.source)) ledger->Add(entry);
  }
  if (!traces) return std::move(traces).error();
  if (found.traces.empty() && !found.kernel_profiles) return NoTraceFound(paths, met);
  if (!found.kernel_profiles) return found;
  if (found.traces.empty()) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "holds tables of kernels and no trace; lockstep kernels reads them alone",
                 .file = *names.begin()};
  }
  for (const model::LedgerEntry& entry : found.kernel_profiles->ledger.entries()) ledger->Add(entry);
  ledger->Add({.code = "kernel_tables",
               .severity = model::Severity::kInfo,
               .source = taken.size() == 1 ? *names.begin() : std::string(),
               .count = taken.size(),
               .message = fmt::format("tables of Nsight Compute and nsys stats lie beside the traces: {} launches, {} "
                                      "sums of names",
                                      found.kernel_profiles->launches.size(), found.kernel_profiles->sums.size()),
               .advice = "see --section measured_kernels"});
  return found;
}

}  // namespace lockstep::ingest
