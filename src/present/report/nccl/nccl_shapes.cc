// Rings, trees, transports and machines, arranged for drawing.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "present/report/nccl/nccl_report.h"

namespace lockstep::report {
namespace {

using evidence::NcclCommunicator;
using evidence::NcclConnection;
using evidence::NcclJob;
using evidence::NcclMember;
using evidence::NcclTopology;
using evidence::NcclTransport;
using evidence::TopologyNode;

const TopologyNode& At(const NcclTopology& topology, int32_t idx) { return topology.nodes[static_cast<size_t>(idx)]; }

/// Elements that are drawn: devices and buses. "gpu" and "nic" say in their parent's line what they have to say.
bool IsDrawn(const TopologyNode& node) { return node.kind == "cpu" || node.kind == "pci" || node.kind == "net"; }

void Draw(const NcclTopology& topology, int32_t idx, std::vector<bool>& more, std::vector<TopologyLine>& lines) {
  std::vector<int32_t> drawn;
  // "nic" is stepped over to its "net" elements.
  const auto collect = [&](const auto& self, int32_t from, int depth) -> void {
    for (const int32_t child : At(topology, from).children) {
      if (IsDrawn(At(topology, child))) {
        drawn.push_back(child);
      } else if (depth < 32) {
        self(self, child, depth + 1);
      }
    }
  };
  collect(collect, idx, 0);
  for (size_t i = 0; i < drawn.size(); ++i) {
    const bool last = i + 1 == drawn.size();
    lines.push_back({.more = more, .node = drawn[i], .last = last});
    more.push_back(!last);
    Draw(topology, drawn[i], more, lines);
    more.pop_back();
  }
}

std::string TransportName(const NcclJob& job, const NcclConnection& connection) {
  const std::string& detail = job.texts[connection.detail];
  switch (connection.transport) {
    case NcclTransport::kP2p: return detail.empty() ? "P2P" : "P2P " + detail;
    case NcclTransport::kSharedMemory: return detail.empty() ? "shared memory" : "shared memory " + detail;
    case NcclTransport::kNetwork: return "network " + detail + (connection.gpu_direct ? ", GPUDirect" : "");
    case NcclTransport::kCollNet: return "CollNet " + detail;
    case NcclTransport::kOther: break;
  }
  return detail;
}

}  // namespace

std::string NumberRanges(const std::vector<int32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[i]);
    if (end - i > 1) text += (end - i > 2 ? "-" : ", ") + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

std::vector<NcclRing> RingsOf(const NcclJob& job, const NcclCommunicator& communicator) {
  std::map<std::vector<int32_t>, std::vector<int32_t>> channels_of;
  for (const uint32_t idx : communicator.members) {
    for (const auto& [channel, order] : job.members[idx].rings) channels_of[order].push_back(channel);
  }
  std::vector<NcclRing> rings;
  for (auto& [order, channels] : channels_of) {
    std::sort(channels.begin(), channels.end());
    channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
    rings.push_back({.channels = channels, .order = order});
  }
  std::sort(rings.begin(), rings.end(), [](const auto& a, const auto& b) { return a.channels < b.channels; });
  return rings;
}

std::vector<NcclTree> TreesOf(const NcclJob& job, const NcclCommunicator& communicator) {
  struct Node {
    int32_t rank, up;
    std::vector<int32_t> down;
    bool operator<(const Node& other) const {
      return std::tie(rank, up, down) < std::tie(other.rank, other.up, other.down);
    }
  };
  std::map<int32_t, std::vector<Node>> by_channel;
  for (const uint32_t idx : communicator.members) {
    const NcclMember& member = job.members[idx];
    if (member.rank < 0 || member.rank >= communicator.rank_count) continue;
    for (const evidence::NcclTreeNode& node : member.trees) {
      by_channel[node.channel].push_back({member.rank, node.up, node.down});
    }
  }
  std::map<std::vector<Node>, std::vector<int32_t>> channels_of;
  for (auto& [channel, nodes] : by_channel) {
    std::sort(nodes.begin(), nodes.end());
    channels_of[std::move(nodes)].push_back(channel);
  }
  std::vector<NcclTree> trees;
  for (const auto& [nodes, channels] : channels_of) {
    NcclTree& tree = trees.emplace_back();
    tree.channels = channels;
    for (const Node& node : nodes) {
      tree.down[node.rank] = node.down;
      const auto parent = std::lower_bound(nodes.begin(), nodes.end(), node.up,
                                           [](const Node& other, int32_t rank) { return other.rank < rank; });
      const bool has_known_parent = node.up >= 0 && parent != nodes.end() && parent->rank == node.up;
      if (!has_known_parent) tree.roots.push_back(node.rank);
    }
  }
  std::sort(trees.begin(), trees.end(), [](const auto& a, const auto& b) { return a.channels < b.channels; });
  return trees;
}

std::vector<std::pair<std::string, uint64_t>> TransportsOf(const NcclJob& job, const NcclCommunicator& communicator) {
  std::map<std::string, uint64_t> counts;
  for (const uint32_t idx : communicator.members) {
    for (const NcclConnection& connection : job.members[idx].connections) ++counts[TransportName(job, connection)];
  }
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::vector<TopologyLine> DrawTopology(const NcclTopology& topology) {
  std::vector<TopologyLine> lines;
  std::vector<bool> more;
  if (!topology.nodes.empty()) Draw(topology, 0, more, lines);
  return lines;
}

std::string TopologyNodeFacts(const NcclTopology& topology, int32_t idx) {
  const TopologyNode& node = At(topology, idx);
  std::vector<std::string> facts;
  const auto add = [&](std::string text) { facts.push_back(std::move(text)); };
  if (node.kind == "cpu" && !node.Get("vendor").empty()) {
    add(std::string(node.Get("vendor")) + " " + std::string(node.Get("arch")));
  }
  if (node.kind == "pci") {
    const std::string_view width = node.Get("link_width"), speed = node.Get("link_speed");
    if (!width.empty() && width != "0") {
      add("x" + std::string(width) + (speed.empty() ? "" : " " + std::string(speed.substr(0, speed.find(" PCIe")))));
    }
    if (IsGpuDevice(node) || IsNetworkDevice(node)) add(std::string(node.Get("busid")));
    for (const int32_t child : node.children) {
      const TopologyNode& gpu = At(topology, child);
      if (gpu.kind != "gpu") continue;
      if (!gpu.Get("rank").empty()) add("rank " + std::string(gpu.Get("rank")));
      int64_t links = 0;
      for (const int32_t link : gpu.children) {
        if (At(topology, link).kind == "nvlink") {
          links += std::strtol(std::string(At(topology, link).Get("count")).c_str(), nullptr, 10);
        }
      }
      if (links > 0) add(fmt::format("{} NVLinks", links));
      if (gpu.Get("gdr") == "0") add("no GPUDirect");
    }
  }
  if (node.kind == "net") {
    const double speed = std::strtod(std::string(node.Get("speed")).c_str(), nullptr);
    if (speed > 0) add(fmt::format("{:g} Gbit/s", speed / 1000));
    if (!node.Get("gdr").empty()) add(node.Get("gdr") == "0" ? "no GPUDirect" : "GPUDirect");
  }
  std::string text;
  for (const std::string& fact : facts) text += (text.empty() ? "" : ", ") + fact;
  return text;
}

}  // namespace lockstep::report
