#pragma once

#include <string>

#include "ingest/nccl_ring/nccl_ring.h"
#include "model/ledger.h"

namespace lockstep::ingest {

/// "communicator 0x5eed".
std::string CommunicatorLabel(const NcclRingCommunicator& communicator);

/// What a ring read as a trace does not contain, as ledger rows: operations in flight, overwritten ones, ones that did
/// not fit, and what the version of NCCL's interface does not report.
void ReportRingQuality(const NcclRing& ring, const std::string& source, model::Ledger* ledger);

}  // namespace lockstep::ingest
