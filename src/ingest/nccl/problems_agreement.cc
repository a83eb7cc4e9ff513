#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "ingest/nccl/problems.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclCommunicator;
using evidence::NcclConnection;
using evidence::NcclDirection;
using evidence::NcclJob;
using evidence::NcclMember;
using evidence::NcclPlace;
using evidence::NcclProcess;
using evidence::NcclTransport;

/// Processes by what they say, and where the first of each says it.
struct Votes {
  struct Vote {
    std::vector<uint32_t> processes;
    NcclPlace place;
  };
  std::map<std::string, Vote> values;

  void Add(const std::string& value, uint32_t process, NcclPlace place) {
    Vote& vote = values[value];
    if (vote.processes.empty()) vote.place = place;
    if (vote.processes.empty() || vote.processes.back() != process) vote.processes.push_back(process);
  }
  bool differ() const { return values.size() > 1; }

  /// The value of the most; of equals the first in order.
  const std::string& Usual() const {
    return std::max_element(
               values.begin(), values.end(),
               [](const auto& a, const auto& b) { return a.second.processes.size() < b.second.processes.size(); })
        ->first;
  }
  /// The rarest value's processes: the likeliest to be wrong.
  const Vote& Odd() const {
    return std::min_element(
               values.begin(), values.end(),
               [](const auto& a, const auto& b) { return a.second.processes.size() < b.second.processes.size(); })
        ->second;
  }
};

/// "2.27.3 on ranks 0-6; 2.27.7 on rank 7", at most four.
std::string Tell(const ProblemList& list, const Votes& votes) {
  std::string text;
  size_t count = 0;
  for (const auto& [value, vote] : votes.values) {
    if (++count > 4) break;
    text += (text.empty() ? "" : "; ") + (value.empty() ? "none" : value.substr(0, 200)) + " on " +
            list.Who(vote.processes);
  }
  if (votes.values.size() > 4) text += "; and " + std::to_string(votes.values.size() - 4) + " more";
  return text;
}

/// Those whose value is not the usual one.
std::vector<uint32_t> Others(const Votes& votes) {
  std::vector<uint32_t> processes;
  const std::string& usual = votes.Usual();
  for (const auto& [value, vote] : votes.values) {
    if (value != usual) processes.insert(processes.end(), vote.processes.begin(), vote.processes.end());
  }
  return processes;
}

template <typename Value, typename Place>
Votes VotesOf(const NcclJob& job, Value value, Place place) {
  Votes votes;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    const NcclProcess& process = job.processes[i];
    if (const std::string& text = process.*value; !text.empty()) votes.Add(text, i, process.*place);
  }
  return votes;
}

bool IsAdapterNetwork(std::string_view network) {
  return network == "IB" || network.find("Libfabric") != std::string_view::npos ||
         network.find("OFI") != std::string_view::npos;
}

const evidence::NcclSetting* SettingOf(const NcclProcess& process, std::string_view name) {
  for (const evidence::NcclSetting& setting : process.settings) {
    if (setting.name == name && !setting.by_plugin) return &setting;
  }
  return nullptr;
}

}  // namespace

void FindVersionMismatch(ProblemList& list) {
  const Votes votes = VotesOf(list.job(), &NcclProcess::version, &NcclProcess::version_place);
  if (!votes.differ()) return;
  const std::vector<uint32_t> others = Others(votes);
  list.Add("version_mismatch", "error", others, votes.Odd().place, "NCCL's versions differ: " + Tell(list, votes) + ".",
           "use one image on all nodes");
}

