#include "programs/cli/run/stage_summary.h"

#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "analysis/frontier/job_stages.h"
#include "base/json_writer.h"
#include "base/output_file.h"
#include "ingest/stage_files/stage_files.h"
#include "ingest/stage_files/stage_summary.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::cli {

Status TellStages(const std::string& folder, const std::string& summary_file, model::StageJob facts,
                  std::ostream& out) {
  ASSIGN_OR_RETURN(ingest::StageFiles files, ingest::ReadStageFiles({folder}));
  const frontier::JobStages job =
      frontier::AssessJob(std::move(files.ranks), std::move(files.ledger), std::move(facts));
  report::TextOptions options;
  options.width = 100;
  options.unicode = false;
  options.top = 3;
  report::WriteStagesText(job, options, out);
  if (summary_file.empty()) return {};
  std::ostringstream json;
  report::WriteStagesJson(job, json);
  return WriteOutputFile(summary_file, json.str());
}

Status KeepWorkload(const std::string& folder, const model::Workload& workload) {
  const std::string file = folder + "/" + ingest::kWorkloadFile;
  if (workload.empty()) {
    std::error_code failed;
    std::filesystem::remove(file, failed);
    return {};
  }
  JsonWriter json;
  json.StartObject();
  for (const auto& [key, value] : workload) json.Key(key).Text(value);
  json.EndObject();
  return WriteOutputFile(file, json.Take() + "\n");
}

}  // namespace lockstep::cli
