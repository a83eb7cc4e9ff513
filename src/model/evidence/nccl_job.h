#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::evidence {

/// Where something was read.
struct NcclPlace {
  uint32_t file = 0;  ///< Into NcclJob::files.
  uint64_t line = 0;  ///< From 1; 0 = nowhere: the thing was not seen.
  bool seen() const { return line != 0; }
};

/// A variable that NCCL says it took from the environment.
struct NcclSetting {
  std::string name;
  std::string value;
  NcclPlace place;
  bool by_plugin = false;  ///< A plugin set it for its process; not from the user's environment.
};

/// An interface or adapter: "eth0", "10.0.0.1", "" of sockets; "mlx5_0", "", "RoCE" of adapters.
struct NcclInterface {
  std::string name;
  std::string address;
  std::string link;
};

enum class NcclTransport : uint8_t { kP2p, kSharedMemory, kNetwork, kCollNet, kOther };
constexpr int kNcclTransportCount = 5;
const char* NcclTransportName(NcclTransport transport);  ///< "p2p", "shared_memory", "network", ...

enum class NcclDirection : uint8_t { kBoth, kSend, kReceive };

/// One connection of a channel as the line "Channel 01/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA" tells it.
struct NcclConnection {
  int32_t channel = 0;
  int32_t from = 0;  ///< Ranks in the communicator.
  int32_t to = 0;
  NcclTransport transport = NcclTransport::kOther;
  NcclDirection direction = NcclDirection::kBoth;
  bool gpu_direct = false;       ///< Of kNetwork: /GDRDMA.
  int32_t net_device = -1;       ///< Of kNetwork; -1 = not told.
  std::optional<int32_t> proxy;  ///< Rank whose adapter is used instead of its own (PXN).
  uint32_t detail = 0;           ///< "IPC/read", "direct/direct", "AWS Libfabric"; into NcclJob::texts.
  NcclPlace place;
};

/// A rank's place in the tree of one channel; -1 = none.
struct NcclTreeNode {
  int32_t channel = 0;
  int32_t up = -1;
  std::vector<int32_t> down;
};

/// A collective that was enqueued, from a line of the subsystem COLL.
struct NcclOperation {
  uint64_t count = 0;         ///< Elements.
  int64_t operation_idx = 0;  ///< opCount, of the communicator.
  uint64_t line = 0;
  uint32_t file = 0;
  uint32_t name = 0;  ///< "AllReduce"; into NcclJob::texts.
  int32_t datatype = -1;
  int32_t reduction = -1;
  int32_t root = -1;  ///< The peer, of Send and Recv.
};

/// One rank's part of a communicator.
struct NcclMember {
  uint32_t process = 0;  ///< Into NcclJob::processes.
  uint64_t pointer = 0;  ///< 0 = not told.
  int32_t rank = -1;     ///< In the communicator; -1 = not told.
  int32_t rank_count = -1;
  int32_t device = -1;  ///< CUDA ordinal.
  int32_t nvml_device = -1;
  std::string bus_id;   ///< As printed: "a01d0".
  std::string id;       ///< commId, "" = the version does not print it.
  uint64_t parent = 0;  ///< Pointer of the communicator that was split; 0 = none.
  std::optional<int32_t> split_color;
  std::optional<int32_t> split_count;  ///< How many splits the parent had before.
  int32_t node_count = -1;
  int32_t local_rank = -1;
  int32_t local_rank_count = -1;
  NcclPlace started;  ///< Init START.
  NcclPlace completed;
  NcclPlace destroyed;
  NcclPlace aborted;
  std::optional<int64_t> started_unix_ns;                       ///< Where the lines have times.
  std::optional<int64_t> init_ns;                               ///< Duration of the creation.
  std::vector<std::pair<std::string, int64_t>> init_phases_ns;  ///< "bootstrap", "topo", ... in the line's order.
  NcclPlace init_timing;
  std::vector<std::pair<std::string, int64_t>> channel_counts;  ///< "coll", "collnet", "nvls", "p2p", "p2p_per_peer".
  NcclPlace channel_counts_place;
  bool connected_rings = false;
  bool connected_trees = false;
  bool connected_nvls = false;
  std::vector<NcclTreeNode> trees;                ///< By channel.
  std::map<int32_t, std::vector<int32_t>> rings;  ///< Channel -> order of ranks, where this rank prints it.
  std::vector<NcclConnection> connections;
  std::vector<NcclOperation> operations;  ///< In the order of enqueueing.
  uint64_t dropped_operation_count = 0;   ///< Beyond the limit on what is kept.
};

