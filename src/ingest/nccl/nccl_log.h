#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/evidence/nccl_job.h"
#include "model/evidence/nccl_state.h"

namespace lockstep::ingest {

/// Whether these first bytes of a file hold a line of NCCL's: "host:pid:tid [0] NCCL INFO ..." or "NCCL version ...".
bool LooksLikeNcclLog(std::string_view head);

/// Reads the lines of NCCL in a log, whatever else is in it: launchers' prefixes, colours, several ranks, binary bytes.
/// `file_name` is for messages; `rank` is the process's where the caller knows it (from the file's name). Never fails:
/// what is not understood is counted. Positions refer to files[0]; communicators are joined by MergeNcclLogs.
/// Source of the grammar: docs/formats/nccl-log.md. Cost: O(bytes); memory is bounded by limits on what is kept.
evidence::NcclJob ReadNcclLog(std::string_view text, std::string_view file_name, std::optional<int32_t> rank = {});

/// Joins the files of one job: processes by host and pid, communicators by commId (else by size and order). The result
/// does not depend on the order of `logs` but for the order of `files`.
evidence::NcclJob MergeNcclLogs(std::vector<evidence::NcclJob> logs);

/// Problems of a job, or signs of them: the worst first, then by time and place. Deterministic.
/// Source of the rules: docs/formats/nccl-log.md#findings.
std::vector<evidence::NcclLogFinding> FindNcclProblems(const evidence::NcclJob& job);

}  // namespace lockstep::ingest
