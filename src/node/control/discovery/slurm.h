#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/discovery/hosts.h"

namespace lockstep::control {

/// A line of `squeue -h -o "%i|%A|%T|%N|%r"`.
struct SqueueRow {
  std::string id;       ///< "11", "12_3", "12_[5-7%2]", "13+1".
  std::string real_id;  ///< A number: "16" for "12_3".
  std::string state;    ///< "RUNNING".
  std::string nodes;    ///< "n[001-004]"; empty while it waits.
  std::string reason;   ///< Why it waits: "Resources"; "None".
};

/// Errors: kCorruptData for a line of another form.
Result<std::vector<SqueueRow>> ParseSqueue(std::string_view output);

/// The job that the user means by `id` ("12", "12_3", "13+1", a step "12.0") among what squeue says of it, with its
/// nodes. Errors: see FindJob.
Result<JobNodes> SelectSlurmJob(const std::string& id, const std::vector<SqueueRow>& rows);

/// Steps' ids in `squeue -s -h -o "%i"` that are numbered ("11.0"; not "11.batch", "11.extern").
std::vector<std::string> ParseNumberedSteps(std::string_view output);

/// Tasks by host, of `sattach --layout ID.STEP`. Empty where the output is none.
std::map<std::string, std::vector<int32_t>> ParseTaskLayout(std::string_view output);

/// Errors: kInvalidArgument where `id` has another form than a job's or step's.
Status CheckSlurmId(const std::string& id);

/// Asks squeue and, for the tasks, sattach. Errors: see FindJob.
Result<JobNodes> FindSlurmJob(const std::string& id);

}  // namespace lockstep::control