/// A line of level WARN, or one that tells of a failure.
struct NcclError {
  uint32_t process = 0;
  std::string kind;     ///< "ib_completion", "socket_closed", ...: docs/formats/nccl-log.md#errors.
  std::string text;     ///< The message, at most 1 KiB.
  std::string peer;     ///< "10.0.0.5<41234>", "" = none named.
  std::string code;     ///< Status, errno or result in words: "retry exceeded (12)".
  std::string meaning;  ///< What to say of it.
  std::string remedy;
  bool consequence = false;          ///< Follows from another error; look for the first.
  bool warning = false;              ///< Nothing fails by it.
  std::vector<int32_t> named_ranks;  ///< Ranks that the line names.
  std::optional<int64_t> time_unix_ns;
  std::string place_in_source;  ///< "misc/cudawrap.cc:271".
  NcclPlace place;
};

/// A line of a call chain: "transport/net.cc:1362 -> 6".
struct NcclCallResult {
  uint32_t process = 0;
  std::string where;
  std::string thread;  ///< "Progress Thread", "" = not told.
  int32_t result = 0;
  NcclPlace place;
};

/// A process that logs. Process ids repeat between containers: host and pid together are the key.
struct NcclProcess {
  std::string host;
  int64_t pid = 0;
  std::optional<int32_t> launcher_rank;  ///< From the launcher's prefix or the file's name.
  std::optional<int32_t> rank;           ///< In the largest communicator, else the launcher's.
  std::string version;                   ///< "2.29.7+cuda13.0"
  NcclPlace version_place;
  std::string driver_version;  ///< "12.8"
  std::string network;         ///< "IB", "Socket", "AWS Libfabric": the last that was chosen.
  NcclPlace network_place;
  NcclInterface bootstrap;
  NcclPlace bootstrap_place;
  std::vector<NcclInterface> sockets;
  std::vector<NcclInterface> adapters;  ///< InfiniBand or RoCE.
  bool no_adapter_found = false;        ///< "NET/IB : No device found."
  std::vector<NcclSetting> settings;    ///< By name.
  std::vector<std::string> plugins;
  std::map<int32_t, std::string> affinity;  ///< Device -> mask, as printed.
  std::optional<bool> gpu_direct;           ///< GPUDirect RDMA, of any adapter; nullopt = not told.
  NcclPlace gpu_direct_place;
  std::optional<bool> nvls;
  bool ended = false;  ///< It closed its plugins: an orderly end.
  uint64_t line_count = 0;
};

struct NcclCommunicator {
  std::string id;  ///< commId; "" = joined by size and order, since the version prints none.
  int32_t rank_count = -1;
  std::vector<uint32_t> members;  ///< Into NcclJob::members, by rank.
};

/// How the lines were read. Every line is in exactly one of these.
struct NcclLineCounts {
  uint64_t nccl = 0;     ///< Known lines of NCCL.
  uint64_t unknown = 0;  ///< NCCL's by their form, of no known kind; kept as samples.
  uint64_t other = 0;    ///< Not NCCL's.
  uint64_t cut = 0;      ///< Of `nccl` and `unknown`: cut at NCCL's limit of 1 KiB, or at ours.
};

/// What the NCCL logs of a job tell.
struct NcclJob {
  std::vector<std::string> files;
  std::vector<std::string> texts;  ///< [0] is empty.
  std::vector<NcclProcess> processes;
  std::vector<NcclMember> members;
  std::vector<NcclCommunicator> communicators;  ///< The largest first.
  std::vector<NcclError> errors;                ///< By file and line.
  std::vector<NcclCallResult> call_results;
  std::map<std::string, uint64_t> tunings;  ///< "AllReduce 33554432 bytes: RING/SIMPLE" -> lines.
  NcclLineCounts lines;
  std::map<std::string, uint64_t> kinds;     ///< Lines by the event's name.
  std::vector<std::string> unknown_samples;  ///< "file:line: text", at most 20.
};

}  // namespace lockstep::evidence