void FindNetworkProblems(ProblemList& list) {
  const NcclJob& job = list.job();
  const Votes networks = VotesOf(job, &NcclProcess::network, &NcclProcess::network_place);
  if (networks.differ()) {
    list.Add("network_mismatch", "error", Others(networks), networks.Odd().place,
             "Networks differ: " + Tell(list, networks) + ".",
             "find out why the plugin or the adapters are not found there: ibstat, NCCL_NET, NCCL_IB_HCA, the plugin's "
             "lines");
  }
  Votes interfaces;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    const NcclProcess& process = job.processes[i];
    if (!process.bootstrap.name.empty()) interfaces.Add(process.bootstrap.name, i, process.bootstrap_place);
  }
  if (interfaces.differ()) {
    list.Add("interface_mismatch", "warning", Others(interfaces), interfaces.Odd().place,
             "Ranks meet by different interfaces: " + Tell(list, interfaces) + ".",
             "set NCCL_SOCKET_IFNAME to an interface that every node has and that all can reach");
  }
  std::vector<uint32_t> on_sockets, disabled;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    const NcclProcess& process = job.processes[i];
    if (process.network != "Socket") continue;
    const evidence::NcclSetting* setting = SettingOf(process, "NCCL_IB_DISABLE");
    if (setting != nullptr && setting->value != "0") {
      disabled.push_back(i);
    } else if (!process.adapters.empty()) {
      on_sockets.push_back(i);
    }
  }
  if (!on_sockets.empty()) {
    list.Add("socket_network", "warning", on_sockets, job.processes[on_sockets.front()].network_place,
             list.Who(on_sockets) + ": the network is Socket although the machine has InfiniBand or RoCE adapters (" +
                 job.processes[on_sockets.front()].adapters.front().name + "): the commonest silent slowdown.",
             "unset NCCL_NET and NCCL_NET_PLUGIN, check NCCL_IB_HCA, and that the container sees /dev/infiniband");
  }
  if (!disabled.empty()) {
    list.Add("socket_network", "warning", disabled, job.processes[disabled.front()].network_place,
             list.Who(disabled) + ": the network is Socket because NCCL_IB_DISABLE is set.",
             "unset NCCL_IB_DISABLE where the machine has InfiniBand or RoCE");
  }
  std::vector<uint32_t> without;
  bool others_have = false;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    if (job.processes[i].no_adapter_found) without.push_back(i);
    others_have |= !job.processes[i].adapters.empty();
  }
  if (!without.empty() && others_have) {
    list.Add("adapter_missing", "error", without, {},
             list.Who(without) + " on " + list.Hosts(without) +
                 ": no InfiniBand or RoCE adapter is found, though other ranks have some.",
             "ibstat on these nodes; containers need /dev/infiniband and IPC_LOCK");
  }
}

void FindEnvironmentMismatch(ProblemList& list) {
  // Different values of these make ranks build different channels or choose different algorithms: a hang or garbage.
  constexpr std::array<std::string_view, 10> kMustAgree = {
      "NCCL_ALGO",     "NCCL_PROTO", "NCCL_MIN_NCHANNELS",  "NCCL_MAX_NCHANNELS", "NCCL_BUFFSIZE",
      "NCCL_NTHREADS", "NCCL_NET",   "NCCL_COLLNET_ENABLE", "NCCL_NVLS_ENABLE",   "NCCL_CROSS_NIC"};
  constexpr std::array<std::string_view, 5> kMayDiffer = {"NCCL_DEBUG_FILE", "NCCL_HOSTID", "NCCL_TOPO_DUMP_FILE",
                                                          "NCCL_GRAPH_DUMP_FILE", "NCCL_COMM_ID"};
  const NcclJob& job = list.job();
  std::map<std::string, Votes> by_name;
  std::vector<uint32_t> speaking;  // Those that tell of their environment at all.
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    bool told = false;
    for (const evidence::NcclSetting& setting : job.processes[i].settings) {
      if (setting.by_plugin) continue;
      told = true;
      by_name[setting.name].Add(setting.value, i, setting.place);
    }
    if (told) speaking.push_back(i);
  }
  for (auto& [name, votes] : by_name) {
    if (std::find(kMayDiffer.begin(), kMayDiffer.end(), name) != kMayDiffer.end()) continue;
    const bool must_agree = std::find(kMustAgree.begin(), kMustAgree.end(), name) != kMustAgree.end();
    if (votes.differ()) {
      list.Add("environment_mismatch", must_agree ? "error" : "warning", Others(votes), votes.Odd().place,
               name + " differs: " + Tell(list, votes) + ".",
               "set it equally for all ranks: in the launcher's environment, not in one node's shell");
      continue;
    }
    // A setting is printed when it is first used, so only those that all ranks use can be missed.
    if (!must_agree) continue;
    const std::vector<uint32_t>& having = votes.values.begin()->second.processes;
    std::vector<uint32_t> missing;
    std::set_difference(speaking.begin(), speaking.end(), having.begin(), having.end(), std::back_inserter(missing));
    if (missing.empty()) continue;
    list.Add("environment_mismatch", "warning", missing, votes.values.begin()->second.place,
             name + "=" + votes.values.begin()->first + " is set on " + list.Who(having) + " and not told by " +
                 list.Who(missing) + ".",
             "set it equally for all ranks: in the launcher's environment, not in one node's shell");
  }
}

