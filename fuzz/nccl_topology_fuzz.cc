// A topology or graph file of NCCL's: nodes form a tree in the file's order, and every finding can be shown.
#include <string>
#include <string_view>

#include "fuzz.h"
#include "ingest/nccl/topology.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ingest::LooksLikeNcclTopology(text);
  if (const auto topology = ingest::ReadNcclTopology(text, "a.xml")) {
    FUZZ_CHECK(!topology->nodes.empty() && topology->nodes[0].parent == -1);
    for (size_t i = 1; i < topology->nodes.size(); ++i) {
      const int32_t parent = topology->nodes[i].parent;
      FUZZ_CHECK(parent >= 0 && static_cast<size_t>(parent) < i);
      FUZZ_CHECK(!evidence::TopologyNodeName(*topology, static_cast<int32_t>(i)).empty());
    }
    for (const auto& finding : ingest::FindTopologyProblems({*topology, *topology})) {
      FUZZ_CHECK(!finding.kind.empty() && !finding.text.empty() && finding.kind != "topology_mismatch");
    }
  } else {
    FUZZ_CHECK(!topology.error().message.empty());
  }
  if (const auto graphs = ingest::ReadNcclGraphs(text, "a.xml"); !graphs) FUZZ_CHECK(!graphs.error().message.empty());
  return 0;
}
