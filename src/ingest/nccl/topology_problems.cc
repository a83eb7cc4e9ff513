#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "ingest/nccl/problems.h"
#include "ingest/nccl/topology.h"
#include "ingest/nccl/words.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclLogFinding;
using evidence::NcclTopology;
using evidence::TopologyNode;
using evidence::TopologyNodeName;

const TopologyNode& At(const NcclTopology& topology, int32_t idx) { return topology.nodes[static_cast<size_t>(idx)]; }

const TopologyNode* Child(const NcclTopology& topology, const TopologyNode& node, std::string_view kind) {
  for (const int32_t child : node.children) {
    if (At(topology, child).kind == kind) return &At(topology, child);
  }
  return nullptr;
}

/// "16.0 GT/s PCIe", "16": the number; nullopt when it is empty or 0, which means unknown.
std::optional<double> Quantity(std::string_view text) {
  const std::string copy(text.substr(0, 32));
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !(value > 0) || value > 1e9) return {};
  return value;
}

std::string Shown(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

class Machine {
 public:
  Machine(const NcclTopology& topology, std::vector<NcclLogFinding>& findings)
      : topology_(topology), findings_(findings) {
    for (int32_t i = 0; i < static_cast<int32_t>(topology.nodes.size()); ++i) {
      const TopologyNode& node = At(topology, i);
      if (node.kind == "pci" && evidence::IsGpuDevice(node)) gpus_.push_back(i);
      if (evidence::IsNetworkDevice(node)) nics_.push_back(i);
      if (node.kind == "net") nets_.push_back(i);
    }
  }

  void Check() {
    CheckDistance();
    CheckDirect();
    CheckSiblings(gpus_, "link_width", "narrow_link", " lanes");
    CheckSiblings(gpus_, "link_speed", "slow_link", " GT/s");
    CheckSiblings(Adapters(), "link_width", "narrow_link", " lanes");
    CheckSiblings(Adapters(), "link_speed", "slow_link", " GT/s");
    CheckSiblings(nets_, "speed", "slow_adapter", " Mbit/s");
    CheckNvlinks();
  }

 private:
  void Add(const char* kind, const char* severity, uint64_t line, std::string text, const char* remedy) {
    NcclLogFinding& finding = findings_.emplace_back();
    finding.kind = kind;
    finding.severity = severity;
    finding.file = topology_.file;
    finding.line = line;
    finding.text = std::move(text);
    finding.remedy = remedy;
  }

  std::vector<int32_t> Adapters() const {
    std::vector<int32_t> adapters;
    for (const int32_t nic : nics_) {
      if (At(topology_, nic).kind == "pci") adapters.push_back(nic);
    }
    return adapters;
  }

  std::string Names(const std::vector<int32_t>& nodes) const {
    std::string text;
    for (size_t i = 0; i < nodes.size() && i < 8; ++i)
      text += (i == 0 ? "" : ", ") + TopologyNodeName(topology_, nodes[i]);
    if (nodes.size() > 8) text += " and " + std::to_string(nodes.size() - 8) + " more";
    return text;
  }

  /// The uppermost PCI element that this one lies below: its switch, or root port.
  int32_t PciRoot(int32_t idx) const {
    int32_t root = -1;
    for (int32_t i = At(topology_, idx).parent; i >= 0; i = At(topology_, i).parent) {
      if (At(topology_, i).kind == "pci") root = i;
    }
    return root;
  }

  void CheckDistance() {
    if (gpus_.empty() || nics_.empty()) return;
    std::set<int32_t> roots_with_nic;
    for (const int32_t nic : nics_) roots_with_nic.insert(PciRoot(nic));
    std::vector<int32_t> far;
    for (const int32_t gpu : gpus_) {
      const int32_t root = PciRoot(gpu);
      if (root < 0 || roots_with_nic.count(root) == 0) far.push_back(gpu);
    }
    if (far.empty()) return;
    const bool all = far.size() == gpus_.size();
    Add("nic_far", all ? "info" : "warning", At(topology_, far.front()).line,
        (all ? std::string("No GPU has a network adapter under its PCI switch")
             : Names(far) + ": no network adapter under the same PCI switch, other GPUs have one") +
            "; their traffic goes through the CPU, mostly without GPUDirect RDMA.",
        all ? "in a virtual machine give NCCL its provider's topology file (NCCL_TOPO_FILE)"
            : "check that the adapter is there (lspci -tv), or that NCCL_TOPO_FILE is of this machine");
  }

  void CheckDirect() {
    for (const char* kind : {"gpu", "net"}) {
      std::vector<int32_t> without;
      size_t count = 0;
      for (int32_t i = 0; i < static_cast<int32_t>(topology_.nodes.size()); ++i) {
        const TopologyNode& node = At(topology_, i);
        if (node.kind != kind || node.Get("gdr").empty()) continue;
        ++count;
        if (node.Get("gdr") == "0") without.push_back(i);
      }
      if (without.empty()) continue;
      Add("gpu_direct_off", without.size() < count || count > 1 ? "warning" : "info",
          At(topology_, without.front()).line, Names(without) + ": gdr=\"0\", no GPUDirect RDMA.",
          "load nvidia_peermem or use DMA-BUF (Linux 5.12, open kernel modules); an Ethernet device never has it");
    }
  }

  /// Equal devices should have equal links. Those of other makers are not siblings.
  void CheckSiblings(const std::vector<int32_t>& nodes, std::string_view attribute, const char* kind,
                     const char* unit) {
    std::map<std::string, std::vector<int32_t>> siblings;
    for (const int32_t idx : nodes) {
      const TopologyNode& node = At(topology_, idx);
      std::string key = std::string(node.Get("class")) + "/" + std::string(node.Get("vendor")) + "/" +
                        std::string(node.Get("device"));
      if (node.kind == "net") key += node.Get("name").substr(0, node.Get("name").find_first_of("0123456789"));
      siblings[key].push_back(idx);
    }
    for (const auto& [key, members] : siblings) {
      double best = 0;
      for (const int32_t idx : members) best = std::max(best, Quantity(At(topology_, idx).Get(attribute)).value_or(0));
      std::vector<int32_t> less;
      double worst = best;
      for (const int32_t idx : members) {
        const std::optional<double> value = Quantity(At(topology_, idx).Get(attribute));
        if (!value || *value >= best) continue;
        less.push_back(idx);
        worst = std::min(worst, *value);
      }
      if (less.empty()) continue;
      Add(kind, "warning", At(topology_, less.front()).line,
          Names(less) + ": " + Shown(worst) + unit + ", others of the kind have " + Shown(best) + ".",
          std::string_view(kind) == "slow_adapter" ? "check cable, port and switch: ibstat, ethtool"
                                                   : "reseat the card or riser; compare lspci -vv LnkSta with LnkCap");
    }
  }

  void CheckNvlinks() {
    std::map<int32_t, int64_t> counts;
    int64_t best = 0;
    for (const int32_t gpu : gpus_) {
      const TopologyNode* element = Child(topology_, At(topology_, gpu), "gpu");
      if (element == nullptr) continue;
      int64_t count = 0;
      for (const int32_t link : element->children) {
        if (At(topology_, link).kind != "nvlink") continue;
        Words words(At(topology_, link).Get("count"));
        count += std::clamp<int64_t>(words.TakeNumber().value_or(0), 0, 1000);
      }
      counts[gpu] = count;
      best = std::max(best, count);
    }
    std::vector<int32_t> fewer;
    int64_t worst = best;
    for (const auto& [gpu, count] : counts) {
      if (count >= best) continue;
      fewer.push_back(gpu);
      worst = std::min(worst, count);
    }
    if (fewer.empty()) return;
    Add("fewer_nvlinks", "warning", At(topology_, fewer.front()).line,
        Names(fewer) + ": " + std::to_string(worst) + " NVLinks, other GPUs have " + std::to_string(best) + ".",
        "nvidia-smi nvlink -s and -e on this node; dmesg for Xid 74; take the node out");
  }

  const NcclTopology& topology_;
  std::vector<NcclLogFinding>& findings_;
  std::vector<int32_t> gpus_, nics_, nets_;
};

/// What two machines of a kind have in common: all but addresses, ids and the rank that wrote the file.
std::string Shape(const NcclTopology& topology) {
  static const std::set<std::string_view> kOwn = {"busid", "target", "guid",    "host_hash", "rank",
                                                  "dev",   "port",   "latency", "affinity",  "version"};
  std::string shape;
  for (const TopologyNode& node : topology.nodes) {
    shape += std::to_string(node.children.size()) + node.kind;
    for (const auto& [name, value] : node.attributes) {
      if (kOwn.count(name) == 0) shape += " " + name + "=" + value;
    }
    shape += '\n';
  }
  return shape;
}

}  // namespace

