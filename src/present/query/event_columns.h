#pragma once

#include <cstddef>
#include <cstdint>

#include "present/query/cell_out.h"
#include "present/query/column_spec.h"
#include "present/query/source.h"

namespace lockstep::query {

/// What the tables of single events can show of one.
enum class EventColumn : uint8_t {
  kId,
  kRank,
  kWindow,
  kTrack,
  kLane,
  kCategory,
  kName,
  kKind,
  kStartNs,
  kEndNs,
  kDurationNs,
  kTraceStartNs,
  kCorrelation,
  kDevice,
  kStream,
  kProcessId,
  kThreadId,
  kDepth,
  kStep,
  kLaunchStartNs,
  kLaunchEndNs,
};

ColumnSpec SpecOf(EventColumn column);

inline constexpr size_t kLaneCount = 6;

/// An event of the run.
struct EventPlace {
  const Source& source;
  const TrackPlace& track;
  uint32_t track_id;
  size_t row;
};

void WriteEventCell(const EventPlace& event, EventColumn column, CellOut& out);

}  // namespace lockstep::query
