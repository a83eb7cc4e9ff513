#pragma once

#include <optional>
#include <string_view>

#include "model/event.h"

namespace lockstep::ingest {

/// Category of an "X" event from its `cat`, in every spelling seen since 2021 (docs/formats/torch-trace.md#categories).
/// Case does not matter. Absent: not known.
std::optional<model::Category> FindCategory(std::string_view cat);

/// The lane that events of a category live on.
model::Lane LaneOf(model::Category category);

/// Lanes whose events carry a correlation id.
inline bool HasCorrelation(model::Lane lane) { return lane == model::Lane::kRuntime || lane == model::Lane::kDevice; }

/// True when events of this name may carry collective metadata that must be read: "nccl:all_reduce",
/// "record_param_comms", kernels with nccl or rccl in the name, ...
bool MayCarryCollectiveMetadata(std::string_view name);

/// True for CPU ranges that stand for one collective call of a backend: "nccl:...", "gloo:...", "c10d::...", ...
bool IsCollectiveRangeName(std::string_view name);

}  // namespace lockstep::ingest