std::vector<NcclLogFinding> FindTopologyProblems(const std::vector<NcclTopology>& topologies) {
  std::vector<NcclLogFinding> findings;
  std::map<std::string, std::vector<const NcclTopology*>> shapes;
  for (const NcclTopology& topology : topologies) {
    Machine(topology, findings).Check();
    shapes[Shape(topology)].push_back(&topology);
  }
  if (shapes.size() > 1) {
    const auto usual = std::max_element(shapes.begin(), shapes.end(),
                                        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    for (auto it = shapes.begin(); it != shapes.end(); ++it) {
      if (it == usual) continue;
      NcclLogFinding& finding = findings.emplace_back();
      finding.kind = "topology_mismatch";
      finding.severity = "warning";
      finding.file = it->second.front()->file;
      finding.text = "The machine of " + finding.file + " differs from that of " + usual->second.front()->file +
                     " beyond addresses.";
      finding.remedy = "if both are of one job, see which devices, links or attributes differ: `diff`";
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const NcclLogFinding& a, const NcclLogFinding& b) {
    const bool a_info = a.severity == "info", b_info = b.severity == "info";
    return std::tie(a_info, a.file, a.line, a.kind) < std::tie(b_info, b.file, b.line, b.kind);
  });
  return findings;
}

}  // namespace lockstep::ingest
