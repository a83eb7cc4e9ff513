#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::evidence {

/// One element of a topology file, as it stands there.
struct TopologyNode {
  std::string kind;  ///< "system", "cpu", "pci", "gpu", "nic", "net", "nvlink", "c2c", ...
  std::vector<std::pair<std::string, std::string>> attributes;
  int32_t parent = -1;  ///< Into NcclTopology::nodes; -1 = the root.
  std::vector<int32_t> children;
  uint64_t line = 0;

  /// Its value; "" = it has none.
  std::string_view Get(std::string_view name) const {
    for (const auto& [key, value] : attributes) {
      if (key == name) return value;
    }
    return {};
  }
};

/// Whether it is such a device; hand-written files tell it by the PCI class only.
bool IsGpuDevice(const TopologyNode& node);
bool IsNetworkDevice(const TopologyNode& node);

/// What NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads: a machine's tree of buses.
struct NcclTopology {
  std::string file;
  std::vector<TopologyNode> nodes;  ///< [0] is the system.
};

/// What a node is for people: "GPU 3", "NIC mlx5_0", "PCI switch 0000:01:00.0", "CPU 0".
std::string TopologyNodeName(const NcclTopology& topology, int32_t node);

/// One search result of NCCL_GRAPH_DUMP_FILE.
struct NcclGraph {
  int32_t id = -1;  ///< 0 ring, 1 tree, 2 collnet, 3 nvls.
  int32_t channel_count = 0;
  std::string speed_intra, speed_inter;            ///< GB/s, as printed.
  std::string type_intra, type_inter;              ///< "NVL", "PIX", "SYS", ...
  std::vector<std::vector<std::string>> channels;  ///< "net 0", "gpu 3", in the order of the ring.
};

struct NcclGraphs {
  std::string file;
  std::vector<NcclGraph> graphs;
};

}  // namespace lockstep::evidence
