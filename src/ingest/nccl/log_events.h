#pragma once

#include "ingest/nccl/log_reader.h"

namespace lockstep::ingest {

// Handlers of the catalogue in log_events.cc. `words` stands behind the rule's mark.

// events_communicator.cc
bool HandleInitStart(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleInitComplete(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleDestroy(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleAbort(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleNodes(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleInitTiming(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleOperation(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleTuning(NcclLogReader& reader, const NcclLineInHand& hand, Words words);

// events_channel.cc
bool HandleConnection(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleRingOrder(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleRingNeighbours(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleTrees(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleTree(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleConnectedRings(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleConnectedTrees(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleConnectedNvls(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleChannelCounts(NcclLogReader& reader, const NcclLineInHand& hand, Words words);

// events_process.cc
bool HandleVersion(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleDriverVersion(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleBootstrap(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleNetwork(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleAdapters(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleNoAdapter(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleSockets(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleGpuDirectOn(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleGpuDirectOff(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleSetting(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandlePluginSetting(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleAffinity(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleNvls(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandlePlugin(NcclLogReader& reader, const NcclLineInHand& hand, Words words);
bool HandleEnd(NcclLogReader& reader, const NcclLineInHand& hand, Words words);

}  // namespace lockstep::ingest
