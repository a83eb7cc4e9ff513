#pragma once

#include "model/run.h"

namespace lockstep::ingest {

/// One profiler samples all devices of a node, since only one can sample a device: its samples of devices that other
/// ranks of the node use go to those ranks, as far as ordinals identify them. Traces without events (those of another
/// process) neither give nor take.
void PlaceDeviceCounters(model::Run* run);

}  // namespace lockstep::ingest
