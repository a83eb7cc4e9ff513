#pragma once

#include <memory>

#include "present/query/table.h"

namespace lockstep::query {

/// `events`: every event of every track. Scans walk the model's columns; equality on rank, window, track, lane,
/// category, name, device and stream chooses tracks and rows, ranges on start_ns and trace_start_ns are found by binary
/// search in each track, and lower bounds on end_ns skip blocks of Source::kBlockSize rows.
std::unique_ptr<Table> MakeEventTable();

/// `kernels`: the device events (kernels, copies, sets), read the same way.
std::unique_ptr<Table> MakeKernelTable();

}  // namespace lockstep::query
