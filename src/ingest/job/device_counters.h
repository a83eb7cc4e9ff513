#pragma once

#include "model/run.h"

namespace lockstep::ingest {

/// One profiler samples all devices of a node, for only one can sample a device: what it saw of devices that other
/// ranks of the node use goes to these, where ordinals say whose they are. Traces that hold no events (those of another
/// process) neither give nor take.
void PlaceDeviceCounters(model::Run* run);

}  // namespace lockstep::ingest
