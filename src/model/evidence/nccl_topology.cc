#include "model/evidence/nccl_topology.h"

namespace lockstep::evidence {
namespace {

const TopologyNode& At(const NcclTopology& topology, int32_t idx) { return topology.nodes[static_cast<size_t>(idx)]; }

const TopologyNode* Child(const NcclTopology& topology, const TopologyNode& node, std::string_view kind) {
  for (const int32_t child : node.children) {
    if (At(topology, child).kind == kind) return &At(topology, child);
  }
  return nullptr;
}

}  // namespace

bool IsGpuDevice(const TopologyNode& node) {
  const std::string_view type = node.Get("class");
  return node.kind == "pci" && (type.starts_with("0x0302") || type.starts_with("0x0300") || type.starts_with("0x1200"));
}

bool IsNetworkDevice(const TopologyNode& node) {
  return node.kind == "nic" || (node.kind == "pci" && node.Get("class").starts_with("0x02"));
}

std::string TopologyNodeName(const NcclTopology& topology, int32_t idx) {
  const TopologyNode& node = At(topology, idx);
  const auto with = [&](const char* name, std::string_view value) {
    return value.empty() ? std::string(name) : std::string(name) + " " + std::string(value);
  };
  if (node.kind == "cpu") return with("CPU", node.Get("numaid"));
  if (node.kind == "gpu") return with("GPU", node.Get("dev"));
  if (node.kind == "net") return with("network", node.Get("name"));
  if (node.kind == "nic") return "NIC";
  if (node.kind != "pci") return node.kind;
  if (IsGpuDevice(node)) {
    const TopologyNode* gpu = Child(topology, node, "gpu");
    return gpu != nullptr ? with("GPU", gpu->Get("dev")) : with("GPU", node.Get("busid"));
  }
  if (IsNetworkDevice(node)) {
    const TopologyNode* nic = Child(topology, node, "nic");
    const TopologyNode* net = nic != nullptr ? Child(topology, *nic, "net") : nullptr;
    return net != nullptr ? with("NIC", net->Get("name")) : with("NIC", node.Get("busid"));
  }
  return with(node.Get("class").starts_with("0x0604") ? "PCI switch" : "PCI", node.Get("busid"));
}

}  // namespace lockstep::evidence
