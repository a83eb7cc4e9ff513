#pragma once

#include <string>

#include "ingest/nccl_ring/nccl_ring.h"
#include "model/ledger.h"

namespace lockstep::ingest {

/// "communicator 0x5eed".
std::string CommunicatorLabel(const NcclRingCommunicator& communicator);

/// What a ring read as a trace does not say, as rows: operations that are under way, that gave way to later ones, that
/// found no room; what the interface that NCCL spoke leaves open.
void ReportRingQuality(const NcclRing& ring, const std::string& source, model::Ledger* ledger);

}  // namespace lockstep::ingest
