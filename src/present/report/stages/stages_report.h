#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "analysis/frontier/job_stages.h"
#include "analysis/frontier/over_time.h"
#include "analysis/rank_memory/rank_memory.h"
#include "present/report/report.h"

namespace lockstep::report {

/// One sentence: "rank 3 costs the job 18 % of its time in input: the others wait for it in 96 of 100 steps".
std::string StagesSentence(const frontier::JobStages& job);

/// Why that is said, and what to do next.
std::string StagesWhy(const frontier::JobStages& job);
std::string StagesNext(const frontier::JobStages& job);

/// Who costs most in the stage: "rank 2: 31 %", of all time; empty: nobody costs anything.
std::string CostWords(const frontier::Accounting& account, model::Stage stage);

/// A process group in words: where one of its ranks costs it most comes first.
struct GroupRow {
  std::string name = {};
  std::string ranks = {};  ///< "0, 2".
  std::string wait = {};   ///< Of the member that waits longest for this group, a step.
  std::string cost = {};   ///< "rank 2 in forward: 31 %", of the group's time; empty: nobody costs it anything.
};
std::vector<GroupRow> GroupRows(const frontier::JobStages& job);

/// "400 to 479", "7".
std::string StepRange(const frontier::Window& window);

/// "Steps 400 to 479 took 31 % longer (16.0 ms, else 12.2 ms a step): rank 3 in input.", each change in its own.
std::vector<std::string> ChangeSentences(const frontier::JobStages& job);

/// Of each finding on memory: "Rank 1's process grows: 412 MiB, then 650 MiB a third of the run later, ...".
std::string MemorySentence(const frontier::JobStages& job, const rank_memory::Finding& finding);

/// The sentence, why, and what to do next; then a table of stages, the steps over time, memory, and the `options.top`
/// steps in which one rank cost most (0: all).
void WriteStagesText(const frontier::JobStages& job, const TextOptions& options, std::ostream& out);

/// One object, "lockstep.stages/1" (docs/json.md).
void WriteStagesJson(const frontier::JobStages& job, std::ostream& out);

/// Its member "data".
std::string StagesDataJson(const frontier::JobStages& job);

/// Its member "data.verdict".
std::string StagesVerdictJson(const frontier::JobStages& job);

/// Its member "partial": a rank's file could not be read, or the ranks share no step.
bool IsPartial(const frontier::JobStages& job);

}  // namespace lockstep::report
