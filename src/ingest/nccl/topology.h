#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence/nccl_state.h"
#include "model/evidence/nccl_topology.h"

namespace lockstep::ingest {

/// Whether these first bytes are a topology ("<system>") or a graph file ("<graphs>") of NCCL's.
bool LooksLikeNcclTopology(std::string_view head);
bool LooksLikeNcclGraphs(std::string_view head);

/// Reads a topology file, NCCL's own or one written by hand. Source of the format: docs/formats/nccl-topology.md.
/// Errors: kCorruptData (not XML, with the line), kUnsupported (other XML, or one with a document type),
/// kLimitExceeded (above 16 MiB, 200,000 elements or 32 levels).
Result<evidence::NcclTopology> ReadNcclTopology(std::string_view text, std::string_view file_name);

/// Reads a graph file. Errors: as above.
Result<evidence::NcclGraphs> ReadNcclGraphs(std::string_view text, std::string_view file_name);

/// What makes communication slow in these machines, by their files: adapters far from GPUs, no GPUDirect, narrower
/// links or fewer NVLinks than siblings, slower adapters, machines that differ. Deterministic.
std::vector<evidence::NcclLogFinding> FindTopologyProblems(const std::vector<evidence::NcclTopology>& topologies);

}  // namespace lockstep::ingest
