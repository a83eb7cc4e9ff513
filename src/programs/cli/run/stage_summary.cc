#include "programs/cli/run/stage_summary.h"

#include <sstream>
#include <utility>

#include "analysis/frontier/job_stages.h"
#include "base/output_file.h"
#include "ingest/stage_files/stage_files.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::cli {

Status TellStages(const std::string& folder, const std::string& summary_file, std::ostream& out) {
  ASSIGN_OR_RETURN(ingest::StageFiles files, ingest::ReadStageFiles({folder}));
  const frontier::JobStages job = frontier::AssessJob(std::move(files.ranks), std::move(files.ledger));
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

}  // namespace lockstep::cli
