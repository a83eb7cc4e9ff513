#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::evidence {

/// One rank of a communicator as NCCL's RAS knows it.
struct RasRank {
  int32_t rank = 0;
  std::string host;
  int32_t pid = 0;
  std::string status;  ///< "RUNNING", "INIT", "FINALIZE", "ABORT", "MISSING", "DEAD", ...
  std::vector<std::pair<std::string, int64_t>> operation_counts;  ///< Launched, by kind ("AllReduce"); enqueue side.
};

struct RasCommunicator {
  std::string hash;
  int64_t size = 0;
  std::vector<RasRank> ranks;
  std::vector<int32_t> missing_ranks;
  std::vector<int32_t> dead_ranks;
  /// Text only: ranks that are not listed, by how far they are: (ranks, launched up to operation).
  std::vector<std::pair<int64_t, int64_t>> unlisted_counts;
};

/// A process of the job as RAS names it.
struct RasPeer {
  std::string host;  ///< By its address.
  int32_t pid = 0;
};

/// One answer of NCCL's RAS. Its "OK" proves nothing: it counts launches, not completions.
struct RasReport {
  std::string source;  ///< File, or host:port.
  int64_t collected_unix_ns = 0;
  std::string nccl_version;
  std::vector<RasCommunicator> communicators;
  std::optional<int32_t> rank_count;  ///< Of the job, as far as RAS tells.
  std::vector<RasPeer> dead_peers;    ///< Told while watching (monitor mode).
  std::vector<std::string> errors;    ///< In RAS's words.
  std::vector<std::string> warnings;
};

/// What a job's NCCL_DEBUG logs tell, as far as a verdict needs it; the whole is ingest/nccl's.
struct NcclLogFinding {
  std::string kind;  ///< "version_mismatch", "missing_rank", "ib_completion", ...: docs/formats/nccl-log.md#findings.
  std::string severity;  ///< "error", "warning", "info".
  std::vector<int32_t> ranks;
  std::string peer;
  int64_t time_unix_ns = 0;  ///< 0 = not told.
  std::string text;          ///< A sentence of ours.
  std::string file;
  uint64_t line = 0;   ///< From 1; 0 = the whole file.
  std::string remedy;  ///< What to try; "" = nothing known.
  bool first = false;  ///< The job's first error in time, where times or one file's order tell.
};

/// Whether it is an error of the network between ranks: adapters, links, sockets, the network's plugin.
bool IsTransportError(const NcclLogFinding& finding);

}  // namespace lockstep::evidence
