#include "ingest/job/stages_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ingest/stage_files/stage_files.h"
#include "model/stages/rank_stages.h"

namespace lockstep::ingest {

bool IsStagesSummary(const TraceFile& file) {
  if (file.in_archive || std::filesystem::path(file.path).filename() != "summary.json") return false;
  std::ifstream in(file.path, std::ios::binary);
  std::array<char, 64> head = {};
  in.read(head.data(), head.size());
  return std::string_view(head.data(), static_cast<size_t>(in.gcount())).find("\"lockstep.stages/") !=
         std::string_view::npos;
}

void ReadStagesBeside(const std::vector<TraceFile>& files, model::Run* run) {
  std::vector<std::string> paths;
  for (const TraceFile& file : files) {
    if (!file.in_archive && file.path.ends_with(".spans")) paths.push_back(file.path);
  }
  if (paths.empty()) return;
  Result<StageFiles> stages = ReadStageFiles(paths);
  if (!stages) return;  // Spans without steps. What cannot be read is told by who reads them as traces.
  const bool is_beside = std::any_of(run->ranks.begin(), run->ranks.end(),
                                     [&](const model::RankTrace& trace) { return !trace.source.ends_with(".spans"); });
  if (is_beside) {
    run->ledger.Add({.code = "stage_files",
                     .severity = model::Severity::kInfo,
                     .count = stages->ranks.size(),
                     .message = fmt::format("stages of the steps of {} rank{} lie beside the traces",
                                            stages->ranks.size(), stages->ranks.size() == 1 ? "" : "s"),
                     .advice = "see --section stages"});
    for (const model::LedgerEntry& entry : stages->ledger.entries()) {
      if (entry.code != "unreadable_file") run->ledger.Add(entry);
    }
  }
  run->stages = std::make_shared<const std::vector<model::RankStages>>(std::move(stages->ranks));
}

}  // namespace lockstep::ingest
