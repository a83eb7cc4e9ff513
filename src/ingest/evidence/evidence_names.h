#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::ingest {

/// The rank that a log's, stack dump's or flight record's path tells: "log_3.txt", "rank3.err", "stdout.3",
/// "nccl_trace_rank_3", a folder "3" above "stdout.log" (torchrun's), a folder "rank3-node-a-pid4711". Numbers of jobs
/// and processes ("slurm-4711.out", "nccl.host.4711.log") are none.
std::optional<int32_t> RankOfEvidencePath(std::string_view path);

/// What the name of a process's folder in an evidence folder tells: "rank3-node-a-pid4711", "node-a-pid4711".
struct ProcessFolderName {
  std::optional<int32_t> rank;
  std::string host;
  int32_t pid = 0;
};
std::optional<ProcessFolderName> ReadProcessFolderName(std::string_view folder);

/// Names of files that are never evidence: programs, documents, pictures, tables.
bool IsNeverEvidence(std::string_view path);

/// The part of a path before its last component, without the slash; "" = there is none.
std::string_view FolderOf(std::string_view path);

}  // namespace lockstep::ingest
