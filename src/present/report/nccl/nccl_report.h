#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "model/evidence/nccl_evidence.h"
#include "model/ledger.h"

namespace lockstep::report {

struct NcclTextOptions {
  bool colour = false;
  int columns = 100;
  bool unicode = true;
  bool all = false;       ///< Every communicator, process and channel, not only the first ones.
  bool topology = false;  ///< Also the machines' trees.
};

/// Findings, then what the job is: versions, networks, communicators, transports, rings and trees.
void WriteNcclText(const evidence::NcclEvidence& evidence, const NcclTextOptions& options, std::ostream& out);
/// One object, "lockstep.nccl_log/1" (docs/json.md, docs/schema/nccl-log-1.schema.json).
void WriteNcclJson(const evidence::NcclEvidence& evidence, std::ostream& out);
/// Its member "data".
std::string NcclDataJson(const evidence::NcclEvidence& evidence);
/// Its member "ledger": files that could not be read, and lines of unknown kinds.
model::Ledger NcclLedger(const evidence::NcclEvidence& evidence);
/// Its member "partial": a file could not be read whole.
bool IsPartial(const evidence::NcclEvidence& evidence);

/// Rings or trees of one communicator, channels with equal ones together.
struct NcclRing {
  std::vector<int32_t> channels;
  std::vector<int32_t> order;  ///< Closes on its first.
};
struct NcclTree {
  std::vector<int32_t> channels;
  std::map<int32_t, std::vector<int32_t>> down;  ///< Of each rank that tells.
  std::vector<int32_t> roots;  ///< Ranks without a rank above, and ranks whose rank above is not known.
};
std::vector<NcclRing> RingsOf(const evidence::NcclJob& job, const evidence::NcclCommunicator& communicator);
std::vector<NcclTree> TreesOf(const evidence::NcclJob& job, const evidence::NcclCommunicator& communicator);

/// Connections of a communicator by what carries them: "network AWS Libfabric, GPUDirect" -> count, the most first.
std::vector<std::pair<std::string, uint64_t>> TransportsOf(const evidence::NcclJob& job,
                                                           const evidence::NcclCommunicator& communicator);

/// "0-3, 7" of ascending numbers; whole.
std::string NumberRanges(const std::vector<int32_t>& numbers);

/// Indices of the lines "+- name" that draw a machine: what is before the name, and the node.
struct TopologyLine {
  std::vector<bool> more;  ///< For each level above: whether another sibling follows there.
  int32_t node = 0;
  bool last = false;  ///< Of its siblings.
};
std::vector<TopologyLine> DrawTopology(const evidence::NcclTopology& topology);
/// What is worth telling of a node beside its name: "x16 32 GT/s", "400 Gbit/s, GPUDirect", "18 NVLinks"; "" = nothing.
std::string TopologyNodeFacts(const evidence::NcclTopology& topology, int32_t node);

}  // namespace lockstep::report
