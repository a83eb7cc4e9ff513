#pragma once

#include <cstdint>
#include <string>

#include "ingest/flight_recorder/dump_for_test.h"

namespace lockstep::bench {

/// A made-up job under NCCL whose dumps show a hang: tensor-parallel groups of 8 neighbours, data-parallel groups
/// across them and a world group, with wrapped ring buffers. All ranks but one have enqueued the last collective of the
/// world.
struct StuckJob {
  int32_t rank_count = 1024;  ///< A multiple of 8.
  int32_t record_count = 2000;
  int32_t culprit = 517;
  bool stacks = true;
};

ingest::test::Dump DumpOf(const StuckJob& job, int32_t rank);

/// Writes rank by rank FOLDER/nccl_trace_rank_R, or trace_R.json, unless they are there already; returns their bytes.
uint64_t WriteDumps(const StuckJob& job, const std::string& folder, bool json);

}  // namespace lockstep::bench