void FindGpuDirectProblems(ProblemList& list) {
  const NcclJob& job = list.job();
  Votes votes;
  bool adapters = false;
  for (const NcclMember& member : job.members) {
    bool network = false, direct = false;
    NcclPlace place;
    for (const NcclConnection& connection : member.connections) {
      if (connection.transport != NcclTransport::kNetwork) continue;
      adapters |= IsAdapterNetwork(job.texts[connection.detail].substr(0, job.texts[connection.detail].find('/')));
      network = true;
      direct |= connection.gpu_direct;
      if (!place.seen()) place = connection.place;
    }
    if (network) votes.Add(direct ? "used" : "not used", member.process, place);
  }
  if (votes.values.empty() || !adapters) return;
  if (votes.differ()) {
    const Votes::Vote& without = votes.values["not used"];
    list.Add("gpu_direct_mismatch", "warning", without.processes, without.place,
             list.Who(without.processes) + " on " + list.Hosts(without.processes) +
                 ": no connection over the network uses GPUDirect RDMA, on other ranks some do.",
             "check nvidia_peermem (or DMA-BUF), ACS and NCCL_NET_GDR_LEVEL on these nodes");
  } else if (votes.values.begin()->first == "not used") {
    list.Add("gpu_direct_unused", "warning", votes.values.begin()->second.processes, votes.values.begin()->second.place,
             "No connection over the network uses GPUDirect RDMA.",
             "load nvidia_peermem (or use DMA-BUF), turn ACS off, or raise NCCL_NET_GDR_LEVEL");
  }
}

void FindChannelMismatch(ProblemList& list) {
  const NcclJob& job = list.job();
  for (const NcclCommunicator& communicator : job.communicators) {
    Votes votes;
    for (const uint32_t idx : communicator.members) {
      const NcclMember& member = job.members[idx];
      if (member.channel_counts.empty()) continue;
      std::string text;
      for (const auto& [name, count] : member.channel_counts) {
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
      }
      votes.Add(text, member.process, member.channel_counts_place);
    }
    if (!votes.differ()) continue;
    list.Add("channel_mismatch", "error", Others(votes), votes.Odd().place,
             "Ranks of a communicator of " + std::to_string(communicator.rank_count) +
                 " have different numbers of channels: " + Tell(list, votes) + ".",
             "compare the environment (NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS) and topologies of the nodes");
  }
}

void FindDuplicateDevices(ProblemList& list) {
  const NcclJob& job = list.job();
  for (const NcclCommunicator& communicator : job.communicators) {
    std::map<std::pair<std::string, std::string>, std::vector<uint32_t>> users;
    for (const uint32_t idx : communicator.members) {
      const NcclMember& member = job.members[idx];
      const bool is_id = member.bus_id.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
      if (!member.bus_id.empty() && is_id) users[{job.processes[member.process].host, member.bus_id}].push_back(idx);
    }
    for (const auto& [device, members] : users) {
      std::set<int32_t> ranks;
      std::vector<uint32_t> processes;
      for (const uint32_t idx : members) {
        ranks.insert(job.members[idx].rank);
        processes.push_back(job.members[idx].process);
      }
      if (ranks.size() < 2) continue;
      const NcclMember& last = job.members[members.back()];
      list.Add("duplicate_gpu", "error", processes, last.started.seen() ? last.started : last.completed,
               list.Who(processes) + " use the same GPU, " + device.second + " of " + device.first + ".",
               "call torch.cuda.set_device(LOCAL_RANK) before anything else; check CUDA_VISIBLE_DEVICES");
    }
  }
}

void FindSlowTransports(ProblemList& list) {
  const NcclJob& job = list.job();
  for (const NcclCommunicator& communicator : job.communicators) {
    std::map<int32_t, uint32_t> process_of_rank;
    for (const uint32_t idx : communicator.members) {
      process_of_rank[job.members[idx].rank] = job.members[idx].process;
    }
    std::map<NcclTransport, std::set<uint32_t>> users;
    std::map<NcclTransport, NcclPlace> places;
    for (const uint32_t idx : communicator.members) {
      for (const NcclConnection& connection : job.members[idx].connections) {
        const auto from = process_of_rank.find(connection.from), to = process_of_rank.find(connection.to);
        if (from == process_of_rank.end() || to == process_of_rank.end() || from->second == to->second) continue;
        if (job.processes[from->second].host != job.processes[to->second].host) continue;
        users[connection.transport].insert(job.members[idx].process);
        places.try_emplace(connection.transport, connection.place);
      }
    }
    if (users.count(NcclTransport::kP2p) == 0) continue;
    for (const NcclTransport slow : {NcclTransport::kSharedMemory, NcclTransport::kNetwork}) {
      const auto found = users.find(slow);
      if (found == users.end()) continue;
      const std::vector<uint32_t> processes(found->second.begin(), found->second.end());
      list.Add("slow_transport", "warning", processes, places[slow],
               list.Who(processes) + ": reaches ranks of its own node by " +
                   (slow == NcclTransport::kNetwork ? "the network" : "shared memory") + ", others do so by P2P.",
               "nvidia-smi topo -m; NCCL_P2P_LEVEL, ACS and container settings of these GPUs");
    }
  }
}

}  // namespace lockstep::ingest
