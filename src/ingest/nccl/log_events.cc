// The catalogue of events: one row a kind of line. Source: docs/formats/nccl-log.md#events.
#include "ingest/nccl/log_events.h"

#include <array>

namespace lockstep::ingest {
namespace {

// What several rules of one kind share stands together. The order matters only where two marks fit one line.
constexpr std::array kEventRules = {
    // Operations first: with COLL enabled nearly every line is one.
    NcclEventRule{"operation", ": opCount ", true, HandleOperation},
    NcclEventRule{"tuning", " Bytes -> Algo ", true, HandleTuning},
    NcclEventRule{"hint", "HINT: "},  // 2.30's, wrong: its switch lacks a break.

    NcclEventRule{"channel_connection", "Channel ", false, HandleConnection},
    NcclEventRule{"channel_ring", "Channel ", false, HandleRingOrder},
    NcclEventRule{"ring", "Ring ", false, HandleRingNeighbours},
    NcclEventRule{"trees", "Trees [", false, HandleTrees},
    NcclEventRule{"tree", "Tree ", false, HandleTree},
    NcclEventRule{"connected", "Connected all rings", false, HandleConnectedRings},
    NcclEventRule{"connected", "Connected all trees", false, HandleConnectedTrees},
    NcclEventRule{"connected", "Connected NVLS tree", false, HandleConnectedNvls},
    NcclEventRule{"connected", "Connected "},  // collnet, to a proxy
    NcclEventRule{"channel_counts", " coll channels, ", true, HandleChannelCounts},
    NcclEventRule{"channel_counts", "threadThresholds "},

    NcclEventRule{"init_start", "- Init START", true, HandleInitStart},
    NcclEventRule{"init_complete", "- Init COMPLETE", true, HandleInitComplete},
    NcclEventRule{"comm_destroy", "Destroy COMPLETE", true, HandleDestroy},
    NcclEventRule{"comm_destroy", "- Destroy START", true},
    NcclEventRule{"comm_abort", "Abort COMPLETE", true, HandleAbort},
    NcclEventRule{"comm_abort", "- Abort START", true},
    NcclEventRule{"comm_nodes", " nRanks ", true, HandleNodes},
    NcclEventRule{"init_timing", "Init timings - ", false, HandleInitTiming},
    NcclEventRule{"bootstrap_timing", "Bootstrap timings total "},

    NcclEventRule{"version", "NCCL version ", false, HandleVersion},
    NcclEventRule{"driver_version", "cudaDriverVersion ", false, HandleDriverVersion},
    NcclEventRule{"bootstrap", "Bootstrap : Using ", false, HandleBootstrap},
    NcclEventRule{"bootstrap", "Bootstrap: Using ", false, HandleBootstrap},
    NcclEventRule{"network", "Using network ", false, HandleNetwork},
    NcclEventRule{"adapters", "NET/IB : Using ", false, HandleAdapters},
    NcclEventRule{"adapters", "NET/IB: Using ", false, HandleAdapters},
    NcclEventRule{"adapters", "NET/IB : No device found", false, HandleNoAdapter},
    NcclEventRule{"adapters", "NET/IB: No device found", false, HandleNoAdapter},
    NcclEventRule{"sockets", "NET/Socket : Using ", false, HandleSockets},
    NcclEventRule{"sockets", "NET/Socket: Using ", false, HandleSockets},
    NcclEventRule{"gpu_direct", "GPU Direct RDMA Enabled", true, HandleGpuDirectOn},
    NcclEventRule{"gpu_direct", "GPU Direct RDMA Disabled", true, HandleGpuDirectOff},
    NcclEventRule{"gpu_direct", "GPU Direct RDMA (", true},
    NcclEventRule{"gpu_direct", "DMA-BUF is available"},
    NcclEventRule{"setting", " set by environment to ", true, HandleSetting},
    NcclEventRule{"setting", "etting ", true, HandlePluginSetting},  // "Setting NCCL_X environment variable to ..."
    NcclEventRule{"setting", " environment variable ", true},
    NcclEventRule{"affinity", "Setting affinity for GPU ", false, HandleAffinity},
    NcclEventRule{"affinity", "ncclTopoGetCpuAffinity: "},
    NcclEventRule{"nvls", "NVLS multicast support is ", false, HandleNvls},
    NcclEventRule{"nvls", "NVLS "},
    NcclEventRule{"topology_file", "Loading topology file "},
    NcclEventRule{"topology_file", "Loading unnamed topology"},

    NcclEventRule{"plugin", "ENV/Plugin: Closing ", false, HandleEnd},
    NcclEventRule{"plugin", "NET/Plugin", false, HandlePlugin},
    NcclEventRule{"plugin", "ENV/Plugin", false, HandlePlugin},
    NcclEventRule{"plugin", "TUNER/Plugin", false, HandlePlugin},
    NcclEventRule{"plugin", "PROFILER/Plugin", false, HandlePlugin},
    NcclEventRule{"plugin", "GIN/Plugin", false, HandlePlugin},
    NcclEventRule{"plugin", "NET/OFI ", false, HandlePlugin},
    NcclEventRule{"plugin", "Successfully loaded external ", false, HandlePlugin},
    NcclEventRule{"plugin", "Plugin Path", false, HandlePlugin},
    NcclEventRule{"plugin", "Plugin: ", true, HandlePlugin},
    NcclEventRule{"plugin", " plugin ", true, HandlePlugin},  // "Initialized NET plugin IB", "Assigned ..."
    NcclEventRule{"plugin", "P2P plugin "},
    NcclEventRule{"plugin", "Profiler event mask"},

    NcclEventRule{"ras", "RAS "},
    NcclEventRule{"register", "register comm "},
    NcclEventRule{"register", "deregister comm "},
    NcclEventRule{"proxy", "New proxy "},
    NcclEventRule{"proxy", "proxyProgressAsync "},
    NcclEventRule{"proxy", "ncclPollProxyResponse "},
    NcclEventRule{"proxy", "resp.opId="},
    NcclEventRule{"proxy", "Received and initiated operation="},
    NcclEventRule{"proxy", "[Proxy "},
    NcclEventRule{"memory", "MMAP allocated "},
    NcclEventRule{"memory", "Allocated shareable buffer "},
    NcclEventRule{"memory", "Allocated "},
    NcclEventRule{"memory", "MemManager: "},
    NcclEventRule{"memory", "Mem Realloc "},
    NcclEventRule{"memory", " Alloc Size ", true},
    NcclEventRule{"memory", " CallocAsync Size ", true},
    NcclEventRule{"memory", "memory stack hunk malloc", true},
    NcclEventRule{"launch_mode", "Launch mode "},
    NcclEventRule{"cuda_features", "CUDA Dev "},
    NcclEventRule{"cuda_features", "MNNVL "},
    NcclEventRule{"cuda_features", "Using non-device net plugin "},
    NcclEventRule{"p2p_level", "P2P Chunksize set to "},
    NcclEventRule{"p2p_level", "Check P2P Type "},
    NcclEventRule{"topology_graph", "=== "},
    NcclEventRule{"topology_graph", "=========="},
    NcclEventRule{"topology_graph", "Pattern "},
};

}  // namespace

const char* HandleNcclEvent(NcclLogReader& reader, const NcclLineInHand& hand) {
  for (const NcclEventRule& rule : kEventRules) {
    Words words(hand.message);
    if (rule.anywhere ? !words.SkipPast(rule.mark) : !words.Skip(rule.mark)) continue;
    if (rule.handler == nullptr || rule.handler(reader, hand, words)) return rule.name;
  }
  return nullptr;
}

}  // namespace lockstep::ingest
